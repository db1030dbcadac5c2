"""Hardware for a request that names none, or kinds to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from ..tools.catalog.architecture import Architecture
from ..tools.catalog.hardware import all_accelerators
from ..tools.plan.constraints import BudgetConstraint, chosen_kinds
from ..tools.plan.describe import precision_name
from ..tools.plan.document import HardwareBlock
from ..tools.search.candidate import SearchRequest
from ..tools.search.kinds import Kind, cheapest, least_memory
from ..tools.search.search import search
from ..tools.search.sizing import Sized, least_weights_bytes, resized
from .examined import SHOWN_GPUS, Examined, Refused, refused
from .intent.intent import Assumption, Intent
from .reasons import KINDS_NAMED
from .results import Infeasible, Needs
from .search_request import search_request

# An accelerator that nobody named is chosen among these vendors' parts: those that the common engines run on.
_DEFAULT_VENDORS = ("NVIDIA", "AMD")
# The search for unnamed hardware looks no further than this many accelerators.
_MAX_UNNAMED_GPUS = 64


def on_any_hardware(intent: Intent, architecture: Architecture) -> Examined | Refused:
    """The least hardware that does where none was named, or only kinds of it: the cheapest, or of the least memory."""
    kinds = list(kinds_of(intent, architecture))
    by_price = intent.workload.objective == "cost"
    found = least_hardware(intent, kinds)
    if found is not None and found.result is not None and found.result.best is not None:
        hardware = found.request.hardware
        reason = "the least memory in all that holds every limit"
        if by_price:
            priced = ", ".join(_price_text(kind) for kind in kinds if kind.usd_per_gpu_hour is not None)
            unpriced = sum(kind.usd_per_gpu_hour is None for kind in kinds)
            reason = (
                f"the cheapest that holds every limit, at the middle of the prices that are known (USD per GPU-hour: "
                f"{priced}); {unpriced} kinds without a known price were not compared"
            )
        assumption = Assumption(
            field="hardware",
            value=f"{hardware.nodes}x{hardware.gpus_per_node}:{found.request.facts.accelerator.id}",
            reason=f"{_unnamed(intent)}: {reason}{_others_lost(intent, found, kinds)}",
        )
        assumptions = assumption, *_formats_of(found.request, intent)
        return Examined(found.request, found.result, found.result.best, assumptions)
    return _too_much_for_any(kinds)


def kinds_of(intent: Intent, architecture: Architecture) -> Iterator[Kind]:
    """The kinds of accelerator that are looked at where none was named."""
    named = chosen_kinds(intent.constraints)
    budgets = [one for one in intent.constraints if isinstance(one, BudgetConstraint)]
    is_paid = any(one.usd_per_gpu_hour is None for one in budgets)
    for accelerator in all_accelerators():
        if accelerator.id not in named if named else accelerator.vendor not in _DEFAULT_VENDORS:
            continue
        if is_paid and accelerator.usd_per_hour is None and not named:
            continue  # nobody knows how many of them a budget pays for
        node = accelerator.typical_node_accelerators or 1
        request = search_request(
            intent, architecture, HardwareBlock(accelerator=accelerator.id, nodes=1, gpus_per_node=node)
        )
        yield Kind(request, node, accelerator.on_demand_usd_per_hour)


def _others_lost(intent: Intent, found: Sized, kinds: Sequence[Kind]) -> str:
    """How many of each other kind that was named would be less, and do not; nothing where a token is to be cheap."""
    by_price = intent.workload.objective == "cost"
    if not chosen_kinds(intent.constraints) or (by_price and found.request.is_paid_by_token):
        return ""
    each = {kind.request.facts.accelerator.id: kind.middle_usd if by_price else kind.memory_bytes for kind in kinds}
    most = each.pop(found.request.facts.accelerator.id) * found.request.facts.gpus
    fewer = {name: min(_MAX_UNNAMED_GPUS, ceil(most / one) - 1) for name, one in each.items()}
    told = [f"up to {gpus} × {name}" for name, gpus in fewer.items() if gpus > 0]
    what = f"cost less than its {most:.2f} USD an hour" if by_price else "have less memory"
    return f"; {' and '.join(told)} would {what}, and are not known to do" if told else ""


def least_hardware(intent: Intent, kinds: Iterable[Kind]) -> Sized | None:
    """The hardware that does, of `kinds`: the cheapest by a price, else the least memory."""
    return (cheapest if intent.workload.objective == "cost" else least_memory)(kinds, _MAX_UNNAMED_GPUS)


def _unnamed(intent: Intent) -> str:
    return KINDS_NAMED if chosen_kinds(intent.constraints) else "no hardware was named"


def _price_text(kind: Kind) -> str:
    low, high = kind.usd_per_gpu_hour or (0.0, 0.0)
    return f"{kind.request.facts.accelerator.id} {low:g}–{high:g}"


def _formats_of(request: SearchRequest, intent: Intent) -> Iterator[Assumption]:
    """What the chosen accelerator makes of formats that were assumed before it was chosen."""
    if intent.precisions is None and request.precision != intent.precision:
        reason = f"{request.facts.accelerator.id} has no bf16 units"
        yield Assumption(field="precision", value=precision_name(request.precision), reason=reason)


def _too_much_for_any(kinds: Sequence[Kind]) -> Refused:
    """Why no kind does: by what the kind with the most memory for its number lacks."""
    holding = [kind for kind in kinds if kind.least_gpus <= _MAX_UNNAMED_GPUS]
    if not holding:
        need = min(least_weights_bytes(kind.request) for kind in kinds)
        reason = (
            f"the weights alone take {need / 1e9:.0f} GB: more than {_MAX_UNNAMED_GPUS} accelerators of any kind hold"
        )
        return Refused(Infeasible(reason=reason, rule="ME001", needs=Needs(note="name hardware with more memory")))
    kind = min(holding, key=lambda one: one.least_gpus)
    largest = resized(kind.request, max(1, SHOWN_GPUS // kind.usual_node), kind.usual_node)
    return refused(largest, search(largest), kind.usual_node)
