"""Power of a plan's GPUs and joules per output token, as ranges by what keeps them busy.

Power is measured rarely and varies more than times do, so every share below is a span of published measurements, and
the result is the span that they give for the simulated run. It covers the boards only: no host, network or cooling.

watts = board power x sum over (prefill, decode, nothing) of its share of the time x its share of the board power

The share of board power while a phase runs is the mean of those of computing, reading memory and waiting, by how long
each binds the phase's bare pass (`TimeParts`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import Struct

from ..plan.load import think_seconds
from ..plan.performance import EnergyEstimate, Interval, TimeParts
from .layout import LoadedLayout
from .limits import served_tokens_per_s
from .serving.load import ServingTimes

_KWH_J = 3.6e6

# Shares of board power, from the lowest to the highest that was published.
# A model is loaded and nothing runs: H200 80 of 700 W (serialalice.pt, GPU energy benchmark); a CUDA context adds 26 to
# 50 W to an idle card with HBM, 66 W to an L40S of 350 W, whatever it holds (arXiv 2605.23918).
IDLE: Interval = (0.10, 0.30)
# Memory binds: decode on an H200 137 to 300 of 700 W (arXiv 2605.11999); an H100 600 of 700 W with 128 requests (the
# ML.ENERGY Benchmark v3.0, as vllm-semantic-router's fleet-sim takes it).
MEMORY: Interval = (0.20, 0.86)
# Arithmetic binds: H100 and H200 593 to 680 of 700 W under full load (serialalice.pt); prompts reach the board's power
# (POLCA, arXiv 2308.12908).
COMPUTE: Interval = (0.80, 1.00)
# Waiting for links or other stages: not measured by itself, so between idle and memory.
WAITING: Interval = (IDLE[0], MEMORY[1])

SOURCE = (
    "board power x published shares of it: idle 10-30%, memory-bound 20-86%, compute-bound 80-100% "
    "(arXiv 2605.23918, 2605.11999, 2308.12908; ML.ENERGY Benchmark v3.0)"
)


class _Side(Struct, frozen=True):
    """GPUs with the same role, and the share of the time in which each phase keeps them busy."""

    gpus: int
    prefill_share: float
    decode_share: float


def energy_of(
    layout: LoadedLayout, times: ServingTimes, prefill: TimeParts, decode: TimeParts
) -> EnergyEstimate | None:
    """The energy of the run `times` of `layout`, whose single passes take `prefill` and `decode`.

    `None` if the board power of the accelerator is not known (`energy_notes` says so), or nothing is served.
    """
    accelerator = layout.setting.hardware.accelerator
    served = served_tokens_per_s(layout.setting.workload, times.output_tokens_per_s, saturated=times.saturated)
    if accelerator.tdp_w is None or served <= 0.0:
        return None
    sides = list(_sides(layout, times))
    gpus = sum(side.gpus for side in sides)
    phases = _share_of_power(prefill), _share_of_power(decode)
    low, high = (accelerator.tdp_w * sum(_busy_gpus(side, phases, end) for side in sides) for end in (0, 1))
    joules = (low / served, high / served)
    idle = sum(side.gpus * (1.0 - side.prefill_share - side.decode_share) for side in sides) / gpus
    return EnergyEstimate(
        watts=(low, high),
        joules_per_output_token=joules,
        kwh_per_million_output_tokens=(joules[0] * 1e6 / _KWH_J, joules[1] * 1e6 / _KWH_J),
        board_watts_per_gpu=accelerator.tdp_w,
        idle_share_pct=100.0 * idle,
        source=SOURCE,
    )


def energy_notes(layout: LoadedLayout) -> Iterator[str]:
    """Why there is no energy estimate."""
    accelerator = layout.setting.hardware.accelerator
    if accelerator.tdp_w is None:
        yield f"Energy is not known: board power of {accelerator.id} is not catalogued"


def _busy_gpus(side: _Side, phases: tuple[Interval, Interval], end: int) -> float:
    """The number of GPUs at full board power that would draw as much as those of `side`."""
    prefill, decode = side.prefill_share * phases[0][end], side.decode_share * phases[1][end]
    return side.gpus * (prefill + decode + (1.0 - side.prefill_share - side.decode_share) * IDLE[end])


def _share_of_power(parts: TimeParts) -> Interval:
    """The share of board power while a phase runs, by what binds it."""
    waiting_ms = parts.communication_ms + parts.bubble_ms
    pairs = (parts.compute_ms, COMPUTE), (parts.memory_ms, MEMORY), (waiting_ms, WAITING)
    total_ms = sum(ms for ms, _ in pairs)
    if total_ms <= 0.0:
        return IDLE
    low, high = (sum(ms * share[end] for ms, share in pairs) / total_ms for end in (0, 1))
    return low, high


def _sides(layout: LoadedLayout, times: ServingTimes) -> Iterator[_Side]:
    """The GPUs of a plan by role: one side if they serve both phases, else one for each phase."""
    prefill_share = min(1.0, times.prefill_share)
    if not layout.is_disaggregated:
        busy = max(prefill_share, 1.0 - _idle_share(layout, times, times.end_to_end.mean))
        yield _Side(len(layout.devices), prefill_share, busy - prefill_share)
        return
    prefill = len({device for replica in layout.prefill_replicas for device in replica.devices})
    decoding_s = max(0.0, times.end_to_end.mean - times.ttft.mean)
    yield _Side(prefill, prefill_share, 0.0)
    yield _Side(len(layout.devices) - prefill, 0.0, 1.0 - _idle_share(layout, times, decoding_s))


def _idle_share(layout: LoadedLayout, times: ServingTimes, stay_s: float) -> float:
    """The share of the time in which a replica has no request, when each stays with it for `stay_s`.

    At a rate, the number of requests present is Poisson-distributed with the mean that arrives in that time. Users who
    think are away for part of the time, independently; the replica is idle when all are.
    """
    workload, replicas = layout.setting.workload, max(1, len(layout.decode_replicas))
    if workload.request_rate is not None:
        return math.exp(-workload.request_rate * stay_s / replicas) if not times.saturated else 0.0
    users, think_s = workload.concurrency / replicas, think_seconds(workload)
    away = think_s / (think_s + times.end_to_end.mean) if think_s > 0.0 else 0.0
    return away**users if users >= 1.0 else 1.0 - users * (1.0 - away)
