"""EN003 (warning, an error for the engine that refuses it): the expert groups of an operator host equally many experts.

Only vLLM distributes a remainder (one expert more on the first ranks), and only without redundant experts. A setting of
TensorRT-LLM for copies is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...catalog.architecture import MoESpec
from ...engines.engine import Engine
from ...plan.placement import even_cut, evening_copies
from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..expert_groups import beyond, gaps, group_width, listed
from ..layer_specs import operator_specs
from ..legality import Case, DegreeLimit, Fault
from ..reading import compute_devices, named_engine
from ..shown_faults import shown_at


def _group_sizes(view: PlanView, operator: NodeView, moe: MoESpec) -> list[int]:
    """The number of experts of each group; empty if the operator has another fault."""
    groups = operator.children_of_type("ExpertNode")
    runs = listed(operator)
    twice = any(run.times > 1 for run in runs) and "redundant_experts" not in view.relaxations
    if twice or gaps(runs, moe.experts) or beyond(runs, moe.experts):
        return []
    if len(groups) * group_width(view, groups) != len(compute_devices(operator)):
        return []
    sizes = [sum(last - first + 1 for first, last in group.expert_ranges or ()) for group in groups]
    return sizes if all(sizes) else []


def _operators(view: PlanView) -> Iterator[tuple[str, NodeView, MoESpec]]:
    for phase in view.phases:
        for operator, specs in operator_specs(view, phase):
            moe = specs[0][1].moe
            if operator.type == "MoENode" and moe is not None:
                yield phase.phase or "", operator, moe


def _fault(sizes: Sequence[int], experts: int, engine: Engine | None) -> Fault | None:
    """The fault of groups of these sizes (sorted) that host `experts`; `None` if they are right."""
    slots, ep = sum(sizes), len(sizes)
    if engine is not None and slots > experts and "redundant_experts" in engine.lacks:
        return Fault(
            "copied-experts",
            f"the {ep} expert groups host {slots} of {experts} experts; no setting of {engine.title} is known that "
            "makes copies",
            value=slots,
            expected=experts,
        )
    dealt_out = slots == experts and sizes[-1] - sizes[0] == 1
    if sizes[0] == sizes[-1] or (dealt_out and engine is not None and engine.deals_out_experts):
        return None
    even = slots % ep == 0
    return Fault(
        "uneven-groups",
        f"the {ep} expert groups host {sizes[0]} to {sizes[-1]} of {slots} experts; engines place "
        + (f"{slots // ep} on each" if even else "equally many on each, and SGLang and TensorRT-LLM nothing else"),
        value=list(sizes),
        expected=[slots // ep] * ep if even else f"an ep that divides {slots}",
        severity="warning" if engine is None else "error",
        is_proposed=engine is None,
    )


def _dealt(case: Case) -> Iterator[Fault]:
    experts, ep, engine = case.moe.experts, case.degrees.ep, case.conditions.engine
    has_copies = "redundant_experts" in case.conditions.relaxations
    # Copies make the groups even if they are allowed; groups without an expert are EP004's.
    if experts % ep and ep <= experts:
        slots = experts + (evening_copies(experts, ep) if has_copies else 0)
        fault = _fault(sorted(even_cut(slots, ep)), experts, engine)
        if fault is not None:
            yield fault


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each uneven distribution of experts of a phase, with the operators that have it."""
    engine = named_engine(view)
    by_sizes: dict[tuple[str, int, tuple[int, ...]], list[NodeView]] = {}
    for phase_name, operator, moe in _operators(view):
        sizes = _group_sizes(view, operator, moe)
        if sizes:
            by_sizes.setdefault((phase_name, moe.experts, tuple(sorted(sizes))), []).append(operator)
    for (phase_name, experts, sizes), operators in by_sizes.items():
        fault = _fault(sizes, experts, engine)
        if fault is not None:
            yield shown_at(operators, fault, f"{phase_name}: ")


RULE = Rule(
    id="EN003",
    name="uneven expert groups",
    severity="warning",
    requirement=(
        "The expert groups of a MoE operator host equally many experts: ep divides the routed (and redundant) experts. "
        "vLLM takes a remainder of one where nothing is redundant; in TensorRT-LLM nothing is. An error in a plan that "
        "names an engine."
    ),
    rationale=(
        "Engines compute which rank owns which expert as experts / ep. SGLang asserts that it divides, TensorRT-LLM "
        "handles no remainder, vLLM wants (experts + redundant) % ep = 0 once it balances load (EPLB). The largest "
        "group also sets the time of every step."
    ),
    source=(
        "vLLM 0.33.0 fused_moe/layer.py, expert_map_manager.py; SGLang 0.5.23 fused_moe_triton/layer.py; TensorRT-LLM "
        "mapping.py"
    ),
    fix="re-plan",
    remedy="spread the experts evenly, choose an ep that divides them, or allow redundant_experts to fill up",
    visits="parts",
    check=check,
    limits=(DegreeLimit(("ep",), _dealt),),
    bad=Example(
        "moe-ep4",
        (
            Edit("set", "r0.prefill.s0.b0.moe.e0", "experts", [[0, 4]]),
            Edit("set", "r0.prefill.s0.b0.moe.e1", "experts", [[5, 7]]),
        ),
    ),
)
