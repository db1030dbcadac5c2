"""The estimate of a plan in the contract's format: latency, throughput, memory, critical path, cost.

Its latencies are means in closed form, with no queue before the first token but that of prefill replicas that are the
slower side; `under_load` simulates arrivals. What its constants come from and how far off it may be is said with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..bounds import USD
from ..calibration.custom import CustomCalibration, own_calibration
from ..errors import InputError, expect
from ..plan.document import Plan
from ..plan.performance import (
    CostEstimate,
    CriticalPath,
    LatencyEstimate,
    LoadEstimate,
    PerformanceEstimate,
    ThroughputEstimate,
)
from ..plan.reader import read_document
from ..plan.view import PlanView
from .confidence import calibration_of
from .explain import explain
from .layout import Layout, layout_from_view
from .memory import device_memory
from .notes import estimate_notes
from .queueing import Prompts, client_seconds, held_back, hold_up_others
from .schedule import PhaseTime, PhaseTimer, prefill_loads
from .service import PhaseSeconds, Service, Shares, colocated_service, disaggregated_service
from .throughput import apart_prefill_seconds, batched_prefill_seconds, decode_time
from .transfer import kv_transfer_seconds
from .under_load import load_estimate


@dataclass(frozen=True, slots=True)
class QuickTimes:
    """What ranking needs of a layout, in milliseconds and tokens per second."""

    ttft_ms: float
    tpot_ms: float
    end_to_end_ms: float
    output_tokens_per_s: float
    output_tokens_per_s_per_gpu: float


@dataclass(frozen=True, slots=True)
class _Times:
    """The phases of a layout at its load, the transfer between them, and the rates that follow. Seconds."""

    prefill: PhaseTime
    decode: PhaseTime
    seconds: PhaseSeconds
    service: Service
    throughput: ThroughputEstimate
    timers: tuple[PhaseTimer, PhaseTimer]

    @property
    def timed(self) -> tuple[tuple[PhaseTimer, PhaseTime], tuple[PhaseTimer, PhaseTime]]:
        """Prefill and decode, each with what timed it."""
        return (self.timers[0], self.prefill), (self.timers[1], self.decode)


def _times(layout: Layout) -> _Times:
    setting = layout.setting
    concurrency = setting.workload.concurrency
    prefill_timer = PhaseTimer(setting, layout.phase("prefill"))
    decode_timer = PhaseTimer(setting, layout.phase("decode"))
    prefill_share = math.ceil(concurrency / max(1, len(layout.prefill_replicas)))
    requests = math.ceil(concurrency / max(1, len(layout.decode_replicas)))
    groups = min(prefill_timer.phase.attention_groups, prefill_share)
    prefill = prefill_timer.prefill(prefill_loads(setting, 1, groups))
    decode = decode_time(layout, decode_timer, requests)
    transfer = kv_transfer_seconds(layout)
    alone_prefill = prefill if groups == 1 else prefill_timer.prefill(prefill_loads(setting, 1, 1))
    alone_decode = decode if requests == 1 else decode_time(layout, decode_timer, 1)
    steps = setting.workload.output_tokens - 1
    seconds = PhaseSeconds(
        prompts=_prompts(layout, prefill_timer, prefill_share, prefill.seconds),
        step=decode.seconds,
        transfer=transfer,
        client=client_seconds(setting),
        held_steps=held_back(setting, decode_timer.phase.attention_groups, requests, steps),
    )
    shares = Shares(concurrency, requests)
    serve = disaggregated_service if layout.is_disaggregated else colocated_service
    service = serve(seconds, shares, setting.workload.output_tokens)
    alone = alone_prefill.seconds + transfer + seconds.client
    alone += steps * alone_decode.seconds
    rates = ThroughputEstimate(
        single_request_tokens_per_s=setting.workload.output_tokens / alone,
        batched_tokens_per_s=service.batched_tokens_per_s,
        dp_scaled_tokens_per_s=service.output_tokens_per_s,
        output_tokens_per_s_per_gpu=service.output_tokens_per_s / max(1, len(layout.devices)),
    )
    return _Times(prefill, decode, seconds, service, rates, (prefill_timer, decode_timer))


def _prompts(layout: Layout, timer: PhaseTimer, requests: int, one_seconds: float) -> Prompts:
    """The prompts of a replica's share; where prefill has replicas of its own they hold up no decode."""
    together = batched_prefill_seconds(layout, timer, requests)
    if layout.is_disaggregated or not hold_up_others(layout.setting, timer.phase.attention_groups):
        return Prompts(one_seconds, together, together)
    return Prompts(one_seconds, together, apart_prefill_seconds(layout, timer, requests))


def estimate_layout(layout: Layout, *, with_explanation: bool = True) -> PerformanceEstimate:
    """The estimate of `layout` at its workload; an explanation takes about as long again.

    Raises:
        InputError: a fact that the arithmetic needs is not known (it names the field).
    """
    times = _times(layout)
    steps = layout.setting.workload.output_tokens - 1
    ttft_ms, tpot_ms = times.service.ttft * 1e3, times.service.tpot * 1e3
    load, not_simulated = _under_load(layout) if with_explanation else (None, ())
    return PerformanceEstimate(
        latency=LatencyEstimate(
            ttft_ms=ttft_ms,
            tpot_ms=tpot_ms,
            prefill_ms=times.prefill.seconds * 1e3,
            decode_ms=steps * tpot_ms,
            end_to_end_ms=ttft_ms + steps * tpot_ms,
            prefill=times.prefill.parts,
            decode_step=times.decode.parts,
        ),
        throughput=times.throughput,
        memory=device_memory(layout),
        critical_path=CriticalPath(prefill=times.prefill.steps, decode=times.decode.steps),
        calibration=calibration_of(layout.setting),
        cost=_cost(layout, times.throughput),
        notes=(*_load_notes(times), *estimate_notes(layout, times.seconds.transfer), *not_simulated),
        explanation=explain(*times.timed, times.seconds.transfer) if with_explanation else None,
        under_load=load,
    )


def _under_load(layout: Layout) -> tuple[LoadEstimate | None, tuple[str, ...]]:
    """The simulated load; without one the note that says why."""
    try:
        return load_estimate(layout), ()
    except InputError as error:
        return None, (f"the load was not simulated: {error}",)


def _load_notes(times: _Times) -> tuple[str, ...]:
    before = times.service.waits.first_token + times.seconds.client
    ttft = f"TTFT is {times.prefill.seconds * 1e3:.3g} ms of prefill and {before * 1e3:.3g} ms of waiting and client"
    if times.service.waits.per_token <= 0.0:
        return (ttft,)
    return (
        ttft,
        f"TPOT is a decode step of {times.decode.seconds * 1e3:.3g} ms and "
        f"{times.service.waits.per_token * 1e3:.3g} ms for prompts of other requests that the same replica prefills "
        "meanwhile",
    )


def quick_times(layout: Layout) -> QuickTimes:
    """Latency and throughput of `layout` alone: the same figures as `estimate_layout`, without memory and path."""
    times = _times(layout)
    steps = layout.setting.workload.output_tokens - 1
    return QuickTimes(
        ttft_ms=times.service.ttft * 1e3,
        tpot_ms=times.service.tpot * 1e3,
        end_to_end_ms=(times.service.ttft + steps * times.service.tpot) * 1e3,
        output_tokens_per_s=times.throughput.dp_scaled_tokens_per_s,
        output_tokens_per_s_per_gpu=times.throughput.output_tokens_per_s_per_gpu,
    )


def estimate(
    document: Plan | PlanView | Mapping[str, Any] | str | Path,
    usd_per_gpu_hour: float | None = None,
    calibration: CustomCalibration | str | Path | None = None,
) -> PerformanceEstimate:
    """The estimate of a plan as its graph shows it: a `Plan`, an object, a JSON text, or the path of a file.

    `calibration` is a user's own, or the path of its file.

    Raises:
        InputError: the plan cannot be read, or a fact that the arithmetic needs is not known.
    """
    if not isinstance(document, PlanView):
        view = _view(document)
        try:
            return estimate(view, usd_per_gpu_hour, calibration)
        finally:
            view.release()
    layout = layout_from_view(document)
    own = own_calibration(calibration)
    if own is not None:
        layout = replace(layout, setting=layout.setting.with_calibration(own), memo={})
    if usd_per_gpu_hour is not None:
        expect(usd_per_gpu_hour, (int, float), "usd_per_gpu_hour", "a number is expected")
        if not USD.hold(usd_per_gpu_hour):
            raise InputError(f"usd_per_gpu_hour: not from {USD.least:g} to {USD.most:,.0f}")
        layout = replace(layout, setting=replace(layout.setting, usd_per_gpu_hour=usd_per_gpu_hour))
    return estimate_layout(layout)


def _view(document: Plan | Mapping[str, Any] | str | Path) -> PlanView:
    read = read_document(document)
    if read.raw is None:
        raise InputError(f"no plan can be read: {read.faults[0].message}")
    return read.view


def _cost(layout: Layout, rates: ThroughputEstimate) -> CostEstimate | None:
    """Cost of a million output tokens at the stated price, the catalogue's range, or in GPU-seconds; nodes whole."""
    if rates.dp_scaled_tokens_per_s <= 0.0:
        return None
    hardware = layout.setting.hardware
    billed = len({device.split(".")[0] for device in layout.devices}) * hardware.gpus_per_node
    gpu_seconds = billed * 1e6 / rates.dp_scaled_tokens_per_s
    low, high, source = _price(layout)
    if low is None or high is None:
        return CostEstimate(per_million_output_tokens=gpu_seconds, unit="gpu_seconds", billed_gpus=billed)
    gpu_hours = gpu_seconds / 3600
    return CostEstimate(
        per_million_output_tokens=gpu_hours * (low + high) / 2,
        unit="usd",
        price_source=source,
        per_million_output_tokens_range=(gpu_hours * low, gpu_hours * high) if low < high else None,
        billed_gpus=billed,
    )


def _price(layout: Layout) -> tuple[float | None, float | None, str]:
    """The lowest and the highest USD per GPU-hour, and whose."""
    stated = layout.setting.usd_per_gpu_hour
    if stated is not None:
        return stated, stated, f"stated price ({stated:g} USD per GPU-hour)"
    part = layout.setting.hardware.accelerator
    low, high = part.on_demand_usd_per_hour or (None, None)
    if low is None or high is None:
        return None, None, ""
    middle = (low + high) / 2
    source = f"middle of {low:g}-{high:g} USD per GPU-hour, {part.price_source or 'catalogue'}"
    return low, high, f"{source} ({middle:g} USD per GPU-hour)"
