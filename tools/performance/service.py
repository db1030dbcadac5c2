"""The screen of a search: from the seconds of prompts and decode steps to what users see and how many tokens come out.

Written once for one deployment and for arrays of them: a search gives a column for each figure. Colocated replicas
alternate between prompts and decode steps; requests in flight over the time of one in the system are the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..calibration.forms.elementary import Number
from .queueing import Prompts, closed_loop_waits, prefill_queue


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """Seconds of a deployment at its load.

    `prompts` are the pass of one as it meets the deployment and those of a prefill replica's whole share, `step` is one
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
    """Requests in flight in all, on each replica that decodes, and as many of these as it runs at once."""

    concurrency: Number
    decode_requests: Number
    running: Number


@dataclass(frozen=True, slots=True)
class Service:
    """Mean seconds to the first token and per later one, and output tokens per second in all."""

    ttft: Number
    tpot: Number
    output_tokens_per_s: Number

    def request_seconds(self, output_tokens: int) -> Number:
        """Seconds of a request from its start to its last token."""
        return self.ttft + (output_tokens - 1) * self.tpot


def colocated_service(seconds: PhaseSeconds, shares: Shares, output_tokens: int) -> Service:
    """Replicas that serve both phases: what they do not run at once waits in line before its prompt."""
    steps = output_tokens - 1
    waits = closed_loop_waits(seconds.prompts, seconds.step, steps, shares.running, seconds.held_steps)
    ttft = seconds.prompts.one + seconds.transfer + waits.first_token + seconds.client
    tpot = seconds.step + waits.per_token
    in_line = (shares.decode_requests / shares.running - 1.0) * (ttft + steps * tpot)
    return _service(ttft + in_line, tpot, shares.concurrency, output_tokens)


def disaggregated_service(seconds: PhaseSeconds, concurrency: Number, output_tokens: int) -> Service:
    """Replicas of one phase each: a line forms before prefill where it is the slower side."""
    first = seconds.prompts.one + seconds.transfer + seconds.client
    wait = prefill_queue(seconds.prompts.together, first + (output_tokens - 1) * seconds.step)
    return _service(first + wait, seconds.step, concurrency, output_tokens)


def _service(ttft: Number, tpot: Number, concurrency: Number, output_tokens: int) -> Service:
    """Requests in flight over the time of one in the system are the rate (Little); no token is later than the first."""
    steps = output_tokens - 1
    rate = concurrency * output_tokens / (ttft + steps * tpot)
    return Service(ttft, tpot if steps else 0.0 * tpot, rate)
