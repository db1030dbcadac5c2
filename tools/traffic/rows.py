"""Rows of a trace: requests, faults with their places, and which prompts share beginnings, in bounded memory."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

from msgspec import Struct

from ..input.bounds import TOKENS

# Seconds since 1970, or since the start; no clock is later than the year 30,000.
_MOST_TIME_S = 1e12
# A whole number in digits; some tables write whole numbers with a decimal point.
_DIGITS = re.compile(r"[0-9]{1,20}(?:\.0{1,9})?")
# The most blocks of one prompt.
_MOST_BLOCKS = 1_000_000
NO_ANSWER = "without an answer"


class Row(Struct, frozen=True):
    """A request: when it came (s), tokens of prompt and answer, and the blocks of its prompt by their hashes."""

    at_s: float | None
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


class Fault(Struct, frozen=True):
    """What is wrong at a place, in words that quote nothing of the trace."""

    place: str
    reason: str


class RowError(Exception):
    """Something is not a request; the text says why, and quotes nothing."""


def refused(reason: str) -> NoReturn:
    """Refuse what is being read. Raises RowError: always."""
    raise RowError(reason)


def tokens_of(value: Any, field: str) -> int:
    """A count of tokens, written as a number or in digits. Raises RowError: it is no count, or out of range."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value.strip().partition(".")[0])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        refused(f"without a whole number of tokens in {field}")
    if not 0 <= value <= TOKENS.most:
        refused(f"with tokens out of range in {field}")
    return value


def row_of(at_s: float | None, prompt: int, answer: int, blocks: tuple[int, ...] = ()) -> Row:
    """A request. Raises RowError: its prompt is empty, or it has no answer."""
    if prompt == 0:
        refused("with an empty prompt")
    if answer == 0:
        refused(NO_ANSWER)
    return Row(at_s, prompt, answer, blocks)


def seconds_of(value: Any, field: str, unit_s: float = 1.0) -> float:
    """A time in s, from a number of `unit_s` or a date in ISO 8601 (UTC if it names no zone).

    Raises RowError: it is neither.
    """
    if isinstance(value, str):
        value = _read_time(value.strip()[:64])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = value * unit_s
    else:
        value = None
    if value is None or not math.isfinite(value) or abs(value) > _MOST_TIME_S:
        refused(f"without a time in {field}")
    return value


def _read_time(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def blocks_of(value: Any) -> tuple[int, ...]:
    """The hashes of a prompt's blocks. Raises RowError: not a list of whole numbers or texts."""
    blocks = list_of(value)
    if blocks is None or len(blocks) > _MOST_BLOCKS:
        refused("without a list in hash_ids")
    if not all(isinstance(block, int | str) for block in blocks):
        refused("without whole numbers in hash_ids")
    # Only their equality counts.
    return tuple(map(hash, blocks))


def list_of(value: object) -> list[Any] | None:
    """`value` typed as a list of anything; `None` if it is not a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


# The most distinct blocks of prompts in memory, and the most entries of earlier requests for all prompts together.
_MOST_KNOWN_BLOCKS = 1 << 20


class Prefixes:
    """The share of prompt blocks that had come before, and the requests that each prompt shares its beginning with.

    A block's hash stands for its prompt up to that block (Mooncake's `hash_ids`). The last request with a block (its
    owner) also had all blocks before it, maybe not as the last one. So along a prompt owners get earlier and earlier,
    and only owners where the owner changes can share the most with it, wherever a replay begins.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._blocks = self._shared = 0
        # `_starts`: by request, where its owners begin in `_owners`; `_depths`: the blocks shared with each owner.
        self._starts, self._owners, self._depths = array("q"), array("q"), array("q")
        # Bounds for the tokens of a block, from lengths and numbers of blocks.
        self._least_tokens, self._most_tokens = 1, 1 << 62
        self.is_whole = True

    def add(self, tokens: int, blocks: Sequence[int]) -> None:
        """Add a prompt; ignored once memory is full."""
        if not self.is_whole:
            return
        request, last = len(self._starts), self._last
        self._starts.append(len(self._owners))
        shared = 0
        for block in blocks:
            owner = last.get(block)
            if owner is None:
                break
            shared += 1
            if len(self._owners) > self._starts[-1] and self._owners[-1] == owner:
                self._depths[-1] = shared
            else:
                self._owners.append(owner)
                self._depths.append(shared)
        last.update(dict.fromkeys(blocks, request))
        self._blocks += len(blocks)
        self._shared += shared
        if blocks:
            self._least_tokens = max(self._least_tokens, -(-tokens // len(blocks)))
        if len(blocks) > 1:
            self._most_tokens = min(self._most_tokens, (tokens - 1) // (len(blocks) - 1))
        self.is_whole = max(len(last), len(self._owners)) < _MOST_KNOWN_BLOCKS

    def share(self) -> float | None:
        """The share of blocks that had come before; `None` if the trace has no blocks."""
        return self._shared / self._blocks if self._blocks else None

    def replay(self, places: Sequence[int], prompts: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
        """For successive requests: (the earlier one of them that each shares most with, shared tokens).

        `places` are their numbers, `prompts` their tokens. `None` if none shares anything, or lengths and blocks do not
        agree. Sharing with requests before the first is left out.
        """
        if not self.is_whole or self._least_tokens > self._most_tokens:
            return None
        first, shares = places[0], list[tuple[int, int]]()
        for place, prompt in zip(places, prompts, strict=True):
            end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._owners)
            within = [at for at in range(self._starts[place], end) if self._owners[at] >= first]
            if not within:
                shares.append((0, 0))
                continue
            earlier = self._owners[within[-1]] - first
            shares.append((earlier, min(self._depths[within[-1]] * self._least_tokens, prompt, prompts[earlier])))
        return tuple(shares) if any(tokens for _, tokens in shares) else None
