"""The share of a replica in the load: what all its prompts take, and one decode step of all its requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..calibration.forms.elementary import Number, larger, smaller
from .layout import Layout
from .operation import TokenLoad
from .schedule import PhaseTime, PhaseTimer, microbatches
from .setting import Setting


@dataclass(frozen=True, slots=True)
class PromptShare:
    """How a replica takes its share of prompts: `groups` at work, prompts in a pass of each, passes in a row.

    `passes` are those of all groups.
    """

    groups: Number
    together: Number
    rounds: Number
    passes: Number


def prompt_share(setting: Setting, attention_groups: int, requests: Number) -> PromptShare:
    """The share of a replica with `requests` (or of an array): as many prompts in a pass as its chunk holds."""
    groups = smaller(attention_groups, requests)
    per_group = -(-requests // groups)
    together = larger(1, smaller(per_group, setting.prefill_chunk_tokens // setting.prompt_tokens))
    rounds = -(-per_group // together)
    return PromptShare(groups, together, rounds, larger(rounds, -(-requests // together)))


def met_together(batch: Number, microbatches: Number) -> Number:
    """Sequences of the microbatch that a request finds itself in, of `batch` in `microbatches`, to the nearest whole.

    Requests fall into microbatches as they come and stay there: of the others one in `microbatches` shares its own, so
    that it meets 1 + (batch - 1) / microbatches on average, more than the batch cut into even parts.
    """
    return 1 + (2 * (batch - 1) + microbatches) // (2 * microbatches)


def decode_load(layout: Layout, timer: PhaseTimer, requests: int) -> tuple[TokenLoad, int]:
    """The load of one microbatch of a decode step with `requests` on the replica, and how many microbatches there are.

    Attention groups share the requests, and as many microbatches as there are stages go round by default. Contexts are
    at the mean length of a request while it is decoded.
    """
    setting = layout.setting
    groups = min(timer.phase.attention_groups, requests)
    batch = math.ceil(requests / groups)
    among = min(microbatches(setting, len(timer.stages)), batch)
    return TokenLoad(met_together(batch, among), 1, setting.mean_decode_context, groups), among


def decode_time(layout: Layout, timer: PhaseTimer, requests: int) -> PhaseTime:
    """One decode step of a replica with `requests` in flight."""
    return timer.decode(*decode_load(layout, timer, requests))
