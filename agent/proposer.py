"""The built-in proposer: an `Intent` to the best strategy on real hardware, with the reasons against the others.

It needs no language model and no network: it searches the space of legal strategies with the performance model. Where
hardware was left open it finds the smallest that does; where nothing fits it says what would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..tools.catalog.accelerators import Accelerator
from ..tools.catalog.architecture import Architecture
from ..tools.catalog.config import read_architecture
from ..tools.catalog.hardware import all_accelerators, find_accelerator
from ..tools.errors import InputError, MissingFieldError
from ..tools.plan.document import HardwareBlock, PolicyBlock, Strategy
from ..tools.search.candidate import Candidate, SearchRequest, SearchResult
from ..tools.search.describe import describe
from ..tools.search.ranking import worth
from ..tools.search.search import search
from ..tools.search.sizing import MAX_GPUS, Sized, facts_of, fewest_gpus, resized, weights_bytes
from .intent.intent import Assumption, HardwareChoice, Intent, StatedStrategy
from .reasons import Proposal, figures
from .results import Infeasible, Needs

# An accelerator that nobody named is chosen among these vendors' parts: those that the common engines run on.
_DEFAULT_VENDORS = ("NVIDIA", "AMD")
# The search for unnamed hardware looks no further than this many accelerators.
_MAX_UNNAMED_GPUS = 64
# Where no number of accelerators does, the closest plan is shown for a cluster of about this size.
_SHOWN_GPUS = 64
# What a relaxation would change is looked at up to this many accelerators, and said from this gain on.
_HINT_GPUS = 64
_HINT_GAIN = 0.05
# More hardware of the same kind is looked for up to this many times what there is, where a limit of time binds.
_LIMIT_REACH = 8


def accelerator_of(choice: HardwareChoice) -> Accelerator:
    """The accelerator of a hardware choice, looked up where it is a name."""
    return choice.accelerator if isinstance(choice.accelerator, Accelerator) else find_accelerator(choice.accelerator)


def hardware_block(choice: HardwareChoice, nodes: int) -> HardwareBlock:
    """The hardware block of a plan on `nodes` nodes of the chosen hardware."""
    return HardwareBlock(
        accelerator=choice.accelerator,
        nodes=nodes,
        gpus_per_node=choice.gpus_per_node,
        intra_node_bw_gb_s=choice.intra_node_bw_gb_s,
        inter_node_bw_gb_s=choice.inter_node_bw_gb_s,
    )


def search_request(intent: Intent, architecture: Architecture, hardware: HardwareBlock) -> SearchRequest:
    """The search that answers `intent` on `hardware`."""
    accelerator = hardware.accelerator
    if not isinstance(accelerator, Accelerator):
        accelerator = find_accelerator(accelerator)
    return SearchRequest(
        architecture=architecture,
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        workload=intent.workload,
        precision=intent.precision,
        policy=PolicyBlock(relaxations=intent.relaxations, memory_utilization=intent.memory_utilization),
        serving=intent.serving,
        concurrency_open=intent.concurrency_open,
        disaggregated=intent.disaggregated,
        calibration=intent.calibration,
    )


def propose(intent: Intent, constraint: StatedStrategy | None = None) -> Proposal | Infeasible:
    """The best strategy for `intent`, or why there is none.

    `constraint` holds degrees that the person asked for: candidates that keep them go first; where no feasible one
    keeps them the best of the rest is proposed, and the note says so.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    architecture = read_architecture(intent.model.config, where=f"config of {intent.model.name}")
    choice = intent.hardware
    if choice is None:
        return _on_any_hardware(intent, architecture)
    request = search_request(intent, architecture, hardware_block(choice, choice.nodes or 1))
    if choice.nodes is None:
        sized = fewest_gpus(request, choice.gpus_per_node)
        if sized is None:
            largest = resized(request, max(1, _SHOWN_GPUS // choice.gpus_per_node), choice.gpus_per_node)
            return _infeasible(largest, search(largest), choice.gpus_per_node)
        return _chosen(sized, (_sized_assumption(sized),))
    result = search(request)
    if result.best is None:
        usual_node = accelerator_of(choice).typical_node_accelerators or choice.gpus_per_node
        return _infeasible(request, result, usual_node)
    proposal = (
        Proposal(request, result.best, result) if constraint is None else _constrained(request, result, constraint)
    )
    return replace(proposal, hint=_relaxed_hint(request, proposal.chosen))


def _relaxed_hint(request: SearchRequest, chosen: Candidate | None) -> str | None:
    """What the relaxation that large MoE deployments use would change, where it changes something worth saying.

    Nothing is relaxed unasked: this only names the alternative (rules.md R13).
    """
    if not request.architecture.is_moe or "attention_dp" in request.policy.relaxations:
        return None
    if request.disaggregated or not 1 < request.facts.gpus <= _HINT_GPUS:
        return None
    policy = request.policy.model_copy(update={"relaxations": (*request.policy.relaxations, "attention_dp")})
    best = search(replace(request, policy=policy)).best
    if best is None or not best.strategy.decode.attention_dp:
        return None
    found = f"{describe(best.strategy)} with {figures(best)}"
    if chosen is None:
        return f"with attention DP allowed (--relax attention_dp) there is a plan: {found}"
    gain = worth(chosen, request.workload.objective) / worth(best, request.workload.objective) - 1
    if gain < _HINT_GAIN:
        return None
    return f"with attention DP allowed (--relax attention_dp) {found} would be {gain:.0%} better"


def _sized_assumption(sized: Sized) -> Assumption:
    hardware = sized.request.hardware
    return Assumption(
        field="hardware",
        value=f"{hardware.nodes}x{hardware.gpus_per_node}",
        reason="the number of accelerators was left open: the fewest that hold every limit",
    )


def _chosen(sized: Sized, assumptions: tuple[Assumption, ...]) -> Proposal:
    if sized.result is None or sized.result.best is None:
        raise InputError(sized.unknown or "the hardware cannot be evaluated")
    return Proposal(sized.request, sized.result.best, sized.result, assumptions)


def keeps(strategy: Strategy, stated: StatedStrategy) -> bool:
    """Whether `strategy` has every degree that was stated."""
    if stated.dp is not None and strategy.dp != stated.dp:
        return False
    if stated.gpus is not None and strategy.gpu_count != stated.gpus:
        return False
    for phase, wanted in ((strategy.prefill, stated.prefill), (strategy.decode, stated.decode)):
        for name, value in wanted.model_dump().items():
            if value is not None and (getattr(phase, name) or 1) != value:
                # SP belongs to prefill: asked for in general, decode stays without it.
                if name == "sp" and phase is strategy.decode:
                    continue
                return False
    return True


def _constrained(request: SearchRequest, result: SearchResult, stated: StatedStrategy) -> Proposal:
    keeping = [candidate for candidate in result.candidates if keeps(candidate.strategy, stated)]
    best = result.best
    assert best is not None
    feasible = next((candidate for candidate in keeping if candidate.feasible), None)
    if feasible is not None:
        note = None
        if feasible is not best:
            better = f"{describe(best.strategy)} would be better ({figures(best)})"
            note = f"The degrees asked for are kept; without them {better}."
        return Proposal(request, feasible, result, note=note)
    why = keeping[0].why_not[0] if keeping else "no legal strategy on this hardware has them"
    return Proposal(
        request, best, result, note=f"The degrees asked for cannot be kept: {why}. This is the best without."
    )


def _unnamed_clusters(need_bytes: float, utilization: float) -> Iterator[tuple[Accelerator, int, int]]:
    """(accelerator, nodes, GPUs per node) that could hold `need_bytes`, by total memory, then by number."""
    options: list[tuple[float, int, str, Accelerator, int, int]] = []
    for accelerator in all_accelerators():
        if accelerator.vendor not in _DEFAULT_VENDORS:
            continue
        node = accelerator.typical_node_accelerators or 1
        memory, _ = accelerator.memory_bytes()
        counts = [(1, count) for count in (1, 2, 4, 8) if count <= node]
        counts += [(nodes, node) for nodes in (2, 4, 8) if nodes * node <= _MAX_UNNAMED_GPUS]
        for nodes, per_node in counts:
            gpus = nodes * per_node
            if gpus * memory * utilization >= need_bytes:
                options.append((gpus * memory, gpus, accelerator.id, accelerator, nodes, per_node))
    for _, _, _, accelerator, nodes, per_node in sorted(options, key=lambda option: option[:3]):
        yield accelerator, nodes, per_node


def _on_any_hardware(intent: Intent, architecture: Architecture) -> Proposal | Infeasible:
    first: tuple[SearchRequest, SearchResult] | None = None
    need: float | None = None
    probe = all_accelerators()[0]
    block = HardwareBlock(accelerator=probe.id, nodes=1, gpus_per_node=1)
    need = weights_bytes(search_request(intent, architecture, block))
    for accelerator, nodes, per_node in _unnamed_clusters(need, intent.memory_utilization):
        hardware = HardwareBlock(accelerator=accelerator.id, nodes=nodes, gpus_per_node=per_node)
        request = search_request(intent, architecture, hardware)
        try:
            result = search(request)
        except MissingFieldError:
            # A link between its nodes is not known: what cannot be timed is not proposed unasked.
            continue
        if result.best is not None:
            assumption = Assumption(
                field="hardware",
                value=f"{nodes}x{per_node}:{accelerator.id}",
                reason="no hardware was named: the least memory in all that holds every limit",
            )
            return Proposal(request, result.best, result, (assumption,))
        first = first or (request, result)
    if first is None:
        reason = (
            f"the weights alone take {need / 1e9:.0f} GB: more than {_MAX_UNNAMED_GPUS} accelerators of any kind hold"
        )
        return Infeasible(reason=reason, rule="ME001", needs=Needs(note="name hardware with more memory"))
    return _infeasible(first[0], first[1], first[0].hardware.gpus_per_node)


@dataclass(frozen=True, slots=True)
class _Binding:
    """The hard rule that binds, why, by how much memory, and the plan that comes closest."""

    rule: str
    reason: str
    shortfall_bytes: int | None
    closest: Candidate | None


def _time_binds(request: SearchRequest, best: Candidate) -> _Binding:
    missed = "; ".join(best.why_not).replace("PE010: ", "")
    return _Binding("PE010", f"no strategy on {_kind(request)} holds the limits; the best: {missed}", None, best)


def _memory_binds(request: SearchRequest, closest: Candidate | None) -> _Binding:
    need = weights_bytes(request)
    usable = request.facts.gpus * request.facts.memory_bytes * request.policy.memory_utilization
    lacking = closest.shortfall_bytes if closest is not None else None
    shortfall = lacking if lacking is not None else max(0, round(need - usable))
    fewer = None if request.concurrency_open else _most_requests(request)
    if fewer is None:
        twice = " in each of the two kinds of replica" if request.disaggregated else ""
        reason = (
            f"the weights alone take {need / 1e9:.1f} GB{twice}, {_kind(request)} have {usable / 1e9:.1f} GB usable"
        )
    else:
        workload = request.workload
        tokens = workload.input_tokens + workload.output_tokens
        reason = (
            f"{workload.concurrency:,} requests of {tokens:,} tokens do not fit into "
            f"{_kind(request)} beside {need / 1e9:.1f} GB of weights; at most {fewer.concurrency:,} do"
        )
    if lacking is not None and fewer is None:
        reason += f"; the closest layout lacks {lacking / 1e9:.1f} GB on its fullest GPU"
    return _Binding("ME001", reason, shortfall, fewer or closest)


def _most_requests(request: SearchRequest) -> Candidate | None:
    """The plan with the most requests in flight that fits, or `None` where not even one does."""
    workload = request.workload.model_copy(update={"objective": "throughput"})
    result = search(replace(request, workload=workload, concurrency_open=True))
    fitting = [candidate for candidate in result.candidates if candidate.ttft_ms is not None]
    return max(fitting, key=lambda candidate: candidate.concurrency, default=None)


def _kind(request: SearchRequest) -> str:
    return f"{request.facts.gpus} × {request.facts.accelerator.id}"


def _infeasible(request: SearchRequest, result: SearchResult, usual_node: int) -> Infeasible:
    """Why nothing on this hardware will do, the least of the same kind that would, and the closest plan."""
    best = next(iter(result.candidates), None)
    timed = best is not None and best.ttft_ms is not None
    binding = _time_binds(request, best) if best is not None and timed else _memory_binds(request, best)
    have = request.facts.gpus
    # Memory is a matter of enough GPUs; a limit that eight times as many do not hold is not held by more of them.
    at_most = MAX_GPUS if binding.rule == "ME001" else min(MAX_GPUS, _LIMIT_REACH * have)
    sized = fewest_gpus(request, usual_node, more_than=have, at_most=at_most)
    hint = _relaxed_hint(request, None)
    return Infeasible(
        reason=f"{binding.reason}; {hint}" if hint else binding.reason,
        rule=binding.rule,
        shortfall_bytes=binding.shortfall_bytes,
        needs=_needs(request, sized, at_most),
        closest=None if binding.closest is None else binding.closest.model_dump(mode="json"),
    )


def _needs(request: SearchRequest, sized: Sized | None, tried: int) -> Needs:
    name = request.facts.accelerator.id
    if sized is None:
        return Needs(accelerator=name, note=f"no number of {name} up to {tried} is enough")
    hardware = sized.request.hardware
    best = sized.result.best if sized.result is not None else None
    return Needs(
        gpus=hardware.nodes * hardware.gpus_per_node,
        nodes=hardware.nodes,
        accelerator=name,
        note=f"fits into memory; not timed, since {sized.unknown}"
        if best is None
        else f"{describe(best.strategy)}: {figures(best)}",
    )


def with_concurrency(request: SearchRequest, concurrency: int) -> SearchRequest:
    """The request with its concurrency decided."""
    workload = request.workload.model_copy(update={"concurrency": concurrency})
    return replace(request, workload=workload, concurrency_open=False)
