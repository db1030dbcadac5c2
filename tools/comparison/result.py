"""Two plans beside each other as data: what `compare` gives back and `compare --format json` prints.

Only the form lives here. A ratio is always B over A, whatever is better; a figure that one of the two does not have
has no ratio.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..plan.document import Objective, Phase, PrecisionBlock, Statistic, Strategy, WorkloadBlock
from ..plan.performance import Calibration, CostUnit, Frozen, Sparse
from ..rules.base import Violation

Better = Literal["a", "b", "same"]
Winner = Better | Literal["undecided"]
Unit = Literal["ms", "tokens/s", "bytes", "GPUs", "requests", "USD", "GPU-seconds"]
Plain = str | int | float | bool | None


class BranchShape(Frozen):
    """One phase as the graph shows it, in the first replica that serves it.

    `gpus_per_stage` and `layers_per_stage` go stage by stage; `experts_per_gpu` is the most that a GPU holds of one
    MoE operator, 0 where there is none.
    """

    phase: Phase
    replicas: int
    gpus_per_stage: tuple[int, ...]
    layers_per_stage: tuple[int, ...]
    experts_per_gpu: int


class EngineSettings(Sparse):
    """How the engine runs: requests that a scheduler runs at once, tokens of a step, share of a GPU's memory.

    What a plan does not state is the engine's own, as the estimate takes it.
    """

    max_batch: int | None = None
    step_tokens: int | None = None
    overlap: Literal["none", "two_batch"] = "none"
    microbatches: int | None = None
    memory_utilization: float
    kv_offload: str | None = None
    flags: str | None = None


class LimitCheck(Sparse):
    """A limit of the workload beside the estimate; `holds` is absent where the figure is not known."""

    name: str
    statistic: Statistic
    unit: Literal["ms", "tokens/s"]
    limit: float
    figure: float | None = None
    holds: bool | None = None


class Bottleneck(Frozen):
    """What one phase waits for most, and the largest of its costs."""

    phase: Phase
    resource: str
    share_pct: float
    largest: str | None = None


class Side(Sparse):
    """One of the two plans: what it is, whether it is valid, and what its estimate says.

    `violations` are the first of those that `errors` and `warnings` count; `not_estimated` says why there is no
    estimate. `relaxations` are those in force, what the engine brings among them. With `takes_engine` the plan names no
    engine itself and is judged as run on the other's. Of launch commands, `refused` says that their engine refuses
    them as they are written, or every request of the load, and `caveats`, those first, what has to be known before the
    figures.
    """

    title: str
    summary: str
    strategy: Strategy
    model: str
    accelerator: str
    nodes: int
    gpus_per_node: int
    gpus: int
    workload: WorkloadBlock
    precision: PrecisionBlock
    relaxations: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    engine: str | None = None
    engine_version: str | None = None
    takes_engine: bool | None = None
    settings: EngineSettings
    valid: bool
    errors: int
    warnings: int
    violations: tuple[Violation, ...] = ()
    layout: tuple[BranchShape, ...] = ()
    limits: tuple[LimitCheck, ...] = ()
    binds: tuple[Bottleneck, ...] = ()
    calibration: Calibration | None = None
    saturated: bool | None = None
    keeps_reserve: bool | None = None
    cost_unit: CostUnit | None = None
    price_source: str | None = None
    not_estimated: str | None = None
    refused: bool | None = None
    caveats: tuple[str, ...] = ()


class ComparedFigure(Sparse):
    """One figure of both. `ratio` is B over A; `better` is absent where neither more nor less of it is better."""

    name: str
    title: str
    unit: Unit
    a: float | None = None
    b: float | None = None
    ratio: float | None = Field(default=None, ge=0)
    better: Better | None = None


class Change(Frozen):
    """Something that is not the same in both."""

    what: str
    a: Plain
    b: Plain


class Lead(Sparse):
    """Which of two is ahead by the figure that decides, by how much, and how far the ratio of such figures is off.

    `gap_pct` is what the smaller figure lacks of the larger, in percent of the smaller. `error_pct` held 90% of what
    was measured, of ratios of two layouts (`of` "ratio") or of two accelerators ("hardware"), or of estimates by
    themselves; absent where nothing was.
    """

    figure: str
    ahead: Literal["a", "b"]
    gap_pct: float = Field(ge=0)
    error_pct: float | None = Field(default=None, ge=0)
    of: Literal["ratio", "hardware", "estimate"] | None = None
    source: str | None = None

    @property
    def is_told(self) -> bool:
        """Whether the lead is outside of what such a ratio is off by."""
        return self.error_pct is None or self.gap_pct > self.error_pct


class Comparison(Sparse):
    """Two plans side by side.

    `question` lists where they were asked different things (model, hardware, load, precision): figures then compare
    deployments, not layouts. `changes` lists what was decided differently. `better` is by `objective`, among those
    that are valid and hold their limits; it is "undecided" where the `lead` of one is within the error of such figures,
    and absent where the two were not made for the same.
    """

    a: Side
    b: Side
    question: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    figures: tuple[ComparedFigure, ...] = ()
    objective: Objective | None = None
    better: Winner | None = None
    lead: Lead | None = None
    verdict: tuple[str, ...] = ()

    @property
    def exit_status(self) -> Literal[0, 1]:
        """0: both are valid, and no engine refuses one; 1: one of them is not."""
        return 0 if all(side.valid and not side.refused for side in (self.a, self.b)) else 1

    def figure(self, name: str) -> ComparedFigure | None:
        """The figure called `name`, where there is one."""
        return next((figure for figure in self.figures if figure.name == name), None)
