"""The estimate of a plan in the contract's format: latency, throughput, memory, critical path, cost.

What users see comes from the simulated run of the plan's load (`planned_run`); the breakdowns of a prompt's pass and of
a decode step are of one pass by itself. The estimate names the source of its constants and how far off it may be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, get_args

from msgspec.structs import replace
from pydantic import ValidationError

from ..calibration.custom import CustomCalibration, own_calibration
from ..catalog.unlike_name import unlike_name
from ..errors import InputError
from ..input.arguments import checks_arguments
from ..input.bounds import USD
from ..plan.document import Plan, WorkloadBlock
from ..plan.load import beyond_positions, without_rate
from ..plan.peak import beside_peak
from ..plan.performance import (
    CriticalPath,
    LatencyAlone,
    LatencyEstimate,
    LatencyPercentiles,
    LoadEstimate,
    Percentiles,
    PerformanceEstimate,
    Ranges,
    ThroughputEstimate,
)
from ..plan.reader import read_document
from ..plan.view import PlanView, as_str
from ..traffic.trace import Trace, read_trace, under_trace
from .benchmark import benchmark_of
from .confidence import calibration_of, ranges_of
from .cost import cost_of_run
from .energy import energy_notes, energy_of
from .explain import expert_imbalance, explain, overlap_notes
from .layout import LoadedLayout, layout_from_view
from .memory import device_memory, max_concurrency
from .notes import estimate_notes
from .pass_loads import prefill_loads
from .planned_run import keeps_reserve, planned_run, prefix_cache_of, run_alone
from .schedule import PhaseTime, PhaseTimer, decode_time
from .serving.load import ServingTimes, Statistics
from .transfer import kv_transfer_seconds

OptionalPart = Literal["explanation", "ranges"]
OPTIONAL_PARTS: tuple[OptionalPart, ...] = get_args(OptionalPart)


def _bare_passes(layout: LoadedLayout) -> tuple[tuple[PhaseTimer, PhaseTime], tuple[PhaseTimer, PhaseTime]]:
    """The pass of a prompt, and a decode step with as many requests of the plan's load as the scheduler takes.

    Each by itself, with what timed it.
    """
    setting = layout.setting
    prefill = PhaseTimer(setting, layout.phase("prefill"))
    decode = PhaseTimer(setting, layout.phase("decode"))
    groups = min(prefill.phase.attention_groups, layout.requests_of_replica("prefill"))
    most = setting.max_sequences * decode.phase.attention_groups
    requests = min(layout.requests_of_replica("decode"), most)
    return (
        (prefill, prefill.prefill(prefill_loads(setting, groups))),
        (decode, decode_time(layout, decode, requests)),
    )


def estimate_layout(layout: LoadedLayout, parts: Collection[OptionalPart] = OPTIONAL_PARTS) -> PerformanceEstimate:
    """The estimate of `layout` at its workload, with `parts`: each of them costs about as much as all the rest.

    Raises InputError: a fact that the arithmetic needs is not known (it names the field), or the load cannot be served.
    """
    passes = _bare_passes(layout)
    (_, prefill), (decode_timer, decode) = passes
    run = planned_run(layout)
    throughput, transfer = _throughput(layout, run.times), kv_transfer_seconds(layout)
    latency = _latency(layout, run.times, prefill, decode)
    return PerformanceEstimate(
        latency=latency,
        throughput=throughput,
        memory=device_memory(layout),
        critical_path=CriticalPath(prefill=prefill.steps, decode=decode.steps),
        calibration=calibration_of(layout.setting),
        ranges=_ranges(layout, latency, throughput) if "ranges" in parts else Ranges(),
        load=LoadEstimate(
            load=run.load,
            requests=run.requests,
            running=run.times.running,
            saturated=run.times.saturated,
            keeps_reserve=keeps_reserve(layout, run),
            headroom=_headroom(layout, run.times),
            prefix_cache=prefix_cache_of(layout, run.times),
        ),
        cost=cost_of_run(layout, run.times),
        energy=energy_of(layout, run.times, prefill.parts, decode.parts),
        notes=(
            *estimate_notes(layout, transfer, expert_imbalance(decode_timer, decode)),
            *overlap_notes(passes),
            *energy_notes(layout),
        ),
        explanation=explain(*passes, transfer) if "explanation" in parts else None,
    )


def _latency(layout: LoadedLayout, times: ServingTimes, prefill: PhaseTime, decode: PhaseTime) -> LatencyEstimate:
    alone = run_alone(layout)
    return LatencyEstimate(
        ttft_ms=times.ttft.mean * 1e3,
        tpot_ms=times.tpot.mean * 1e3,
        prefill_ms=prefill.seconds * 1e3,
        decode_ms=max(0.0, times.end_to_end.mean - times.ttft.mean) * 1e3,
        end_to_end_ms=times.end_to_end.mean * 1e3,
        prefill=prefill.parts,
        decode_step=decode.parts,
        percentiles=LatencyPercentiles(
            ttft_ms=_percentiles(times.ttft),
            tpot_ms=_percentiles(times.tpot),
            end_to_end_ms=_percentiles(times.end_to_end),
        ),
        alone=LatencyAlone(
            ttft_ms=alone.ttft.mean * 1e3, tpot_ms=alone.tpot.mean * 1e3, end_to_end_ms=alone.end_to_end.mean * 1e3
        ),
    )


def _ranges(layout: LoadedLayout, latency: LatencyEstimate, throughput: ThroughputEstimate) -> Ranges:
    latencies = {"ttft_ms": latency.ttft_ms, "tpot_ms": latency.tpot_ms, "end_to_end_ms": latency.end_to_end_ms}
    return ranges_of(layout, latencies | throughput.model_dump())


def _percentiles(statistics: Statistics) -> Percentiles:
    return Percentiles(**{name: ms for name, ms in statistics.in_ms().items() if name != "mean"})


def _throughput(layout: LoadedLayout, times: ServingTimes) -> ThroughputEstimate:
    """Output tokens per second: of a request alone, on each replica that has a request, and over all replicas."""
    busy = max(1, min(len(layout.decode_replicas), layout.setting.workload.concurrency))
    return ThroughputEstimate(
        single_request_tokens_per_s=run_alone(layout).output_tokens_per_s,
        batched_tokens_per_s=times.output_tokens_per_s / busy,
        dp_scaled_tokens_per_s=times.output_tokens_per_s,
        output_tokens_per_s_per_gpu=times.output_tokens_per_s / max(1, len(layout.devices)),
    )


def _headroom(layout: LoadedLayout, times: ServingTimes) -> str | None:
    """Whether the other replicas can take the load when one is lost; `None` with fewer than two."""
    replicas = len(layout.decode_replicas)
    if replicas < 2:
        return None
    remaining = max_concurrency(layout) * (replicas - 1) // replicas
    need = layout.setting.workload.concurrency
    fits = f"{remaining:,} requests fit on the other {replicas - 1}"
    rate = times.output_tokens_per_s * (replicas - 1) / replicas
    verdict = "enough for" if remaining >= need else "too few for"
    return f"with one of {replicas} replicas lost, {fits}: {verdict} {need:,}; they make {rate:,.0f} tokens/s"


@checks_arguments
def estimate(
    document: Plan | Mapping[str, object] | str | Path,
    usd_per_gpu_hour: float | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    trace: Trace | str | Path | None = None,
    workload: WorkloadBlock | Mapping[str, object] | None = None,
) -> PerformanceEstimate:
    """The estimate of a plan as its graph shows it, which need not be valid.

    Args:
        document: A `Plan`, an object, a JSON text, or the path of a file.
        usd_per_gpu_hour: US dollars for an hour of one GPU; the catalogue's price where it is `None`.
        calibration: Times of your own, or the path of their file.
        trace: The path of a file of requests, or what `read_trace` made of one, in place of the plan's own load.
        workload: Fields of the load in place of the plan's, such as `{"concurrency": 64}`, which drops a rate.

    Returns:
        Latency in milliseconds, tokens per second, bytes on each device, the critical path, and the cost.

    Raises:
        InputError: The plan or the load cannot be read, a stated load is longer than the model's positions, or a fact
            that the arithmetic needs is not known.

    Example:
        >>> import shardwright
        >>> one = shardwright.plan("Llama-3.2-1B on one L4, 512 in / 32 out").plan
        >>> shardwright.estimate(one).latency.ttft_ms > 0
        True
    """
    view = _view(document)
    try:
        return estimate_view(view, usd_per_gpu_hour, calibration, trace, workload)
    finally:
        view.release()


def estimate_view(
    view: PlanView,
    usd_per_gpu_hour: float | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    trace: Trace | str | Path | None = None,
    workload: WorkloadBlock | Mapping[str, object] | None = None,
) -> PerformanceEstimate:
    """`estimate` of a document that is already read. Raises InputError: as `estimate`."""
    layout = layout_from_view(view)
    custom = own_calibration(calibration)
    if custom is not None:
        layout = layout.with_setting(layout.setting.with_calibration(custom))
    if usd_per_gpu_hour is not None:
        if not USD.hold(usd_per_gpu_hour):
            raise InputError(f"usd_per_gpu_hour: not from {USD.least:g} to {USD.most:,.0f}")
        layout = replace(layout, setting=replace(layout.setting, usd_per_gpu_hour=usd_per_gpu_hour))
    if workload is not None:
        stated = _overridden(layout.setting.workload, workload)
        too_long = beyond_positions(stated, layout.setting.architecture.max_position_embeddings)
        if too_long is not None:
            raise InputError(f"workload: {too_long[1]}")
        layout = layout.with_setting(layout.setting.with_workload(stated))
    described: str | None = None
    if trace is not None:
        read = trace if isinstance(trace, Trace) else read_trace(Path(trace))
        workload = under_trace(layout.setting.workload, read)
        layout = layout.with_setting(layout.setting.with_workload(workload))
        described = beside_peak(read.describe(), read.peak, workload.request_rate, "estimated")
    result = estimate_layout(layout)
    result = result.model_copy(
        update={"trace": described, "notes": (*unlike_name(view.model, view.architecture), *result.notes)}
    )
    name = as_str(view.model.get("name"))
    return result if name is None else result.model_copy(update={"benchmark": benchmark_of(layout, name)})


def _overridden(planned: WorkloadBlock, stated: WorkloadBlock | Mapping[str, object]) -> WorkloadBlock:
    """The load of a plan with the fields of `stated` replaced; a stated concurrency drops a rate."""
    if isinstance(stated, WorkloadBlock):
        return stated
    if "concurrency" in stated and "request_rate" not in stated:
        planned = without_rate(planned)
    try:
        return WorkloadBlock.model_validate({**planned.model_dump(exclude_none=True), **stated})
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, ('workload', *first['loc'])))}: {first['msg']}") from None


def _view(document: Plan | Mapping[str, object] | str | Path) -> PlanView:
    read = read_document(document)
    if read.raw is None:
        raise InputError(f"no plan can be read: {read.faults[0].message}")
    return read.view
