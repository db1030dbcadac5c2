"""Hardware for a request that names none, or kinds to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from ...tools.catalog.architecture import Architecture
from ...tools.catalog.hardware import all_accelerators
from ...tools.plan.constraints import BudgetConstraint, chosen_kinds
from ...tools.plan.describe import precision_name
from ...tools.plan.document import HardwareBlock
from ...tools.search.candidate import SearchRequest
from ...tools.search.kinds import Kind, cheapest, least_memory
from ...tools.search.reach import Sized, resized
from ...tools.search.search import search
from ...tools.search.sizing import least_weights_bytes
from ..intent.intent import Assumption, Intent
from ..results import Infeasible, Needs
from ..stated.search_request import search_request
from .examined import SHOWN_GPUS, Examined, Refused, refused
from .reasons import KINDS_NAMED, UNPRICED

# An accelerator that nobody named is chosen among these vendors' parts: those that the common engines run on.
_DEFAULT_VENDORS = ("NVIDIA", "AMD")
# The search for unnamed hardware looks no further than this many accelerators.
_MAX_UNNAMED_GPUS = 64


def on_any_hardware(intent: Intent, architecture: Architecture) -> Examined | Refused:
    """The least hardware that suffices if none was named, or only kinds of it: the cheapest, or of the least memory."""
    kinds = list(kinds_of(intent, architecture))
    by_price = intent.workload.objective == "cost"
    sized = least_hardware(intent, kinds)
    if sized is not None and sized.result is not None and sized.result.best is not None:
        hardware = sized.request.hardware
        reason = "the least memory in all that holds every limit"
        if by_price:
            priced = ", ".join(_price_text(kind) for kind in kinds if kind.usd_per_gpu_hour is not None)
            reason = (
                f"the cheapest that holds every limit, at the middle of the prices that are known (USD per GPU-hour: "
                f"{priced})"
            )
        assumption = Assumption(
            field="hardware",
            value=f"{hardware.nodes}x{hardware.gpus_per_node}:{sized.request.facts.accelerator.id}",
            reason=f"{_unnamed(intent)}: {reason}{_others_lost(intent, sized, kinds)}",
        )
        assumptions = assumption, *_not_compared(intent, kinds), *_formats_of(sized.request, intent)
        return Examined(sized.request, sized.result, sized.result.best, assumptions)
    return _too_much_for_any(kinds)


def kinds_of(intent: Intent, architecture: Architecture) -> Iterator[Kind]:
    """The kinds of accelerator that are looked at where none was named."""
    named = chosen_kinds(intent.constraints)
    budgets = [constraint for constraint in intent.constraints if isinstance(constraint, BudgetConstraint)]
    is_paid = any(budget.usd_per_gpu_hour is None for budget in budgets)
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


def _not_compared(intent: Intent, kinds: Sequence[Kind]) -> Iterator[Assumption]:
    """The kinds without a known price, where the cheapest is looked for."""
    unpriced = [kind.request.facts.accelerator.id for kind in kinds if kind.usd_per_gpu_hour is None]
    if unpriced and intent.workload.objective == "cost":
        reason = f"no price is known of {', '.join(unpriced)}: not compared with the others"
        yield Assumption(field=UNPRICED, value=None, reason=reason)


def _others_lost(intent: Intent, sized: Sized, kinds: Sequence[Kind]) -> str:
    """How many of each other named kind would be less and do not suffice; "" if cost per token decides."""
    by_price = intent.workload.objective == "cost"
    if not chosen_kinds(intent.constraints) or (by_price and sized.request.is_paid_by_token):
        return ""
    each = {kind.request.facts.accelerator.id: kind.middle_usd if by_price else kind.memory_bytes for kind in kinds}
    most = each.pop(sized.request.facts.accelerator.id) * sized.request.facts.gpus
    fewer = {name: min(_MAX_UNNAMED_GPUS, ceil(most / size) - 1) for name, size in each.items()}
    counts = [f"up to {gpus} × {name}" for name, gpus in fewer.items() if gpus > 0]
    comparison = f"cost less than its {most:.2f} USD an hour" if by_price else "have less memory"
    return f"; {' and '.join(counts)} would {comparison}, and are not known to do" if counts else ""


def least_hardware(intent: Intent, kinds: Iterable[Kind]) -> Sized | None:
    """The hardware of `kinds` that suffices: the cheapest if the objective is cost, else of the least memory."""
    return (cheapest if intent.workload.objective == "cost" else least_memory)(kinds, _MAX_UNNAMED_GPUS)


def _unnamed(intent: Intent) -> str:
    return KINDS_NAMED if chosen_kinds(intent.constraints) else "no hardware was named"


def _price_text(kind: Kind) -> str:
    low, high = kind.usd_per_gpu_hour or (0.0, 0.0)
    return f"{kind.request.facts.accelerator.id} {low:g}–{high:g}"


def _formats_of(request: SearchRequest, intent: Intent) -> Iterator[Assumption]:
    """The formats of the chosen accelerator, if it lacks those that were assumed before it was chosen."""
    if intent.precisions is None and request.precision != intent.precision:
        reason = f"{request.facts.accelerator.id} has no bf16 units"
        yield Assumption(field="precision", value=precision_name(request.precision), reason=reason)


def _too_much_for_any(kinds: Sequence[Kind]) -> Refused:
    """Why no kind suffices: what the kind that needs the fewest accelerators lacks."""
    holding = [kind for kind in kinds if kind.least_gpus <= _MAX_UNNAMED_GPUS]
    if not holding:
        need = min(least_weights_bytes(kind.request) for kind in kinds)
        reason = (
            f"the weights alone take {need / 1e9:.0f} GB: more than {_MAX_UNNAMED_GPUS} accelerators of any kind hold"
        )
        return Refused(Infeasible(reason=reason, rule="ME001", needs=Needs(note="name hardware with more memory")))
    kind = min(holding, key=lambda kind: kind.least_gpus)
    largest = resized(kind.request, max(1, SHOWN_GPUS // kind.usual_node), kind.usual_node)
    return refused(largest, search(largest), kind.usual_node)
