"""What a person asked for, complete: every field of an `Intent` that was not said is a stated assumption."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.calibration.custom import CustomCalibration
from ...tools.catalog.accelerators import Accelerator, AcceleratorName, Bandwidth
from ...tools.engines.names import EngineName
from ...tools.frozen import Frozen
from ...tools.language.said import OpenPrecisions, StatedStrategy
from ...tools.plan.constraints import Constraint
from ...tools.plan.document import (
    Degree,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    WorkloadBlock,
)
from ...tools.plan.rate_curve import DayAsked


class Assumption(Frozen):
    """A value that nobody stated, and why it was chosen."""

    field: str
    value: Any
    reason: str


class ModelChoice(Frozen):
    """The model: the name that the plan carries, and the config that the plan is checked with."""

    name: str
    config: dict[str, Any]
    source: str

    @property
    def block(self) -> ModelBlock:
        """The model as a plan names it."""
        return ModelBlock(name=self.name, config=self.config)


class HardwareChoice(Frozen):
    """The hardware. `nodes` is `None` where it is left open (then the fewest GPUs that do).

    `is_most`: no more than these may be used, and what is not used need not be paid for.
    """

    accelerator: AcceleratorName | Accelerator
    nodes: Degree | None
    gpus_per_node: Degree
    intra_node_bw_gb_s: Bandwidth | None = None
    inter_node_bw_gb_s: Bandwidth | None = None
    # Neither shown nor stated again: an edited number of GPUs is that number.
    is_most: bool = Field(default=False, exclude=True)

    @property
    def gpus(self) -> int | None:
        """Accelerators in all, or `None` where open."""
        return None if self.nodes is None else self.nodes * self.gpus_per_node


class Intent(Frozen):
    """A complete, typed request. `hardware` is `None` only where no accelerator was named: then the smallest that does.

    `concurrency_open` says that no concurrency was stated and the objective wants the most that fits;
    `workload.concurrency` is then 1 until the planner has sized it.
    """

    model: ModelChoice
    hardware: HardwareChoice | None
    # The same number of each kind where kinds were named to choose from; `hardware` is then the first of them.
    hardware_choices: tuple[HardwareChoice, ...] = ()
    workload: WorkloadBlock
    concurrency_open: bool
    # Rates over a day; the workload has their peak.
    day: DayAsked | None = None
    precision: PrecisionBlock
    # Number formats that were left open; `precision` is then the first of them.
    precisions: OpenPrecisions | None = None
    relaxations: tuple[Relaxation, ...] = ()
    memory_utilization: float = 0.90
    disaggregated: bool | None = None
    serving: ServingBlock | None = None
    # Where no engine is named: the one that must be able to start the plan; `None` then: a plan on paper.
    assumed_engine: EngineName | None = None
    usd_per_gpu_hour: float | None = None
    strategy: StatedStrategy | None = None
    # Weighed against each other: none is a demand.
    compared: tuple[StatedStrategy, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    # A user's own calibration; results name it in their estimate.
    calibration: CustomCalibration | None = Field(default=None, exclude=True)
    words: dict[str, str] = Field(default_factory=dict[str, str])
    assumptions: tuple[Assumption, ...] = ()
    readings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    # The trace that the lengths come from, described in a line; a second line says what part of it the plan is for.
    trace: str | None = None

    @property
    def stated_relaxations(self) -> tuple[Relaxation, ...]:
        """The relaxations that the person allowed, less what an engine does by itself, which stands as assumed."""
        assumed = {assumption.value for assumption in self.assumptions if assumption.field == "relaxations"}
        return tuple(name for name in self.relaxations if name not in assumed)

    @property
    def policy(self) -> PolicyBlock:
        """The policy of its plans."""
        return PolicyBlock(
            relaxations=self.relaxations,
            memory_utilization=self.memory_utilization,
            constraints=self.constraints or None,
        )
