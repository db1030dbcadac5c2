"""What else would do for a request without a plan: narrower number formats, and as many of another card."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.hardware import all_accelerators
from ...tools.checkpoint import if_time
from ...tools.errors import InputError
from ...tools.language.said import OpenPrecisions
from ...tools.performance.layout import facts_of
from ...tools.plan.constraints import chosen_kinds
from ...tools.plan.describe import precision_name
from ...tools.search.batch import searched
from ...tools.search.candidate import Candidate, SearchRequest
from ..intent.formats import QUALITY, formats_on
from .reasons import figures, named

# So many cards are looked at, each takes a search, until so many would do.
_MOST_CARDS, _ENOUGH_CARDS = 5, 2


class OtherFormats(Struct, frozen=True):
    """Number formats, a line each: those that have a plan, and those that come nearer than the one asked for."""

    would_do: tuple[str, ...] = ()
    nearer: tuple[str, ...] = ()


def other_formats(request: SearchRequest, closest: Candidate | None) -> OtherFormats:
    """The gain of other formats on the same hardware, unless they were open; `closest`: the best in the one asked."""
    if request.precisions:
        return OtherFormats()
    accelerator, native = request.facts.accelerator, request.architecture.native_precision
    would_do: list[str] = []
    nearer: list[str] = []
    for precision in formats_on(OpenPrecisions(is_open=True), native, accelerator):
        if precision == request.precision:
            continue
        name = precision_name(precision)
        best = _leading(replace(request, precision=precision), f"a plan in {name}")
        if best is None or best.ttft_ms is None:
            continue
        line = f"in {name}: {named(best)} with {figures(best)}"
        if _serves(best):
            would_do.append(f"{line}; {QUALITY}")
        elif not best.feasible and (
            closest is None or closest.ttft_ms is None or len(best.why_not) < len(closest.why_not)
        ):
            nearer.append(f"{line}; still {'; '.join(best.why_not).replace('PE010: ', '')}; {QUALITY}")
    return OtherFormats(tuple(would_do), tuple(nearer))


def other_cards(request: SearchRequest) -> Iterator[str]:
    """Cards of the same maker with more memory or more bandwidth, the nearest first, each with its plan."""
    current = request.facts.accelerator
    if chosen_kinds(request.policy.constraints or ()):
        return
    better = [
        card
        for card in all_accelerators()
        if card.vendor == current.vendor
        and card.typical_node_accelerators == current.typical_node_accelerators
        and card.memory_bytes()[0] > current.memory_bytes()[0]
        and (card.memory_bandwidth_gb_s or 0) >= (current.memory_bandwidth_gb_s or 0)
    ]
    nearest = sorted(better, key=lambda card: card.memory_bytes()[0])[:_MOST_CARDS]
    tried = ((card, _leading(_on(request, card), f"a plan on {card.id}")) for card in nearest)
    suitable = ((card, best) for card, best in tried if best is not None and _serves(best))
    for accelerator, best in islice(suitable, _ENOUGH_CARDS):
        yield f"on {request.facts.gpus} × {accelerator.id}: {named(best)} with {figures(best)}"


def _serves(best: Candidate) -> bool:
    """Whether it holds the limits, and its engine's cache a request."""
    return best.feasible and not best.lacks_cache


def _on(request: SearchRequest, accelerator: Accelerator) -> SearchRequest:
    """The request on as many of another card."""
    hardware = request.hardware.model_copy(update={"accelerator": accelerator.id, "intra_node_bw_gb_s": None})
    return replace(
        request,
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        precision=request.precision.on(accelerator),
        precisions=tuple(precision.on(accelerator) for precision in request.precisions),
    )


def _leading(request: SearchRequest, work: str) -> Candidate | None:
    """The best plan, or what comes closest; `None` if the time is over or a fact that it needs is not known."""
    try:
        result = if_time(work, lambda: searched(request)[1])
    except InputError:
        return None
    return None if result is None else next(iter(result.candidates), None)
