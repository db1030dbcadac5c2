"""What a person asked for, as it was said and no further: `Said` holds what words, briefs and flags state.

Each field carries the words that it came from. Words are data: nothing in a request can switch a rule off but the named
relaxations.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ..catalog.accelerators import Accelerator
from ..catalog.dtypes import DType
from ..frozen import Frozen
from ..input.bounds import HEADROOM, RESERVE
from ..plan.constraints import Constraint
from ..plan.document import Objective, Relaxation, Statistic
from ..plan.kv_offload import KVOffload
from ..plan.lengths import Arrivals, RequestLengths
from ..plan.peak import Peak
from ..plan.prefixes import SharedPrefixes
from ..plan.rate_curve import RateCurve

# In place of an engine's name: a plan on paper, which no engine has to start.
NO_ENGINE = "none"


class StatedDegrees(Frozen):
    """Parallel degrees that a person stated for a phase (or for both); `None` is not said."""

    tp: int | None = None
    tp_ffn: int | None = None
    pp: int | None = None
    ep: int | None = None
    sp: int | None = None
    attention_dp: int | None = None
    replicas: int | None = None


class StatedStrategy(Frozen):
    """A parallel strategy that a person stated, to be judged as it stands and then improved."""

    gpus: int | None = None
    dp: int | None = None
    prefill: StatedDegrees = StatedDegrees()
    decode: StatedDegrees = StatedDegrees()


class StatedPrecision(Frozen):
    """Number formats that a person stated together; `None` is not said."""

    weights: DType | None = None
    kv_cache: DType | None = None
    activations: DType | None = None


class OpenPrecisions(Frozen):
    """Number formats to choose from: `named` ones, where `is_open` the usual ones as well, never `excluded` weights.

    `common` is what was stated for all of them.
    """

    is_open: bool = False
    named: tuple[StatedPrecision, ...] = ()
    excluded: tuple[DType, ...] = ()
    common: StatedPrecision = StatedPrecision()


class SaidTrace(Frozen):
    """A trace of requests whose lengths are said: what describes it, and how its requests come, where it has times."""

    description: str
    request_rate: float | None = None
    peak: Peak | None = None
    arrivals: Arrivals | None = None


class Said(Frozen):
    """What was said, and nothing else. `words` maps a field's name to the words that it came from.

    Units are in the names; lengths are tokens. `gpus_open` is "no limit on cards": then the fewest that do.
    """

    model: str | None = None
    model_config_object: dict[str, Any] | None = None
    accelerator: str | None = None  # a catalogue id
    accelerator_object: Accelerator | None = None  # a card that the author describes
    nodes: int | None = None
    gpus_per_node: int | None = None
    gpus: int | None = None
    # Of each of the kinds that `constraints` has to choose from, where they differ.
    gpus_of_kinds: tuple[int, ...] | None = None
    gpus_open: bool = False
    intra_node_bw_gb_s: float | None = None
    inter_node_bw_gb_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_range: tuple[int, int] | None = None
    output_tokens_range: tuple[int, int] | None = None
    lengths: RequestLengths | None = None
    prefixes: SharedPrefixes | None = None
    arrivals: Arrivals | None = None
    trace: SaidTrace | None = None
    concurrency: int | None = None
    request_rate: float | None = None
    # Over a day, in place of a single rate; replicas that may be lost; the share of the rate that may come in addition.
    rate_curve: RateCurve | None = None
    reserve_replicas: Annotated[int, RESERVE.whole()] | None = None
    headroom: Annotated[float, HEADROOM.real()] | None = None
    min_tokens_per_second: float | None = None
    prefix_cache_hit_rate: float | None = None
    expert_imbalance: float | None = None
    ttft_ms_max: float | None = None
    ttft_statistic: Statistic | None = None
    tpot_ms_max: float | None = None
    tpot_statistic: Statistic | None = None
    end_to_end_ms_max: float | None = None
    end_to_end_statistic: Statistic | None = None
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
    # Settings of a server's scheduler, as a plan's `serving` has them.
    max_batch: int | None = None
    prefill_chunk_tokens: int | None = None
    overlap: Literal["two_batch"] | None = None
    kv_offload: KVOffload | None = None
    usd_per_gpu_hour: float | None = None
    strategy: StatedStrategy | None = None
    # To be compared with each other ("TP8 or TP4 x PP2?"): none is a demand.
    compared: tuple[StatedStrategy, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    words: dict[str, str] = Field(default_factory=dict[str, str])
    # Fields that were read of vague or misspelt words, each with the words and the reason: assumptions of the intent.
    assumed: dict[str, str] = Field(default_factory=dict[str, str])
    # Words that look like a demand and were not understood, or are refused by name (for the report).
    unread: tuple[str, ...] = ()
    # How an ambiguous figure was read ("nvlink_bw_gbps 900 read as both directions together").
    readings: tuple[str, ...] = ()


class Understood(Frozen):
    """One line of "what was understood so far", for a refusal."""

    field: str
    value: Any
    words: str | None = None
