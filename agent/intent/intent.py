"""What a person asked for: first as it was said (`Said`), then complete (`Intent`).

`Said` holds only what the words (a request, a brief, command-line flags) state, with the words that each field came
from. `Intent` is whole: every field that was not said is a stated assumption. Words are data: nothing in a request can
switch a rule off but the named relaxations.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...tools.calibration.custom import CustomCalibration
from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.dtypes import DType
from ...tools.engines.names import EngineName
from ...tools.plan.constraints import Constraint
from ...tools.plan.document import (
    Objective,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    Statistic,
    WorkloadBlock,
)

# Said in place of an engine's name where a plan on paper is wanted: one that no engine has to start.
NO_ENGINE = "none"


class FrozenModel(BaseModel):
    """Base of the intent models: immutable, no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class StatedDegrees(FrozenModel):
    """Parallel degrees that a person stated for a phase (or for both); `None` is not said."""

    tp: int | None = None
    tp_ffn: int | None = None
    pp: int | None = None
    ep: int | None = None
    sp: int | None = None
    attention_dp: int | None = None
    replicas: int | None = None


class StatedStrategy(FrozenModel):
    """A parallel strategy that a person stated, to be judged as it stands and then improved."""

    gpus: int | None = None
    dp: int | None = None
    prefill: StatedDegrees = StatedDegrees()
    decode: StatedDegrees = StatedDegrees()


class StatedPrecision(FrozenModel):
    """Number formats that a person stated together; `None` is not said."""

    weights: DType | None = None
    kv_cache: DType | None = None
    activations: DType | None = None


class OpenPrecisions(FrozenModel):
    """Number formats to choose from: `named` ones, where `is_open` the usual ones as well, never `excluded` weights.

    `common` is what was stated for all of them.
    """

    is_open: bool = False
    named: tuple[StatedPrecision, ...] = ()
    excluded: tuple[DType, ...] = ()
    common: StatedPrecision = StatedPrecision()


class Said(FrozenModel):
    """What was said, and nothing else. `words` maps a field's name to the words that it came from.

    Units are in the names; lengths are tokens. `gpus_open` is "no limit on cards": then the fewest that do.
    """

    model: str | None = None
    model_config_object: dict[str, Any] | None = None
    accelerator: str | None = None  # a catalogue id
    accelerator_object: Accelerator | None = None  # a card of one's own
    nodes: int | None = None
    gpus_per_node: int | None = None
    gpus: int | None = None
    gpus_open: bool = False
    intra_node_bw_gb_s: float | None = None
    inter_node_bw_gb_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_range: tuple[int, int] | None = None
    output_tokens_range: tuple[int, int] | None = None
    concurrency: int | None = None
    request_rate: float | None = None
    min_tokens_per_second: float | None = None
    prefix_cache_hit_rate: float | None = None
    expert_imbalance: float | None = None
    ttft_ms_max: float | None = None
    ttft_statistic: Statistic | None = None
    tpot_ms_max: float | None = None
    tpot_statistic: Statistic | None = None
    objective: Objective | None = None
    weights: DType | None = None
    kv_cache: DType | None = None
    activations: DType | None = None
    precisions: OpenPrecisions | None = None
    relaxations: tuple[Relaxation, ...] = ()
    memory_utilization: float | None = None
    disaggregated: bool | None = None
    engine: str | None = None  # `NO_ENGINE`: a plan on paper
    engine_version: str | None = None
    rules: Literal["strict", "engine"] | None = None
    usd_per_gpu_hour: float | None = None
    strategy: StatedStrategy | None = None
    constraints: tuple[Constraint, ...] = ()
    words: dict[str, str] = Field(default_factory=dict[str, str])
    # Fields that a language model read of vague words, each with the words and the reason: assumptions of the intent.
    assumed: dict[str, str] = Field(default_factory=dict[str, str])
    # Words that look like a demand and were not understood, or are refused by name (for the report).
    unread: tuple[str, ...] = ()
    # How an ambiguous figure was read ("nvlink_bw_gbps 900 read as both directions together").
    readings: tuple[str, ...] = ()


class Assumption(FrozenModel):
    """A value that nobody stated, and why it was chosen."""

    field: str
    value: Any
    reason: str


class ModelChoice(FrozenModel):
    """The model: the name that the plan carries, and the config that the plan is checked with."""

    name: str
    config: dict[str, Any]
    source: str


class HardwareChoice(FrozenModel):
    """The hardware. `nodes` is `None` where it is left open (then the fewest GPUs that do)."""

    accelerator: str | Accelerator
    nodes: int | None
    gpus_per_node: int
    intra_node_bw_gb_s: float | None = None
    inter_node_bw_gb_s: float | None = None

    @property
    def gpus(self) -> int | None:
        """Accelerators in all, or `None` where open."""
        return None if self.nodes is None else self.nodes * self.gpus_per_node


class Intent(FrozenModel):
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
    constraints: tuple[Constraint, ...] = ()
    # A user's own calibration; results name it in their estimate.
    calibration: CustomCalibration | None = Field(default=None, exclude=True)
    words: dict[str, str] = Field(default_factory=dict[str, str])
    assumptions: tuple[Assumption, ...] = ()
    readings: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def policy(self) -> PolicyBlock:
        """The policy of its plans."""
        return PolicyBlock(
            relaxations=self.relaxations,
            memory_utilization=self.memory_utilization,
            constraints=self.constraints or None,
        )


class Understood(FrozenModel):
    """One line of "what was understood so far", for a refusal."""

    field: str
    value: Any
    words: str | None = None
