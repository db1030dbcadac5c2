"""What a pass of a replica's share of the load holds: chunks of a prompt, prompts together, microbatches of decode."""

from __future__ import annotations

import math

from msgspec import Struct

from ..calibration.forms.elementary import Number, larger, smaller
from ..errors import InputError
from ..plan.load import repeated_share
from .operation import TokenLoad
from .setting import Setting

# A chunk size that gives one prompt more passes than this is refused: no engine would run it.
_MOST_CHUNKS = 2048


def microbatches(setting: Setting, stages: int) -> int:
    """Batches that go round the stages at once: the plan's number, else as many as there are stages."""
    return setting.serving.microbatches or stages


def prefill_loads(setting: Setting, groups: int) -> tuple[TokenLoad, ...]:
    """The chunks of one prompt on each of `groups` attention groups, without what a prefix cache may have of it.

    Raises InputError: the chunk is so small that a prompt takes thousands of passes.
    """
    total = setting.prompt_tokens
    cached = min(math.floor(repeated_share(setting.workload) * total), total - 1)
    chunk = max(1, setting.prefill_chunk_tokens)
    if (total - cached) / chunk > _MOST_CHUNKS:
        raise InputError(
            f"serving.prefill_chunk_tokens {setting.prefill_chunk_tokens} cuts a prompt of {total} tokens into more "
            f"than {_MOST_CHUNKS} passes: choose a larger chunk",
            "/serving/prefill_chunk_tokens",
        )
    return tuple(TokenLoad(1, min(chunk, total - start), start, groups) for start in range(cached, total, chunk))


class PromptShare(Struct, frozen=True):
    """How a replica takes its share of prompts: `groups` at work, prompts per pass of each, passes in a row.

    `passes` counts those of all groups.
    """

    groups: Number
    together: Number
    rounds: Number
    passes: Number


def prompts_of_pass(setting: Setting, groups: int) -> int:
    """Whole prompts that fit the token budget of a pass on one of `groups` attention groups, at least one."""
    return max(1, setting.token_budget(groups) // setting.prompt_tokens)


def prompt_share(most: int, attention_groups: Number, requests: Number) -> PromptShare:
    """The share of a replica with `requests` (or an array), with at most `most` prompts in a pass of a group."""
    groups = smaller(attention_groups, requests)
    per_group = -(-requests // groups)
    together = smaller(per_group, most)
    rounds = -(-per_group // together)
    return PromptShare(groups, together, rounds, larger(rounds, -(-requests // together)))


def dealt_out(sequences: Number, microbatches: Number, together: Number) -> tuple[Number, Number]:
    """How many of a scheduler's `sequences` are in a microbatch, and the resulting number of microbatches.

    The microbatch with the fewest takes the next prompts, up to `together`, which fit in a pass. They stay together:
    they are answered at the same time, so their users also send the next ones together.
    """
    per_batch = larger(-(-sequences // microbatches), smaller(sequences, together))
    return per_batch, -(-sequences // per_batch)
