"""What an author decided, read from whatever a proposal holds: the request of a plan as it would be were it whole.

Degrees, cuts, replicas, the devices of each stage in their order and the experts of each device are read from the
declared strategy and from the graph, damaged parts outvoted by sound ones; what is left open is completed and noted.
It judges nothing: an intent may be illegal, or lack what nobody can guess (`missing`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from ..catalog.architecture import Architecture
from ..plan.builder import BuildRequest
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.placement import StageMaker, gpu_count
from ..plan.view import PlanView
from .intent_header import HeaderReader, Notes, PlanDefaults
from .intent_strategy import read_strategy
from .placing import ReplicaDevices, place_like, read_devices

__all__ = ["PlanDefaults", "PlanIntent", "read_intent"]


@dataclass(frozen=True)
class PlanIntent:
    """What was decided. `missing` names what is neither said nor can be completed: with any of it nothing is built.

    `devices` are the author's by replica; `completed` says in words what was left open and what it was taken for.
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
    completed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @cached_property
    def request(self) -> BuildRequest | None:
        """What the builder needs, or `None` where something is missing or the strategy has no layout."""
        return None if self.strategy is None else self.request_for(self.strategy, self.redundant_experts)

    def request_for(self, strategy: Strategy, redundant_experts: int) -> BuildRequest | None:
        """What the builder needs for `strategy` on the author's devices; `None` where it has no layout on them."""
        if self.architecture is None or self.hardware is None or self.model is None:
            return None
        layers = self.architecture.num_layers
        for phase in (strategy.prefill, strategy.decode):
            cut = phase.stage_layers
            if phase.pp > layers or (cut is not None and (len(cut) != phase.pp or sum(cut) != layers or 0 in cut)):
                return None
        maker = StageMaker(self.architecture, frozenset(self.policy.relaxations), redundant_experts)
        layout = place_like(strategy, maker, self.hardware, self.devices)
        if layout is None or self.workload is None or self.precision is None:
            return None
        return BuildRequest(
            model=self.model,
            hardware=self.hardware,
            workload=self.workload,
            precision=self.precision,
            strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
            policy=self.policy,
            serving=self.serving,
            layout=layout,
        )


def read_intent(view: PlanView, defaults: PlanDefaults | None = None) -> PlanIntent:
    """The intent of the document behind `view`; `defaults` stand in for what the document leaves out. Never raises."""
    notes = Notes()
    header = HeaderReader(view, defaults or PlanDefaults(), notes)
    model, architecture = header.model() or (None, None)
    devices = read_devices(view)
    strategy = None if architecture is None else read_strategy(view, architecture, devices, notes)
    hardware = header.hardware(1 if strategy is None else gpu_count(strategy))
    return PlanIntent(
        model=model,
        architecture=architecture,
        hardware=hardware,
        workload=header.workload(),
        precision=None if architecture is None else header.precision(architecture, hardware),
        policy=header.policy(),
        serving=header.serving(),
        strategy=strategy,
        devices=devices,
        redundant_experts=_redundant(view, architecture),
        completed=tuple(notes.completed),
        missing=tuple(notes.missing),
    )


def _redundant(view: PlanView, architecture: Architecture | None) -> int:
    """Copies of experts that most MoE operators hold beyond one of each, where the policy allows any."""
    if architecture is None or "redundant_experts" not in view.relaxations:
        return 0
    groups = [operator.children_of_type("ExpertNode") for operator in view.of_type("MoENode")]
    ranges = ([span for group in of_operator for span in group.expert_ranges or ()] for of_operator in groups)
    sizes = Counter(sum(last - first + 1 for first, last in of_operator) for of_operator in ranges)
    usual = max(sizes, key=lambda size: (sizes[size], -size), default=0)
    return max(0, usual - architecture.num_experts) if usual <= 2 * architecture.num_experts else 0
