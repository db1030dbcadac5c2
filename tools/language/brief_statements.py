"""What every form of brief is turned into: a flat list of statements, each with its keys or headings and its place.

Nothing is understood here: `brief_fields.py` decides which field of a deployment a statement is about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .errors import BriefError
from .gated import Gated

MAX_STATEMENTS = 1_500
MAX_STATEMENT_CHARS = 4_000
MAX_CHARS = 200_000
# The path element that the structured reader adds above statements on each server of a list.
PER_NODE = "per node"
# The path element that readers add above statements that do not count.
OUT_OF_SCOPE = "out of scope"


class Statement(Struct, frozen=True):
    """A single statement of a brief.

    `path` holds the enclosing headings and keys, outermost first, the statement's own key last. `keyed` is false where
    the last path element is a heading of the text and not the statement's own key. `where` names the place.
    """

    path: tuple[str, ...]
    text: str
    where: str
    keyed: bool = True
    heading: bool = False


class StatedObject(Struct, frozen=True):
    """An object of a structured brief that is data of its own: a model's `config.json`, or a catalogue-like card."""

    kind: str  # "config" or "card"
    name: str | None
    value: Mapping[str, Any]
    where: str


class Source(Struct, frozen=True):
    """All statements and objects of one text of a brief."""

    statements: tuple[Statement, ...] = ()
    objects: tuple[StatedObject, ...] = ()


def check_statement(words: str, where: str, count: int) -> None:
    """Refuse a statement that is too long, or one too many."""
    if len(words) > MAX_STATEMENT_CHARS:
        raise BriefError(f"{where}: {len(words)} characters in one piece; break it into sentences")
    if count > MAX_STATEMENTS:
        raise BriefError(
            f"{where}: the brief says more than the {MAX_STATEMENTS} things that are read; "
            "leave out what is not about this deployment"
        )


def join_sources(sources: Sequence[Source]) -> Source:
    """All texts of one brief as one; refused where together they are longer than what is read."""
    statements = tuple(statement for source in sources for statement in source.statements)
    if statements:
        check_statement("", statements[-1].where, len(statements))
    if sum(len(statement.text) for statement in statements) > MAX_CHARS:
        raise BriefError(f"the brief has more than {MAX_CHARS} characters; a brief is a few pages")
    return Source(statements, tuple(stated for source in sources for stated in source.objects))


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z])(?=P\d\d)|(?<=\d)(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[_\-/\\|]+|\s+")

_TIME_UNIT = re.compile(r"(?<!per )\b(?:ms|msecs?|millis(?:econds?)?|s|secs?|seconds?)\b")
_STATISTIC = re.compile(r"\b(?:p\d{2,3}|mean|avg|average|median)\b")
_TOKEN = r"(?:(?:output|generated|new) )?tok(?:en)?s?"
_ANSWER = r"(?:request|call|response|answer|reply)"
_LATENCIES = {
    "ttft": r"ttft|(?:(?:time|latency) )?(?:to |until )?(?:the )?first (?:output )?tok(?:en)?(?: latency| time)?",
    "tpot": (
        rf"tpot|itl|tbt|(?:(?:time|latency) )?(?:per|each|between|of each) {_TOKEN}|{_TOKEN}(?: latency| time)|"
        r"output token|inter token(?: latency| time| delay)?"
    ),
    "end to end latency": (
        rf"(?:e2el?|end to end)(?: latency| time)?|(?:(?:time|latency) )?(?:per|of each) {_ANSWER}|"
        rf"{_ANSWER} (?:latency|time|duration)|"
        rf"(?:whole|full|entire|complete|total) (?:{_ANSWER}|latency|time)(?: latency| time)?"
    ),
}
# "预留显存GB": the unit of a Chinese key, without a blank before it.
UNIT_BEHIND = Gated(r"(?<=[\u4e00-\u9fff])(?=(?:[gmt]i?b|ms|us|s|usd)$)")


def key_words(key: str) -> str:
    """A key or heading as plain lower-case words: `gpuCount`, `gpu_count` and `GPU count` read alike."""
    text = UNIT_BEHIND.sub(" ", unicodedata.normalize("NFKC", key))
    return _with_time_behind(_SEPARATORS.sub(" ", _CAMEL.sub(" ", text)).strip().lower())


def _with_time_behind(words: str) -> str:
    """The key of a latency with its unit as the last word: "ttft seconds p99", "p95 ms per output token"."""
    unit = _TIME_UNIT.search(words)
    if unit is None:
        return words
    named = " ".join(_STATISTIC.sub("", _TIME_UNIT.sub("", words)).split())
    latency = next((name for name, spelled in _LATENCIES.items() if re.fullmatch(spelled, named)), None)
    statistics = (match.group() for match in _STATISTIC.finditer(words))
    return words if latency is None else " ".join((latency, *statistics, unit.group()))
