"""Latency and throughput in closed form, from the seconds of prompts and steps: screens the layouts of a search.

Works for one deployment or for arrays of them, with a column for each figure. Colocated replicas alternate between
prompts and decode steps; the rate is requests in flight over the time of one in the system.

From one request to the next, a user waits for the prompt of every other user once. Prompts in the same pass come before
the first token. When the others come depends on how requests coincide; here all are gaps between later tokens, so that
a faster accelerator never lengthens a wait. The simulation (`planned_run`) tells them apart.
"""

from __future__ import annotations

from msgspec import Struct

from ..calibration.forms.elementary import Number, larger, pick, smaller
from .setting import Setting


class Prompts(Struct, frozen=True):
    """Seconds of the pass with one prompt, and of all prompts of a replica's requests.

    `together`: its attention groups take theirs side by side; `apart`: each holds up all others.
    """

    one: Number
    together: Number
    apart: Number


class Waits(Struct, frozen=True):
    """Mean seconds of waiting per request: before its first token, and per later token because of others' prompts."""

    first_token: Number
    per_token: Number


def closed_loop_waits(prompts: Prompts, decode_step: Number, steps: int, requests: Number, held_steps: Number) -> Waits:
    """The waits of one of `requests` on a replica that serves both phases.

    `decode_step` is the seconds of one of `steps`. A prompt waits half a running step on average, and is held back for
    `held_steps` more (`held_back`).
    """
    others = pick(requests > 1, larger(0.0, stalled_seconds(prompts, decode_step * steps) - prompts.one), 0.0)
    if steps <= 0:
        # Only prompts: each waits for all others.
        return Waits(others, 0.0)
    return Waits(pick(requests > 1, decode_step * (0.5 + held_steps), 0.0), others / steps)


def stalled_seconds(prompts: Prompts, decoding: Number) -> Number:
    """Seconds S in which a replica has prompts in its steps while each request decodes for D = `decoding` seconds.

    Attention groups meet in every MoE layer, so a step lasts as long for all as for the group with a prompt. Each of g
    groups has one for the share A / (S + D) of the time (A: `prompts.together`), so on average g A / S =
    1 + (g - 1) A / (S + D) of them have one at once: S^2 + S (D - A) = g A D. Prompts one by one cost less than
    together: B (`prompts.apart`) in all instead of g A. S is A if nothing decodes and approaches B if prompts are rare.
    """
    spare = decoding - prompts.together
    stalled = 0.5 * ((spare * spare + 4.0 * larger(prompts.together, prompts.apart) * decoding) ** 0.5 - spare)
    return pick(prompts.apart > prompts.together, stalled, prompts.together)


def hold_up_others(setting: Setting, groups: int) -> bool:
    """Whether a prompt of one of `groups` attention groups holds up the decode of the others.

    Not if the engine holds it back until the others prefill as well.
    """
    return groups > 1 and setting.engine.entry.scheduler.group_wait_steps == 0


def held_back(setting: Setting, groups: int, requests: Number, steps: int) -> Number:
    """Mean steps that a prompt is held back until every attention group of a replica has one.

    A group gets a prompt every `steps * groups / requests` steps, which is also how long the last group takes to get
    one; the engine waits no longer than its setting, and not at all if a group has nothing to decode.
    """
    most = setting.engine.entry.scheduler.group_wait_steps
    if groups == 1 or most == 0:
        return 0.0
    return pick(requests > groups, 0.5 * smaller(1.0 * most, steps * groups / requests), 0.0)


def prefill_queue(all_prompts: Number, alone: Number) -> Number:
    """Seconds of wait before separate prefill replicas; 0 unless they are the slower side.

    `all_prompts` is the seconds of one prefill replica for its share of all requests, `alone` one request's seconds
    without waits: requests in flight over the rate is the time in the system (Little's law).
    """
    return larger(0.0, all_prompts - alone)


def client_seconds(setting: Setting) -> float:
    """Seconds that a client waits beside the engine: HTTP and tokeniser, not the engine's delivery interval."""
    constants = setting.engine.entry.constants
    return constants.client_ms * 1e-3 + constants.client_token_us * 1e-6 * setting.prompt_tokens


class PhaseSeconds(Struct, frozen=True):
    """Seconds of a deployment at its load.

    `prompts` has the pass of one prompt and those of a prefill replica's whole share, `step` is one decode step of a
    replica with its share, `transfer` the transfer of a prompt's cache, `client` what the client adds. A prompt is held
    back for `held_steps` steps until other attention groups have one.
    """

    prompts: Prompts
    step: Number
    transfer: Number
    client: Number
    held_steps: Number = 0.0


class Shares(Struct, frozen=True):
    """Requests in flight in all, on each replica that decodes, and running at once on it."""

    concurrency: Number
    decode_requests: Number
    running: Number


class Service(Struct, frozen=True):
    """Mean seconds to the first token and per later token, and total output tokens per second."""

    ttft: Number
    tpot: Number
    output_tokens_per_s: Number

    def request_seconds(self, output_tokens: int) -> Number:
        """Seconds of a request from its start to its last token."""
        return self.ttft + (output_tokens - 1) * self.tpot


def colocated_service(seconds: PhaseSeconds, shares: Shares, output_tokens: int) -> Service:
    """Service of replicas for both phases: requests that they do not run at once wait in line before prefill."""
    steps = output_tokens - 1
    waits = closed_loop_waits(seconds.prompts, seconds.step, steps, shares.running, seconds.held_steps)
    ttft = seconds.prompts.one + seconds.transfer + waits.first_token + seconds.client
    tpot = seconds.step + waits.per_token
    in_line = (shares.decode_requests / shares.running - 1.0) * (ttft + steps * tpot)
    return _service(ttft + in_line, tpot, shares.concurrency, output_tokens)


def disaggregated_service(seconds: PhaseSeconds, concurrency: Number, output_tokens: int) -> Service:
    """Service of replicas for one phase each: a line forms before prefill if that is the slower side."""
    first = seconds.prompts.one + seconds.transfer + seconds.client
    wait = prefill_queue(seconds.prompts.together, first + (output_tokens - 1) * seconds.step)
    return _service(first + wait, seconds.step, concurrency, output_tokens)


def _service(ttft: Number, tpot: Number, concurrency: Number, output_tokens: int) -> Service:
    """The rate is requests in flight over the time of one in the system (Little's law); TPOT is 0 with one token."""
    steps = output_tokens - 1
    rate = concurrency * output_tokens / (ttft + steps * tpot)
    return Service(ttft, tpot if steps else 0.0 * tpot, rate)
