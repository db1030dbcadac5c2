"""What an author decided, read from whatever a proposal holds: the request of a plan as it would be were it whole.

Degrees, cuts, replicas, the devices of each stage in their order and the experts of each device are read from the
declared strategy and from the graph, damaged parts outvoted by sound ones; what is left open is completed and noted.
It judges nothing: an intent may be illegal, or lack what nobody can guess (`missing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..bounds import DEGREE
from ..catalog.architecture import Architecture
from ..plan.builder import BuildRequest
from ..plan.document import (
    PHASES,
    HardwareBlock,
    ModelBlock,
    Phase,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.layout import Layout
from ..plan.placement import StageMaker, gpu_count, phase_width
from ..plan.view import PlanView, as_int, as_list, as_mapping
from ..rules.degrees import root_replicas
from .intent_degrees import read_phases
from .intent_devices import ReplicaDevices, read_devices
from .intent_header import (
    PlanDefaults,
    read_hardware,
    read_model,
    read_policy,
    read_precision,
    read_serving,
    read_workload,
)
from .intent_notes import Note, Notes
from .placing import MOST_DEVICES, place_like

__all__ = ["Note", "PlanDefaults", "PlanIntent", "read_intent"]


@dataclass(frozen=True)
class PlanIntent:
    """What was decided. `missing` names what is neither said nor can be completed: with any of it nothing is built.

    `devices` are the author's by replica; `notes` say what was read from where.
    """

    model: ModelBlock | None
    architecture: Architecture | None
    hardware: HardwareBlock | None
    workload: WorkloadBlock | None
    precision: PrecisionBlock | None
    policy: PolicyBlock
    serving: ServingBlock | None
    strategy: Strategy | None
    devices: tuple[ReplicaDevices, ...] = ()
    redundant_experts: int = 0
    notes: tuple[Note, ...] = ()
    missing: tuple[str, ...] = ()

    @cached_property
    def request(self) -> BuildRequest | None:
        """What the builder needs, or `None` where something is missing or the strategy has no layout."""
        if self.strategy is None:
            return None
        layout = layout_like(self, self.strategy, self.redundant_experts)
        return None if layout is None else build_request(self, self.strategy, layout)


def layout_like(intent: PlanIntent, strategy: Strategy, redundant_experts: int) -> Layout | None:
    """`strategy` on the author's devices; `None` where it does not fit into the hardware or has no layout."""
    if intent.architecture is None or intent.hardware is None:
        return None
    layers = intent.architecture.num_layers
    for phase in (strategy.prefill, strategy.decode):
        sizes = phase.stage_layers
        if phase.pp > layers or (sizes is not None and (len(sizes) != phase.pp or sum(sizes) != layers or 0 in sizes)):
            return None
    maker = StageMaker(intent.architecture, frozenset(intent.policy.relaxations), redundant_experts)
    return place_like(strategy, maker, intent.hardware, intent.devices)


def build_request(intent: PlanIntent, strategy: Strategy, layout: Layout) -> BuildRequest | None:
    """What the builder needs for `strategy` in the setting of `intent`; `None` where something of it is missing."""
    if intent.model is None or intent.hardware is None or intent.workload is None or intent.precision is None:
        return None
    return BuildRequest(
        model=intent.model,
        hardware=intent.hardware,
        workload=intent.workload,
        precision=intent.precision,
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        policy=intent.policy,
        serving=intent.serving,
        layout=layout,
    )


def read_intent(view: PlanView, defaults: PlanDefaults | None = None) -> PlanIntent:
    """The intent of the document behind `view`; `defaults` stand in for what the document leaves out. Never raises."""
    asked, notes = defaults or PlanDefaults(), Notes()
    model, architecture = read_model(view, asked.model, notes)
    policy = read_policy(view)
    strategy, devices = None, read_devices(view)
    if architecture is not None:
        phases = read_phases(view, architecture, notes)
        if phases:
            strategy = _strategy(view, phases, devices, notes)
    gpus = 1 if strategy is None else gpu_count(strategy)
    hardware = read_hardware(view, asked.hardware, gpus, notes)
    workload = read_workload(view, asked.workload, notes)
    precision = None
    if architecture is not None:
        precision = read_precision(view, asked.precision, architecture, hardware, notes)
    return PlanIntent(
        model=model,
        architecture=architecture,
        hardware=hardware,
        workload=workload,
        precision=precision,
        policy=policy,
        serving=read_serving(view),
        strategy=strategy,
        devices=devices,
        redundant_experts=_redundant(view, architecture),
        notes=tuple(notes.notes),
        missing=tuple(notes.missing),
    )


def _strategy(
    view: PlanView, phases: dict[Phase, PhaseStrategy], devices: tuple[ReplicaDevices, ...], notes: Notes
) -> Strategy:
    """Both phases with the number of replicas."""
    counts = _sides(view, phases, devices)
    if counts is not None:
        found = _apart(phases, counts)
        notes.say("strategy", f"{counts['prefill']} prefill and {counts['decode']} decode replicas", "replicas apart")
    else:
        found = Strategy(dp=1, gpu_count=1, prefill=phases["prefill"], decode=phases["decode"])
        found = found.model_copy(update={"dp": _dp(view, gpu_count(found), notes)})
    return found.model_copy(update={"gpu_count": gpu_count(found)})


def _apart(phases: Mapping[Phase, PhaseStrategy], counts: Mapping[Phase, int]) -> Strategy:
    """Both phases on so many replicas of their own each."""
    sides = {phase: phases[phase].model_copy(update={"replicas": counts[phase]}) for phase in PHASES}
    return Strategy(dp=sum(counts.values()), gpu_count=1, prefill=sides["prefill"], decode=sides["decode"])


def _sides(
    view: PlanView, phases: dict[Phase, PhaseStrategy], devices: tuple[ReplicaDevices, ...]
) -> dict[Phase, int] | None:
    """Replicas of each kind where prefill and decode are apart; `None` where replicas serve both.

    More than the graph has are believed where the declared `dp` and GPU count agree with them.
    """
    declared = _declared_replicas(view)
    shown: dict[Phase, int] = {phase: _serving_alone(devices, phase) for phase in PHASES}
    stated = as_int(view.strategy.get("dp")) or 0
    believed = list(_agreeing_counts(view, phases, shown, declared))
    if len(believed) == 1 and not _serves_both(view):
        return believed[0]
    if any(len(replica.phases) == 2 for replica in devices):
        return None
    counts: dict[Phase, int] = {phase: shown[phase] or declared.get(phase, 0) for phase in PHASES}
    if declared:
        counts = {phase: count or max(0, stated - sum(counts.values())) for phase, count in counts.items()}
    return counts if all(counts.values()) and (declared or all(shown.values())) else None


def _agreeing_counts(
    view: PlanView, phases: Mapping[Phase, PhaseStrategy], shown: Mapping[Phase, int], declared: Mapping[Phase, int]
) -> Iterator[dict[Phase, int]]:
    """Replicas of each kind, no fewer than are shown, that agree with the declared `dp` and GPU count.

    Where none are declared, some must be shown, and the GPU count not be that of replicas that serve both phases.
    """
    dp, gpus = as_int(view.strategy.get("dp")) or 0, as_int(view.strategy.get("gpu_count"))
    widths = [phase_width(phases[phase]) for phase in PHASES]
    if not declared and (gpus == dp * max(widths) or not any(shown.values())):
        return
    for prefill in range(1, min(dp, MOST_DEVICES)):
        counts: dict[Phase, int] = {"prefill": prefill, "decode": dp - prefill}
        is_kept = all(counts[phase] >= shown[phase] for phase in PHASES) and counts == {**counts, **declared}
        if is_kept and gpus == prefill * widths[0] + (dp - prefill) * widths[1]:
            yield counts


def _serving_alone(devices: tuple[ReplicaDevices, ...], phase: Phase) -> int:
    """Replicas that serve `phase` and not the other; one of which no stage is left shows nothing."""
    return sum(list(replica.phases) == [phase] and bool(replica.phases[phase]) for replica in devices)


def _declared_replicas(view: PlanView) -> dict[Phase, int]:
    """Replicas of each kind, as far as the strategy declares them."""
    declared: dict[Phase, int] = {}
    for phase in PHASES:
        count = as_int(as_mapping(view.strategy.get(phase)).get("replicas"))
        if count is not None and 1 <= count <= MOST_DEVICES:
            declared[phase] = count
    return declared


def _serves_both(view: PlanView) -> bool:
    """Whether both phases hang below one replica; a phase that lost its replica shows nothing."""
    served = {(branch.replica.position, branch.phase) for branch in view.phases if branch.replica is not None}
    return len(served) > len({position for position, _ in served})


def _dp(view: PlanView, width: int, notes: Notes) -> int:
    """Replicas: those of the graph, or the declared ones where there are fewer and the GPU count bears them out."""
    stated, found = as_int(view.strategy.get("dp")), len(root_replicas(view))
    if stated is None or not DEGREE.hold(stated):
        stated = None
    if stated is not None and stated == len(view.replicas):
        found = stated
    if stated is None or stated == found:
        notes.say("strategy.dp", max(1, found), "shown by the graph")
        return max(1, found)
    gpus = as_int(view.strategy.get("gpu_count"))
    declared = stated > found and (found == 0 or gpus in (None, stated * width) or _says_fan_out(view))
    notes.say("strategy.dp", stated if declared else found, "declared" if declared else "shown by the graph")
    return stated if declared else max(1, found)


def _says_fan_out(view: PlanView) -> bool:
    """Whether the construction names a fan-out that a graph of one replica does not have."""
    return len(view.replicas) < 2 and "dp_fan_out" in as_list(view.raw.get("construction"))


def _redundant(view: PlanView, architecture: Architecture | None) -> int:
    """Copies of experts that most MoE operators hold beyond one of each, where the policy allows any."""
    if architecture is None or "redundant_experts" not in view.relaxations:
        return 0
    sizes: dict[int, int] = {}
    for operator in view.of_type("MoENode"):
        groups = operator.children_of_type("ExpertNode")
        listed = sum(last - first + 1 for group in groups for first, last in group.expert_ranges or ())
        sizes[listed] = sizes.get(listed, 0) + 1
    usual = max(sizes, key=lambda size: (sizes[size], -size), default=0)
    return max(0, usual - architecture.num_experts) if usual <= 2 * architecture.num_experts else 0
