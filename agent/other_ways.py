"""What else would do where a request has no plan: narrower number formats, and other cards of that number."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ..tools.catalog.accelerators import Accelerator
from ..tools.catalog.hardware import all_accelerators
from ..tools.checkpoint import if_time
from ..tools.errors import InputError
from ..tools.language.said import OpenPrecisions
from ..tools.performance.layout import facts_of
from ..tools.plan.constraints import chosen_kinds
from ..tools.plan.describe import precision_name
from ..tools.search.candidate import Candidate, SearchRequest
from ..tools.search.search import search
from .intent.formats import QUALITY, formats_on
from .reasons import figures, named

# So many cards are looked at, each takes a search, until so many would do.
_MOST_CARDS, _ENOUGH_CARDS = 5, 2


class OtherFormats(Struct, frozen=True):
    """Number formats, a line each: those in which there is a plan, and those that come nearer than the one asked."""

    would_do: tuple[str, ...] = ()
    nearer: tuple[str, ...] = ()


def other_formats(request: SearchRequest, closest: Candidate | None) -> OtherFormats:
    """What other formats bring on the same hardware, where they were not open; `closest`: the best in the one asked."""
    if request.precisions:
        return OtherFormats()
    accelerator, own = request.facts.accelerator, request.architecture.native_precision
    would_do: list[str] = []
    nearer: list[str] = []
    for precision in formats_on(OpenPrecisions(is_open=True), own, accelerator):
        if precision == request.precision:
            continue
        name = precision_name(precision)
        one = _leading(replace(request, precision=precision), f"a plan in {name}")
        if one is None or one.ttft_ms is None:
            continue
        told = f"in {name}: {named(one)} with {figures(one)}"
        if one.feasible:
            would_do.append(f"{told}; {QUALITY}")
        elif closest is None or closest.ttft_ms is None or len(one.why_not) < len(closest.why_not):
            nearer.append(f"{told}; still {'; '.join(one.why_not).replace('PE010: ', '')}; {QUALITY}")
    return OtherFormats(tuple(would_do), tuple(nearer))


def other_cards(request: SearchRequest) -> Iterator[str]:
    """Cards of the same maker with more memory or more bandwidth, the nearest first, each with its plan."""
    own = request.facts.accelerator
    if chosen_kinds(request.policy.constraints or ()):
        return
    better = [
        one
        for one in all_accelerators()
        if one.vendor == own.vendor
        and one.typical_node_accelerators == own.typical_node_accelerators
        and one.memory_bytes()[0] > own.memory_bytes()[0]
        and (one.memory_bandwidth_gb_s or 0) >= (own.memory_bandwidth_gb_s or 0)
    ]
    nearest = sorted(better, key=lambda card: card.memory_bytes()[0])[:_MOST_CARDS]
    tried = ((one, _leading(_on(request, one), f"a plan on {one.id}")) for one in nearest)
    found = ((one, best) for one, best in tried if best is not None and best.feasible)
    for one, best in islice(found, _ENOUGH_CARDS):
        yield f"on {request.facts.gpus} × {one.id}: {named(best)} with {figures(best)}"


def _on(request: SearchRequest, accelerator: Accelerator) -> SearchRequest:
    """The request on as many of another card."""
    hardware = request.hardware.model_copy(update={"accelerator": accelerator.id, "intra_node_bw_gb_s": None})
    return replace(
        request,
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        precision=request.precision.on(accelerator),
        precisions=tuple(one.on(accelerator) for one in request.precisions),
    )


def _leading(request: SearchRequest, what: str) -> Candidate | None:
    """The best plan, or what comes closest, where what it needs is known."""
    try:
        found = if_time(what, lambda: search(request))
    except InputError:
        return None
    return None if found is None else next(iter(found.candidates), None)
