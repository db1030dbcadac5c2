"""Rates of a steady state: how many requests a second prefill and decode replicas sustain, and tokens from that.

A replica that serves both phases alternates: the prompts of a batch, then its decode steps (physics of continuous
batching without its finer interleaving). Disaggregated, the slower kind of replica sets the rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..plan.performance import ThroughputEstimate
from .layout import Layout
from .operation import TokenLoad
from .schedule import PhaseTime, PhaseTimer, prefill_loads


@dataclass(frozen=True, slots=True)
class ReplicaRates:
    """Of one replica: requests in flight, seconds of one decode step, and those in which each is answered once."""

    requests: int
    step_seconds: float
    cycle_seconds: float


def batched_prefill_seconds(layout: Layout, timer: PhaseTimer, requests: int) -> float:
    """Seconds in which one replica prefills `requests` prompts: as many in a pass as its chunk holds.

    Passes follow one another through the stages; the first one fills the pipeline, then the busiest stage sets the
    pace.
    """
    setting = layout.setting
    groups = min(timer.phase.attention_groups, requests)
    per_group = math.ceil(requests / groups)
    together = max(1, min(per_group, setting.prefill_chunk_tokens // setting.prompt_tokens))
    time = timer.prefill(prefill_loads(setting, together, groups))
    rounds = math.ceil(per_group / together)
    return time.seconds + (rounds - 1) * time.busiest_seconds


def _rate(tokens: float, seconds: float) -> float:
    return tokens / seconds if seconds > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class SingleRequest:
    """One request alone on the deployment, in seconds."""

    ttft: float
    step: float


def throughput(
    layout: Layout, rates: ReplicaRates, prefill_replica_seconds: float, alone: SingleRequest
) -> ThroughputEstimate:
    """Tokens per second of one request, of a full batch on one replica, and of all replicas together.

    `prefill_replica_seconds` is the time that a prefill-only replica needs for its own share of the requests.
    """
    output = layout.setting.workload.output_tokens
    steps = output - 1
    single = _rate(output, alone.ttft + steps * alone.step)
    decode_count = max(1, len(layout.decode_replicas))
    if layout.is_disaggregated:
        prefill_count = max(1, len(layout.prefill_replicas))
        share = math.ceil(layout.setting.workload.concurrency / prefill_count)
        prefill_rate = prefill_count * _rate(share, prefill_replica_seconds)
        decode_seconds = steps * rates.step_seconds
        decode_rate = decode_count * _rate(rates.requests, decode_seconds) if steps else prefill_rate
        batched = decode_rate / decode_count * output
        scaled = min(prefill_rate, decode_rate) * output
    else:
        batched = _rate(rates.requests * output, rates.cycle_seconds)
        scaled = decode_count * batched
    # Requests are shared out rounded up; replicas that have one less, or none, do that much less.
    scaled *= layout.setting.workload.concurrency / (rates.requests * decode_count)
    return ThroughputEstimate(
        single_request_tokens_per_s=single,
        batched_tokens_per_s=batched,
        dp_scaled_tokens_per_s=scaled,
        output_tokens_per_s_per_gpu=scaled / max(1, len(layout.devices)),
    )


def decode_load(layout: Layout, timer: PhaseTimer, requests: int) -> tuple[TokenLoad, int]:
    """The load of one microbatch of a decode step with `requests` on the replica, and how many microbatches there are.

    Attention groups share the requests, and as many microbatches as there are stages go round by default. Contexts are
    at the mean length of a request while it is decoded.
    """
    setting = layout.setting
    groups = min(timer.phase.attention_groups, requests)
    batch = math.ceil(requests / groups)
    stated = None if setting.serving is None else setting.serving.microbatches
    microbatches = min(stated or len(timer.stages), batch)
    return TokenLoad(math.ceil(batch / microbatches), 1, setting.mean_decode_context, groups), microbatches


def decode_time(layout: Layout, timer: PhaseTimer, requests: int) -> PhaseTime:
    """One decode step of a replica with `requests` in flight."""
    load, microbatches = decode_load(layout, timer, requests)
    return timer.decode(load, microbatches)
