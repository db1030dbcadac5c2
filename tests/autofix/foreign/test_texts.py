"""Broken JSON is read as it was meant, a cut text up to its last complete part, figures only if unambiguous."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.foreign.figures import experts_of, places_of, span_of, whole_number
from shardwright.tools.autofix.foreign.reader import read_proposal
from shardwright.tools.autofix.foreign.tolerant import parse_tolerant
from shardwright.tools.autofix.foreign.words import HardwareWords, degrees_of, hardware_of
from shardwright.tools.rules.examples import base_plan

from .proposals import table


def _hardware(words: HardwareWords) -> list[Any]:
    return [words.accelerator, *(words.counts.get(name) for name in ("nodes", "gpus_per_node", "total"))]


def _degrees(text: str) -> dict[str, int] | None:
    """The degrees of both phases."""
    degrees = degrees_of(text)
    return degrees if degrees is None else dict(degrees[None])


_READERS = {
    "places": places_of,
    "spans": span_of,
    "numbers": whole_number,
    "degrees": _degrees,
    "experts": experts_of,
    "hardware": lambda text: _hardware(hardware_of(text)),
}
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("row", table("tolerated.json"), ids=lambda row: row["name"])
def test_broken_json_is_read_as_it_was_meant(row: dict[str, Any]) -> None:
    assert parse_tolerant(row["text"]).value == row["value"]


@pytest.mark.parametrize(
    ("kind", "row"), [(kind, row) for kind, rows in table("figures.json").items() for row in rows], ids=str
)
def test_a_figure_is_read_where_it_means_one_thing(kind: str, row: list[Any]) -> None:
    figure = _READERS[kind](row[0])
    assert json.loads(json.dumps(figure)) == row[1]


@given(st.dictionaries(st.text(max_size=6), _VALUES, max_size=5))
def test_sound_json_is_read_as_any_parser_reads_it(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    read = parse_tolerant(text)
    assert (read.value, read.end, read.is_cut, read.repairs) == (value, len(text), False, ())


@given(_VALUES, st.floats(0, 1))
def test_of_a_cut_text_only_whole_members_are_kept(value: Any, share: float) -> None:
    text = json.dumps({"first": value, "last": 1})
    read = parse_tolerant(text[: 1 + int(share * (len(text) - 2))])
    assert _is_part(read.value, {"first": value, "last": 1})


def _is_part(part: Any, whole: Any) -> bool:
    """Whether `part` is `whole` less members and elements at its end."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return type(part) is type(whole) and part == whole


_PLAN = json.dumps(base_plan("dense-pp2-tp2"))


@given(st.integers(0, len(_PLAN)))
def test_of_a_cut_plan_every_node_that_is_kept_is_whole(cut: int) -> None:
    plan = json.loads(_PLAN)
    document = read_proposal(_PLAN[:cut]).document or {}
    assert all(node in plan["nodes"] for node in document.get("nodes", ()))
    assert all(edge in plan["edges"] for edge in document.get("edges", ()))


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "Sure!\n```json\n{}\n```\nThat is all.",
        "<think>maybe {{tp: 2}}?</think>\n{}",
        "Here: {} — done.",
        "\ufeff{}",
    ],
    ids=["bare", "fence", "thought", "sentence", "byte order mark"],
)
def test_a_plan_in_prose_is_read_as_it_stands(wrapped: str) -> None:
    assert read_proposal(wrapped.replace("{{", "{").replace("}}", "}").replace("{}", _PLAN)).document == json.loads(
        _PLAN
    )
