"""Latency and rate under a load from two times alone: that of prefilling prompts and that of a decode step.

Little's law over a request's life, with as many requests in flight as fit into memory: no queue, no scheduler, no
variance, so every percentile is the mean. It serves the roofline yardstick, which knows no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from ..performance.budget import device_terms
from ..performance.kv_cache import request_bytes
from ..performance.layout import Layout
from ..performance.serving.load import (
    Arrivals,
    Burst,
    ClosedLoop,
    OpenLoop,
    ServingTimes,
    StaticBatch,
    Statistics,
)

_ROUNDS = 40


class PassTimes(Protocol):
    """What times the passes of one replica."""

    def prefill_seconds(self, prompts: int) -> float:
        """Seconds in which one replica prefills `prompts` prompts."""
        ...

    def step_seconds(self, requests: int) -> float:
        """Seconds of one decode step of `requests` on one replica."""
        ...


@dataclass(frozen=True, slots=True)
class _Replica:
    """One replica (or one of each kind, disaggregated): its times, its output length, and what fits into it."""

    passes: PassTimes
    steps: int
    most: int
    count: int
    disaggregated: bool

    def in_flight(self, requests: float) -> int:
        """Of `requests` in all, those in one replica at a time."""
        return max(1, min(math.ceil(requests / self.count), self.most))

    def tpot(self, running: int) -> float:
        """A step, and the share in it of the prompts of all the others that run beside."""
        step = self.passes.step_seconds(running)
        if self.disaggregated or not self.steps:
            return step
        return step + (running - 1) * self.passes.prefill_seconds(1) / self.steps

    def life(self, running: int) -> float:
        """Seconds of one request."""
        return self.passes.prefill_seconds(1) + self.steps * self.tpot(running)


def serve_by(passes: PassTimes, layout: Layout, arrivals: Arrivals) -> ServingTimes:
    """What users see of `layout` under a load where `passes` times its passes; lengths are the workload's."""
    steps = layout.setting.workload.output_tokens - 1
    count = max(1, len(layout.decode_replicas))
    replica = _Replica(passes, steps, _most_requests(layout), count, layout.is_disaggregated)
    match arrivals:
        case ClosedLoop(users=users, requests=requests):
            return _steady(replica, replica.in_flight(users), users, requests)
        case OpenLoop(rate_per_s=rate, requests=requests):
            running = _running_at(replica, rate)
            return _steady(replica, running, running * count, requests)
        case Burst(requests=requests):
            return _burst(replica, requests)
        case StaticBatch(sequences=sequences):
            running = math.ceil(sequences / count)
            return _batch(replica, running, sequences)


def _most_requests(layout: Layout) -> int:
    """Requests whose cache fits beside the weights on the fullest device of a replica, at their mean context."""
    setting = layout.setting
    phase = layout.phase("decode")
    replica = layout.decode_replicas[0]
    free = setting.hardware.memory_bytes - max(terms.weights for terms in device_terms(setting, replica).values())
    context = setting.mean_decode_context + 1
    each = max(
        request_bytes(setting, stage.layers, context, phase.degrees.tp, phase.token_parts) for stage in phase.stages
    )
    return max(1, int(free / each)) * phase.attention_groups


def _running_at(replica: _Replica, rate_per_s: float) -> int:
    running = 1
    for _ in range(_ROUNDS):
        found = replica.in_flight(rate_per_s * replica.life(running))
        if found == running:
            break
        running = found
    return running


def _steady(replica: _Replica, running: int, users: int, requests: int) -> ServingTimes:
    prefill, tpot = replica.passes.prefill_seconds(1), replica.tpot(running)
    served = running * replica.count
    # Users beyond those that fit wait for their turn.
    wait = max(0.0, users / served - 1.0) * replica.life(running)
    rate = served / replica.life(running)
    return _times((prefill + wait, tpot, prefill + wait + replica.steps * tpot), rate, replica, requests / rate)


def _burst(replica: _Replica, requests: int) -> ServingTimes:
    running = replica.in_flight(requests)
    waves = max(1.0, requests / (running * replica.count))
    first, step = replica.passes.prefill_seconds(running), replica.passes.step_seconds(running)
    wave = first + replica.steps * step
    wait = (waves - 1.0) / 2.0 * wave + first / 2.0
    makespan = waves * wave
    return _times((wait, step, wait + replica.steps * step), requests / makespan, replica, makespan)


def _batch(replica: _Replica, running: int, sequences: int) -> ServingTimes:
    first, step = replica.passes.prefill_seconds(running), replica.passes.step_seconds(running)
    makespan = first + replica.steps * step
    return _times((first, step, makespan), sequences / makespan, replica, makespan)


def _times(
    latency: tuple[float, float, float], requests_per_s: float, replica: _Replica, makespan: float
) -> ServingTimes:
    ttft, tpot, end_to_end = (Statistics.constant(seconds) for seconds in latency)
    return ServingTimes(
        ttft=ttft,
        tpot=tpot,
        end_to_end=end_to_end,
        output_tokens_per_s=requests_per_s * (replica.steps + 1),
        makespan_s=makespan,
        running=requests_per_s * latency[2],
    )
