"""The line of a place in a JSON text is that of its value, whatever the layout of the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.plan.pointer_lines import line_of
from shardwright.tools.rules.examples import base_plan

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    yield pointer, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from places(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


@given(JSON)
def test_a_value_begins_in_its_line(value: Any) -> None:
    text = json.dumps(value, indent=1)
    for pointer, inner in places(value):
        tail = "\n".join(text.split("\n")[line_of(text, pointer) - 1 :])
        first = json.dumps(inner, indent=1).split("\n")[0]
        assert first in tail.split("\n")[0], pointer


@pytest.mark.parametrize(
    ("pointer", "line"),
    [("", 1), ("/strategy/none", "/strategy"), ("/nodes/9999", "/nodes"), ("/nodes/3/absent", "/nodes/3"), ("/x/y", 1)],
)
def test_what_is_not_there_has_the_line_of_what_lacks_it(pointer: str, line: str | int) -> None:
    text = json.dumps(base_plan("dense-tp2"), indent=2)
    assert line_of(text, pointer) == (line if isinstance(line, int) else line_of(text, line))
