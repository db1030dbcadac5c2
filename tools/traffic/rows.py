"""What is read of a trace: requests, and what is wrong at which place."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn, cast

from ..bounds import TOKENS

# Seconds since 1970, or since the start: later than the year 30,000 is nobody's clock.
_MOST_TIME_S = 1e12
# A whole number in digits; some tables write each number with a point.
_DIGITS = re.compile(r"[0-9]{1,20}(?:\.0{1,9})?")
# Blocks of one prompt that are looked at.
_MOST_BLOCKS = 1_000_000
NO_ANSWER = "without an answer"


@dataclass(frozen=True, slots=True)
class Row:
    """A request: when it came (s), tokens of prompt and answer, and the blocks of its prompt by their hashes."""

    at_s: float | None
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at a place, in words that quote nothing of it."""

    place: str
    reason: str


class RowError(Exception):
    """Something is no request; the text says what, and quotes nothing."""


def refused(reason: str) -> NoReturn:
    """Refuse what is being read. Raises RowError: always."""
    raise RowError(reason)


def tokens_of(value: Any, field: str) -> int:
    """A count of tokens, written as a number or in digits. Raises RowError: it is none, or none of a request."""
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
    """The request. Raises RowError: its prompt is empty, or it had no answer."""
    if prompt == 0:
        refused("with an empty prompt")
    if answer == 0:
        refused(NO_ANSWER)
    return Row(at_s, prompt, answer, blocks)


def seconds_of(value: Any, field: str, unit_s: float = 1.0) -> float:
    """A time in s: a number of units, or a date as ISO 8601 writes it (UTC where it names no zone).

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
    """The hashes of a prompt's blocks. Raises RowError: they are no list of whole numbers or texts."""
    blocks = list_of(value)
    if blocks is None or len(blocks) > _MOST_BLOCKS:
        refused("without a list in hash_ids")
    if not all(isinstance(one, int | str) for one in blocks):
        refused("without whole numbers in hash_ids")
    # Whatever they are, only which of them are the same counts.
    return tuple(map(hash, blocks))


def list_of(value: object) -> list[Any] | None:
    """A list as one of whatever it holds; `None` of what is none."""
    return cast("list[Any]", value) if isinstance(value, list) else None
