"""Values from outside are shown short, printable, and as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.loop.shorten import MOST_ITEMS, bounded, short_text, short_value

from ...examples import examples

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(ANY)
@examples(100)
def test_any_value_becomes_json_and_is_not_changed_twice(value: Any) -> None:
    shown = bounded(value)
    json.dumps(shown, allow_nan=False, ensure_ascii=False).encode("utf-8")
    assert bounded(shown) == shown


@pytest.mark.parametrize("value", [0, -5, 1.5, True, None, "tp 8", [1, "a"], {"a": {"b": [1]}}])
def test_what_is_short_and_plain_stays_as_it_is(value: Any) -> None:
    assert bounded(value) == value
    assert short_value(value) == value


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**5000, "\ud800", "\x00"], ids=type)
def test_what_json_or_a_terminal_cannot_hold_is_told_in_words(value: Any) -> None:
    json.dumps(bounded([value]), allow_nan=False, ensure_ascii=False).encode("utf-8")


def test_long_texts_lists_objects_and_depths_are_cut_with_a_count() -> None:
    assert short_text("x" * 1000, 10) == "x" * 10 + "… (990 characters more)"
    assert bounded(list(range(MOST_ITEMS + 5)))[-1] == "and 5 more"
    assert bounded({str(at): at for at in range(MOST_ITEMS + 5)})["…"] == "5 more"
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert len(json.dumps(bounded(deep))) < 100
    assert len(json.dumps(short_value([["x" * 90] * 60] * 60))) < 600
