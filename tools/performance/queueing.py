"""What a request of a closed loop waits for on average, in closed form: the running step, and the prompts of others.

Between two of its own requests a user meets the prompt of every other user once. Which of them come before its first
token and which between later ones depends on how requests fall together: here all are gaps between later tokens, so
that a faster accelerator never lengthens a wait. The simulation (`under_load`) tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..calibration.forms.elementary import Number, larger, pick
from .setting import Setting


@dataclass(frozen=True, slots=True)
class Waits:
    """Mean seconds per request: before its first token, and per later token because of others' prompts."""

    first_token: Number
    per_token: Number


NO_WAITS = Waits(0.0, 0.0)


def closed_loop_waits(prefill: Number, all_prompts: Number, decode_step: Number, steps: int, requests: Number) -> Waits:
    """The waits of one of `requests` on a replica that serves both phases. Seconds.

    `prefill` is one prompt alone, `all_prompts` the prompts of all requests once, `decode_step` one of `steps`. A
    prompt meets a step that runs, half of it on average.
    """
    if steps <= 0:
        return NO_WAITS
    together = requests > 1
    others = larger(0.0, all_prompts - prefill)
    return Waits(pick(together, decode_step / 2.0, 0.0), pick(together, others / steps, 0.0))


def prefill_queue(all_prompts: Number, alone: Number) -> Waits:
    """The wait before prefill replicas of their own, where they are the slower side. Seconds.

    `all_prompts` is what one prefill replica takes for its share of all requests, `alone` one request's whole way when
    it waits for nothing: requests in flight over the rate is the time in the system (Little's law).
    """
    return Waits(larger(0.0, all_prompts - alone), 0.0)


def client_seconds(setting: Setting) -> float:
    """What the client waits beside the engine: HTTP, tokeniser, and the engine's interval of delivery is not in it."""
    constants = setting.engine.entry.constants
    return constants.client_ms * 1e-3 + constants.client_token_us * 1e-6 * setting.prompt_tokens
