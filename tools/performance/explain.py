"""Explains an estimate: the largest costs, what binds, and what would help.

Nothing is guessed: each remedy is the phase timed again by the same clock, with one resource twice as fast or one
operation at no cost. It neither changes nor proposes plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ..calibration.profile import Origin
from ..catalog.hardware import HardwareFacts
from ..plan.performance import ConstantsShare, CostShare, Explanation, PhaseExplanation, Remedy, ResourceShare
from .confidence import engine_origin
from .operation import Operation, Resource
from .overlap_halves import halves_of, is_two_batch, overlaps_from_tokens, split_load
from .programs.expert_delivery import expert_load
from .schedule import PhaseTime, PhaseTimer
from .setting import Setting
from .stage_shape import Piece

COSTS_SHOWN = 5
# Remedies that save less are left out.
_LEAST_SAVED_PCT = 1.0
# A resource with a smaller share of the path is not worth timing the phase again for: it could save half of that.
_LEAST_SHARE_PCT = 3.0

_ROUNDING = 1e-9

_OWNERS: dict[str, str] = {"ffn": "FFN", "moe": "MoE", "shared": "shared expert", "head": "LM head"}
_OPERATIONS: dict[str, str] = {
    "Norm": "norm", "Embedding": "lookup", "Attention": "core", "KVCacheUpdate": "cache write",
    "Routing": "routing", "Split": "split", "Aggregate": "sum", "AllReduce": "all-reduce", "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter", "AllToAll": "all-to-all", "SendRecv": "send",
}  # fmt: skip
_FASTER: dict[Resource, str] = {
    "compute": "arithmetic twice as fast",
    "memory": "memory twice as fast",
    "link": "links inside a node twice as fast",
    "network": "network twice as fast",
    "host": "host work halved",
}


class _Cost(Struct):
    """The total cost of an operation on the critical path, by resource, and on how many layers."""

    name: str
    what: str
    seconds: dict[Resource, float] = field(default_factory=dict[Resource, float])
    layers: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def resource(self) -> Resource:
        return max(self.seconds, key=lambda key: self.seconds[key])


def explain(
    prefill: tuple[PhaseTimer, PhaseTime], decode: tuple[PhaseTimer, PhaseTime], transfer_seconds: float
) -> Explanation:
    """The explanation of an estimate from its two timed phases."""
    return Explanation(
        prefill=explain_phase(*prefill), decode=explain_phase(*decode), kv_transfer_ms=transfer_seconds * 1e3
    )


def explain_phase(timer: PhaseTimer, time: PhaseTime) -> PhaseExplanation:
    """What one phase spends its time on, and how much time single changes would save."""
    costs, resources = _costs(time), _resources(time)
    largest = sorted(costs, key=lambda cost: -cost.total)[:COSTS_SHOWN]
    exposed, hidden = _communication_seconds(time)
    return PhaseExplanation(
        resources=tuple(
            ResourceShare(resource=name, ms=seconds * 1e3, share_pct=100.0 * seconds / time.seconds)
            for name, seconds in sorted(resources.items(), key=lambda item: -item[1])
        ),
        constants=_constants(timer, time),
        largest=tuple(_share(cost, time.seconds) for cost in largest),
        remedies=_remedies(timer, time, largest, resources),
        bubble_pct=100.0 * time.parts.bubble_ms / (time.seconds * 1e3),
        exposed_communication_ms=exposed * 1e3,
        hidden_communication_ms=hidden * 1e3,
        expert_imbalance=expert_imbalance(timer, time),
    )


def _pieces(time: PhaseTime) -> Iterator[tuple[int, Piece]]:
    for stage, cell in time.cells:
        for piece in cell.pieces:
            yield stage, piece


def _base(name: str) -> str:
    """`moe.dispatch` for `moe.dispatch.send`: the parts of an exchange are one cost."""
    return ".".join(name.split(".")[:2])


def _costs(time: PhaseTime) -> list[_Cost]:
    costs: dict[str, _Cost] = {}
    for stage, piece in _pieces(time):
        named = {operation.name: operation for operation in piece.operations}
        for operation in piece.path.operations:
            name = _base(operation.name)
            cost = costs.get(name)
            if cost is None:
                cost = costs[name] = _Cost(name, label(named.get(name, operation)))
            seconds = float(operation.seconds) * piece.count
            cost.seconds[operation.resource] = cost.seconds.get(operation.resource, 0.0) + seconds
            # Halves of a layer are the same layer.
            cost.layers[stage, piece.name.partition(".")[0]] = piece.layers
    if time.host_seconds > 0.0:
        costs["host"] = _Cost("host", "scheduling, sampling and output on the host", {"host": time.host_seconds})
    return list(costs.values())


def _resources(time: PhaseTime) -> dict[Resource, float]:
    """Seconds of the critical path by the resource that they wait for."""
    totals: dict[Resource, float] = {}
    for cost in _costs(time):
        for resource, seconds in cost.seconds.items():
            totals[resource] = totals.get(resource, 0.0) + seconds
    if time.waiting_seconds > 0.0:
        totals["pipeline"] = time.waiting_seconds
    return {resource: seconds for resource, seconds in totals.items() if seconds > 0.0}


def _constants(timer: PhaseTimer, time: PhaseTime) -> tuple[ConstantsShare, ...]:
    """The critical path's time by the origin of its constants, largest first; host time counts as the engine's."""
    totals: dict[Origin, float] = {}
    for _, piece in _pieces(time):
        for operation in piece.path.operations:
            totals[operation.origin] = totals.get(operation.origin, 0.0) + float(operation.seconds) * piece.count
    engine = engine_origin(timer.setting)
    totals[engine] = totals.get(engine, 0.0) + time.host_seconds
    whole = sum(totals.values())
    return tuple(
        ConstantsShare(constants=origin.kind, of=origin.of or None, ms=seconds * 1e3, share_pct=100.0 * seconds / whole)
        for origin, seconds in sorted(totals.items(), key=lambda item: -item[1])
        if seconds > 0.0
    )


def label(operation: Operation) -> str:
    """An operation in words: `FFN gate_up matmul`, `MoE dispatch all-to-all`."""
    owner = _OWNERS.get(operation.owner, operation.owner)
    if operation.op == "Linear":
        return f"{owner} matmul" if operation.role == "lm_head" else f"{owner} {operation.role} matmul"
    if operation.op == "Expert":
        return "routed experts"
    part = operation.name.rpartition(".")[2]
    kind = _OPERATIONS[operation.op]
    return f"{owner} {part} {kind}" if part in ("dispatch", "combine", "exchange", "slices") else f"{owner} {kind}"


def _share(cost: _Cost, whole: float) -> CostShare:
    return CostShare(
        what=cost.what,
        layers=sum(cost.layers.values()),
        ms=cost.total * 1e3,
        share_pct=100.0 * cost.total / whole,
        resource=cost.resource,
    )


def _communication_seconds(time: PhaseTime) -> tuple[float, float]:
    """Seconds of communication, in the passes on the path, that compute waits for, and that are hidden behind it."""
    exposed = links = 0.0
    for _, cell in time.cells:
        compute = sum(piece.busy_seconds(on_links=False) for piece in cell.pieces)
        exposed += max(0.0, float(cell.seconds - cell.host_seconds) - compute)
        links += sum(piece.busy_seconds(on_links=True) for piece in cell.pieces)
    exposed = min(exposed, links)
    hidden = links - exposed
    # A remainder from rounding is not hidden communication.
    return exposed, hidden if hidden > _ROUNDING * time.seconds else 0.0


def _remedies(
    timer: PhaseTimer, time: PhaseTime, largest: list[_Cost], resources: dict[Resource, float]
) -> tuple[Remedy, ...]:
    """What saves time, the largest saving first, each found by timing the phase again."""
    remedies: list[Remedy] = []

    def tried(what: str, changed: PhaseTimer, kind: Literal["change", "removal"] = "change") -> None:
        saved_pct = 100.0 * (1.0 - changed.seconds_again(time) / time.seconds)
        if saved_pct >= _LEAST_SAVED_PCT:
            remedies.append(Remedy(what=what, kind=kind, saves_pct=saved_pct))

    for resource, what in _FASTER.items():
        if 100.0 * resources.get(resource, 0.0) / time.seconds >= _LEAST_SHARE_PCT:
            tried(what, timer.under(faster(timer.setting, resource)))
    talks = resources.get("link", 0.0) + resources.get("network", 0.0)
    if is_two_batch(timer.setting):
        tried("without two-batch overlap", timer.under(_overlapping(timer.setting, chosen=False)))
    elif 100.0 * talks / time.seconds >= _LEAST_SHARE_PCT and split_load(time.loads[0]) is not None:
        tried("two-batch overlap", timer.under(_overlapping(timer.setting, chosen=True)))
    for cost in largest:
        # Nobody can remove the host's work.
        if cost.name != "host":
            tried(cost.what, timer.under(timer.setting, cost.name), "removal")
    return tuple(sorted(remedies, key=lambda remedy: -remedy.saves_pct))


def overlap_notes(passes: Iterable[tuple[PhaseTimer, PhaseTime]]) -> Iterator[str]:
    """For a plan with two-batch overlap: which passes are not halved, and which it makes longer."""
    for timer, time in passes:
        setting, phase = timer.setting, timer.phase.phase
        if not is_two_batch(setting):
            continue
        if halves_of(setting, time.loads[0]) is None:
            least = overlaps_from_tokens(setting, phase)
            does = f"{setting.engine.facts.title} does from {least:,} tokens a rank on"
            yield f"two-batch overlap: no {phase} pass of this load is halved; {does}"
            continue
        whole_s = timer.under(_overlapping(setting, chosen=False)).seconds_again(time)
        saved_pct = 100.0 * (1.0 - whole_s / time.seconds)
        if saved_pct >= _LEAST_SAVED_PCT:
            yield f"two-batch overlap costs {phase} more than it hides: a pass without it takes {saved_pct:.0f}% less"


def _overlapping(setting: Setting, *, chosen: bool) -> Setting:
    # Operations are the same in both, so cached times still hold.
    overlap = {"overlap": "two_batch" if chosen else "none"}
    return replace(setting, serving=setting.serving.model_copy(update=overlap))


def faster(setting: Setting, resource: Resource) -> Setting:
    """`setting` with one resource of its hardware twice as fast; latencies and launches stay as they are."""
    if resource == "host":
        constants = setting.engine.entry.constants
        halved = {
            name: getattr(constants, name) / 2 for name in ("host_step_ms", "host_sequence_us", "host_prefill_ms")
        }
        entry = setting.engine.entry.model_copy(update={"constants": constants.model_copy(update=halved)})
        # Kernels do not depend on the host, so cached times still hold.
        return replace(setting, profile=setting.engine.model_copy(update={"entry": entry}))
    return replace(setting, hardware=_faster(setting.hardware, resource), caches={})


def _faster(facts: HardwareFacts, resource: Resource) -> HardwareFacts:
    accelerator = facts.accelerator
    if resource == "compute":
        peaks = accelerator.dense_peak_tflops
        doubled = {name: 2.0 * value for name, value in peaks if isinstance(value, float | int)}
        measured = {name: 2.0 * value for name, value in (accelerator.measured_max_matmul_tflops or {}).items()}
        update = {"dense_peak_tflops": peaks.model_copy(update=doubled), "measured_max_matmul_tflops": measured or None}
        return replace(facts, accelerator=accelerator.model_copy(update=update))
    if resource == "memory":
        doubled = 2.0 * facts.memory_bandwidth_bytes_s
        quick = accelerator.model_copy(update={"memory_bandwidth_gb_s": doubled / 1e9})
        return replace(facts, accelerator=quick, stated_memory_bandwidth_bytes_s=doubled)
    if resource == "link":
        if facts.island_gpus is not None and (pcie := accelerator.host_pcie_gb_s_unidirectional) is not None:
            accelerator = accelerator.model_copy(update={"host_pcie_gb_s_unidirectional": 2.0 * pcie})
            facts = replace(facts, accelerator=accelerator)
        return replace(facts, stated_intra_bw_bytes_s=2.0 * facts.intra_bw_bytes_s)
    return replace(facts, stated_inter_bw_bytes_s=2.0 * facts.inter_bw_bytes_s)


def expert_imbalance(timer: PhaseTimer, time: PhaseTime) -> float | None:
    """Load of the slowest expert group over the mean, as timed; `None` if no devices share experts."""
    load = time.loads[0]
    halves = halves_of(timer.setting, load)
    imbalances = [
        float(expert_load(stage.context(part), kind.spec.moe).imbalance)
        for stage in timer.stages
        if stage.shape.ep > 1
        for kind in stage.kinds
        if kind.spec.moe is not None
        for part in halves or (load,)
    ]
    return max(imbalances, default=None)
