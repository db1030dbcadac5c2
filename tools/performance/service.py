"""The screen of a search: from the seconds of prompts and decode steps to what users see and how many tokens come out.

Written once for one deployment and for arrays of them: a search gives a column for each figure. Colocated replicas
alternate between prompts and decode steps; of disaggregated ones the slower kind sets the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..calibration.forms.elementary import Number, larger
from .queueing import Prompts, closed_loop_waits, prefill_queue


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """Seconds of a deployment at its load.

    `prompts` are one prompt as it meets the deployment and those of a prefill replica's whole share, `step` is one
    decode step of a replica with its share, `transfer` the way of a prompt's cache, `client` what the client adds.
    A prompt is held back for `held_steps` steps until other attention groups have one.
    """

    prompts: Prompts
    step: Number
    transfer: Number
    client: Number
    held_steps: Number = 0.0


@dataclass(frozen=True, slots=True)
class Shares:
    """Requests in flight in all, and on each replica that decodes."""

    concurrency: Number
    decode_requests: Number


@dataclass(frozen=True, slots=True)
class Service:
    """Mean seconds to the first token and per later one, and output tokens per second in all."""

    ttft: Number
    tpot: Number
    output_tokens_per_s: Number


def colocated_service(seconds: PhaseSeconds, shares: Shares, output_tokens: int) -> Service:
    """Replicas that serve both phases: requests in flight over the rate is the time of one in the system (Little)."""
    steps = output_tokens - 1
    waits = closed_loop_waits(seconds.prompts, seconds.step, steps, shares.decode_requests, seconds.held_steps)
    ttft = seconds.prompts.one + seconds.transfer + waits.first_token + seconds.client
    tpot = seconds.step + waits.per_token
    cycle = seconds.prompts.one + waits.first_token + seconds.client + steps * tpot
    return Service(ttft, tpot, output_tokens_per_s=shares.concurrency * output_tokens / cycle)


def disaggregated_service(seconds: PhaseSeconds, shares: Shares, output_tokens: int) -> Service:
    """Replicas of one phase each: a line forms before prefill where it is the slower side.

    Requests are shared out rounded up, and all are answered once when the fullest replica of each kind has done its
    share.
    """
    steps = output_tokens - 1
    alone = seconds.prompts.one + seconds.transfer + steps * seconds.step
    waits = prefill_queue(seconds.prompts.together, alone)
    slower = larger(seconds.prompts.together, steps * seconds.step)
    return Service(
        seconds.prompts.one + seconds.transfer + waits.first_token + seconds.client,
        seconds.step,
        output_tokens_per_s=shares.concurrency * output_tokens / slower,
    )
