"""The table of what planners call things: words and units, English and Chinese, to the field that they state.

A rule matches a clause in which the figure at hand stands as `#`, other figures as marks (`<n>` nodes, `<g>` cards,
`<c>` a bare number, …) and catalogue names as `gpu` or `llm`. Words are lower case, underscores and hyphens are spaces.
It refuses nothing; the readers do.
"""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from msgspec import Struct

from .brief_lexicon import Row
from .brief_rows_card import CARD_ROWS
from .brief_rows_model import MODEL_ROWS
from .quantities import Unit


class FieldRule(Struct, frozen=True):
    """What a figure is about: it has one of `units`, stands near `words`, and nowhere near `unless`.

    `scope` must match somewhere in the headings, keys or words; `field` is a field of `Said`, or of the card
    (`card.`), of the model (`model.`), of the strategy (`strategy.`).
    """

    field: str
    units: frozenset[Unit]
    words: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    scope: re.Pattern[str] | None = None


@cache
def field_rules() -> tuple[FieldRule, ...]:
    """The table, in order of preference among rules that match equally near."""
    return tuple(_rule(row) for row in (*MODEL_ROWS, *CARD_ROWS))


def _rule(row: Row) -> FieldRule:
    field, units, words = row[:3]
    unless = re.compile(row[3]) if len(row) > 3 and row[3] else None
    scope = re.compile(row[4]) if len(row) > 4 else None
    return FieldRule(field, frozenset(cast("list[Unit]", units.split())), re.compile(words), unless, scope)
