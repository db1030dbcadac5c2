"""The evaluation of a plan as data: what `estimate` prints and what a plan's `performance` block claims.

Only the format lives here; the figures come from `tools/performance/`. A block in a proposal is a *claim*: the same
object with every field optional (`PerformanceClaim`).
"""

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union, get_args, get_origin

from pydantic import BaseModel, create_model

from ..displayed import Displayed, frame
from ..frozen import Frozen, Sparse
from ..input.bounds import CLAIM, GPUS

NonNegative = Annotated[float, CLAIM.real()]
Count = Annotated[int, CLAIM.whole()]


class TimeParts(Frozen):
    """Where the time of one phase's critical path goes, in milliseconds; the four parts add up to the phase."""

    compute_ms: NonNegative
    memory_ms: NonNegative
    communication_ms: NonNegative
    bubble_ms: NonNegative


class Percentiles(Frozen):
    """Percentiles of one latency over the requests of a run, in milliseconds."""

    p50: NonNegative
    p90: NonNegative
    p95: NonNegative
    p99: NonNegative


class LatencyPercentiles(Frozen):
    """Percentiles of what users wait for, each over requests."""

    ttft_ms: Percentiles
    tpot_ms: Percentiles
    end_to_end_ms: Percentiles


class LatencyAlone(Frozen):
    """Latency of a request that has the whole deployment to itself, in milliseconds."""

    ttft_ms: NonNegative
    tpot_ms: NonNegative
    end_to_end_ms: NonNegative


class LatencyEstimate(Frozen):
    """What users see in the simulated run of the plan's load: means over requests, percentiles beside them.

    `decode_ms` is what a request spends after its first token. `prefill_ms`, `prefill` and `decode_step` are one pass
    of each phase by itself, without any wait.
    """

    ttft_ms: NonNegative
    tpot_ms: NonNegative
    prefill_ms: NonNegative
    decode_ms: NonNegative
    end_to_end_ms: NonNegative
    prefill: TimeParts
    decode_step: TimeParts
    percentiles: LatencyPercentiles
    alone: LatencyAlone


class ThroughputEstimate(Frozen):
    """Output tokens per second: of a request alone, and of the simulated run on one replica and over all of them."""

    single_request_tokens_per_s: NonNegative
    batched_tokens_per_s: NonNegative
    dp_scaled_tokens_per_s: NonNegative
    output_tokens_per_s_per_gpu: NonNegative


class DeviceMemory(Frozen):
    """Memory of one device in bytes: the four terms of the budget and what may be used."""

    device: str
    weights_bytes: Count
    kv_cache_bytes: Count
    activation_bytes: Count
    communication_bytes: Count
    total_bytes: Count
    usable_bytes: Count


class MemoryEstimate(Frozen):
    """Memory per device, and the KV cache. `max_concurrency` is over the whole deployment.

    `kv_cache_capacity_bytes` is what the engine sets up for its cache on the GPU with the least room, beside its own
    needs, `kv_cache_capacity_tokens` what it logs for it, and `kv_cache_capacity_requests` how many requests of the
    load's mean length that holds over the whole deployment. `requests_at_once` are those that it runs: at most its
    largest batch, and more wait. `unheld_request` says why it serves no request of the load, where its cache holds
    none. The other figures are those of rule ME001, which asks for the plan's four terms alone.
    """

    per_device: tuple[DeviceMemory, ...]
    kv_cache_bytes_per_token: Count
    kv_cache_bytes_total: Count
    max_concurrency: Count
    # 004 §4.2's conservative bound: what one device would hold were the cache not sharded by TP (rules.md R9).
    kv_cache_bytes_per_device_replicated: Count | None = None
    kv_cache_capacity_bytes: Count | None = None
    kv_cache_capacity_tokens: Count | None = None
    kv_cache_capacity_requests: Count | None = None
    requests_at_once: Count | None = None
    unheld_request: str | None = None
    usable_from: str | None = None


# Measured for the kernel on the very card, carried over from another card or format, or taken from a datasheet.
ConstantsOrigin = Literal["measured", "carried", "datasheet"]


class ConstantsShare(Frozen):
    """How much of a critical path's time was calculated with constants of one origin; `of`: whose, where carried over.

    Waits of pipeline stages for each other are calculated with none.
    """

    constants: ConstantsOrigin
    of: str | None = None
    ms: NonNegative
    share_pct: NonNegative


class PathStep(Frozen):
    """One step of a critical path: the node, what it costs, and of which kind the cost is.

    `constants`: whether those of its time were measured for this kernel on this card; absent where it is no kernel's.
    """

    node: str
    ms: NonNegative
    kind: Literal["compute", "memory", "communication", "bubble"]
    resource: str | None = None
    constants: ConstantsOrigin | None = None


class CriticalPath(Frozen):
    """The critical path of each phase: one prefill pass, one decode step."""

    prefill: tuple[PathStep, ...]
    decode: tuple[PathStep, ...]


class RatioBand(Frozen):
    """How far 90% of the measured ratios of two deployments were off in one figure, in percent; what was measured."""

    pct: NonNegative
    source: str


class Calibration(Frozen):
    """Where the constants come from, and how far the farther end of TPOT's range is off (`None`: it has none).

    `ratio_band`: how far the ratio of its TPOT to that of another layout of the same model on the same accelerator and
    engine is off; what both share they are wrong by together. `hardware_ratio_band`: the same on another accelerator.
    `throughput_band_pct`, `throughput_ratio_band` and `throughput_hardware_ratio_band` are the same of tokens/s.
    """

    profile: str
    error_band_pct: NonNegative | None
    throughput_band_pct: NonNegative | None = None
    ratio_band: RatioBand | None = None
    throughput_ratio_band: RatioBand | None = None
    hardware_ratio_band: RatioBand | None = None
    throughput_hardware_ratio_band: RatioBand | None = None
    note: str | None = None


Interval = tuple[NonNegative, NonNegative]


class Ranges(Frozen):
    """Between what each figure lay in 90% of the measurements like it that took no part in the fit.

    `None`: too few such measurements; one group of them is no range. Figures are those of the run at the plan's load.
    """

    ttft_ms: Interval | None = None
    tpot_ms: Interval | None = None
    end_to_end_ms: Interval | None = None
    single_request_tokens_per_s: Interval | None = None
    batched_tokens_per_s: Interval | None = None
    dp_scaled_tokens_per_s: Interval | None = None
    output_tokens_per_s_per_gpu: Interval | None = None


class CostShare(Frozen):
    """One of the largest costs of a critical path: an operation over all the layers that run it.

    `resource` is what it keeps busy for most of its time; `layers` is 0 where it belongs to no layer.
    """

    what: str
    layers: Count
    ms: NonNegative
    share_pct: NonNegative
    resource: str


class ResourceShare(Frozen):
    """How much of a critical path one resource is what it waits for."""

    resource: str
    ms: NonNegative
    share_pct: NonNegative


class Remedy(Frozen):
    """By how much a phase would be shorter, timed again with one thing changed, or with one cost removed."""

    what: str
    kind: Literal["change", "removal"]
    saves_pct: NonNegative


class PhaseExplanation(Frozen):
    """Why one phase takes its time. `resources` and `largest` come largest first: the first resource binds.

    Communication is exposed while the compute stream waits for it, hidden while it works. `expert_imbalance` is the
    load of the slowest expert group over the mean one. `constants`, largest first, add up to what is no bubble.
    """

    resources: tuple[ResourceShare, ...]
    constants: tuple[ConstantsShare, ...]
    largest: tuple[CostShare, ...]
    remedies: tuple[Remedy, ...]
    bubble_pct: NonNegative
    exposed_communication_ms: NonNegative
    hidden_communication_ms: NonNegative
    expert_imbalance: NonNegative | None = None


class Explanation(Frozen):
    """Where an estimate comes from, phase by phase. `kv_transfer_ms` is the cache's way from prefill to decode."""

    prefill: PhaseExplanation
    decode: PhaseExplanation
    kv_transfer_ms: NonNegative


CostUnit = Literal["usd", "gpu_seconds"]


class CostEstimate(Frozen):
    """Cost of a million output tokens: in USD where a price is known, else in GPU-seconds.

    Nodes are billed whole: `billed_gpus` are those of every node that the plan touches, at `usd_per_gpu_hour`, from the
    lowest to the highest. Where these differ the cost is that of their middle, and `per_million_output_tokens_range`
    what both ends make of it.
    """

    per_million_output_tokens: NonNegative
    unit: CostUnit
    price_source: str | None = None
    per_million_output_tokens_range: tuple[NonNegative, NonNegative] | None = None
    billed_gpus: Annotated[int, GPUS.whole()] | None = None
    usd_per_gpu_hour: tuple[NonNegative, NonNegative] | None = None


class EnergyEstimate(Frozen):
    """What the plan's GPUs draw on average over the run, all together, and per output token: the ends of a range.

    It is of the boards alone. `idle_share_pct`: of the time of a GPU, in which it has no request. `source`: where the
    shares of board power come from.
    """

    watts: Interval
    joules_per_output_token: Interval
    kwh_per_million_output_tokens: Interval
    board_watts_per_gpu: NonNegative
    idle_share_pct: NonNegative
    source: str


class HostMemoryEstimate(Frozen):
    """What memory of the host is worth that keeps blocks of the KV cache: the share of prompt tokens that came from it.

    Blocks come back at `gb_s` (10^9 bytes/s per GPU, one way). `hit_share_without` and `ttft_ms_without`: what caches
    would have, and the mean TTFT (none where the queue would grow), of the same run without it.
    """

    bytes_per_gpu: Count
    gb_s: NonNegative
    hit_share: NonNegative
    hit_share_without: NonNegative
    ttft_ms_without: NonNegative | None


class PrefixCacheEstimate(Frozen):
    """What the simulated run computes of prefix caches: the share of prompt tokens that they had, wherever.

    `filled_share`: how much of its cache a scheduler has filled, in use or not, when a request comes. `host_memory`:
    where blocks are kept there too.
    """

    hit_share: NonNegative
    filled_share: NonNegative
    source: str
    host_memory: HostMemoryEstimate | None = None


class LoadEstimate(Frozen):
    """The simulated run of the plan's load: how its `requests` arrive, and the mean number of them in decode.

    `saturated`: requests come faster than they are served, so that latencies grow with the length of the run.
    `keeps_reserve`: whether a little more than a stated rate is kept up with too (`planned_run.RATE_RESERVE`).
    `prefix_cache`: where the workload says what prompts share.
    """

    load: str
    requests: Count
    running: NonNegative
    saturated: bool
    keeps_reserve: bool = True
    headroom: str | None = None
    prefix_cache: PrefixCacheEstimate | None = None


class Benchmark(Frozen):
    """The command of the engine's load generator that would check a plan, and the means that it should print.

    `note` says why these are not the plan's own figures, where they are not.
    """

    command: str
    ttft_ms: NonNegative
    tpot_ms: NonNegative
    output_tokens_per_s: NonNegative
    note: str | None = None


class PerformanceEstimate(Displayed, Frozen):
    """The estimate of one plan (`estimate --format json`); `trace`: the requests that took the place of its load."""

    latency: LatencyEstimate
    throughput: ThroughputEstimate
    memory: MemoryEstimate
    critical_path: CriticalPath
    calibration: Calibration
    ranges: Ranges
    load: LoadEstimate
    cost: CostEstimate | None = None
    energy: EnergyEstimate | None = None
    notes: tuple[str, ...] = ()
    explanation: Explanation | None = None
    benchmark: Benchmark | None = None
    trace: str | None = None

    def one_line(self) -> str:
        """Latency and throughput."""
        tokens_per_s = self.throughput.dp_scaled_tokens_per_s
        return f"TTFT {self.latency.ttft_ms:.4g} ms, TPOT {self.latency.tpot_ms:.4g} ms, {tokens_per_s:,.0f} tokens/s"

    def to_pandas(self) -> Any:
        """The memory of each device as a `pandas.DataFrame`.

        Raises InputError: pandas is not installed.
        """
        return frame([device.model_dump() for device in self.memory.per_device])


def _optional_annotation(annotation: Any) -> Any:
    parts = tuple(part if part is ... else _optional_annotation(part) for part in get_args(annotation))
    if get_origin(annotation) is tuple:
        return tuple.__class_getitem__(parts)
    if get_origin(annotation) in (Union, UnionType):
        return Union[parts]  # noqa: UP007  # an annotation made at run time
    whole: Any = annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        whole = all_optional(annotation)
    return whole


@cache
def all_optional(model: type[BaseModel]) -> type[BaseModel]:
    """The same model with every field, at every depth, optional: the form in which an evaluation is *claimed*."""
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        annotation = _optional_annotation(info.annotation)
        constrained = Annotated[annotation, *info.metadata] if info.metadata else annotation
        fields[name] = (Optional[constrained], None)  # noqa: UP045  # an annotation made at run time
    return create_model(f"Claimed{model.__name__}", __base__=Sparse, **fields)


if TYPE_CHECKING:

    class PerformanceClaim(PerformanceEstimate):
        """`PerformanceEstimate` with every field optional."""

else:
    PerformanceClaim = all_optional(PerformanceEstimate)
