"""The share of a replica in the load: what all its prompts take, and one decode step of all its requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..calibration.forms.elementary import Number, larger, smaller
from .layout import LoadedLayout
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


def prompts_of_pass(setting: Setting) -> int:
    """Whole prompts that the token budget of a pass holds, and one at least."""
    return max(1, setting.token_budget // setting.prompt_tokens)


def prompt_share(setting: Setting, attention_groups: Number, requests: Number) -> PromptShare:
    """The share of a replica with `requests` (or of an array): as many prompts in a pass as its chunk holds."""
    groups = smaller(attention_groups, requests)
    per_group = -(-requests // groups)
    together = smaller(per_group, prompts_of_pass(setting))
    rounds = -(-per_group // together)
    return PromptShare(groups, together, rounds, larger(rounds, -(-requests // together)))


def dealt_out(sequences: Number, microbatches: Number, together: Number) -> tuple[Number, Number]:
    """How many of the `sequences` of a scheduler are in a microbatch, and how many microbatches that makes.

    The one with the fewest takes the next prompts, as many `together` as a pass holds. They stay together: they are
    answered at the same time, and so their users send the next ones.
    """
    met = larger(-(-sequences // microbatches), smaller(sequences, together))
    return met, -(-sequences // met)


def decode_load(layout: LoadedLayout, timer: PhaseTimer, requests: int) -> tuple[TokenLoad, int]:
    """The load of one microbatch of a decode step with `requests` on the replica, and how many microbatches there are.

    Attention groups share the requests, and as many microbatches as there are stages go round by default. Where phases
    are apart, prompts come to a replica that decodes one by one. Contexts are at the mean length of a request while it
    is decoded.
    """
    setting = layout.setting
    groups = min(timer.phase.attention_groups, requests)
    together = 1 if layout.is_disaggregated else prompts_of_pass(setting)
    batch = math.ceil(requests / groups)
    met, among = dealt_out(batch, microbatches(setting, len(timer.stages)), together)
    return TokenLoad(met, 1, setting.mean_decode_context, groups), int(among)


def decode_time(layout: LoadedLayout, timer: PhaseTimer, requests: int) -> PhaseTime:
    """One decode step of a replica with `requests` in flight."""
    return timer.decode(*decode_load(layout, timer, requests))
