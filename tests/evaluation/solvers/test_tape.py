"""A recorded request is found by its whole content, and a difference is reported with its place."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpointer import resolve_pointer

from shardwright.agent.evaluation.solvers.scrub import scrubbed
from shardwright.agent.evaluation.solvers.tape import (
    RecordedExchange,
    cassette_path,
    first_difference,
    normalised,
)
from shardwright.agent.model.redaction import REDACTED, Redactor

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_a_body_is_like_itself_whatever_the_order_of_its_keys(body: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(nested) for name, nested in reversed(value.items())}
        return [turned(nested) for nested in value] if isinstance(value, list) else value

    assert first_difference(body, turned(body)) is None


def leaves(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values without nested values."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    below = [leaf for key, nested in inner for leaf in leaves(nested, (*place, key))]
    return below or [place]


@given(st.dictionaries(st.text("ab~/", max_size=2), VALUES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_a_change_is_found_at_its_place(body: dict[str, Any], chance: Any) -> None:
    place = chance.choice(leaves(body))
    other = copy.deepcopy(body)
    holder = other
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = "a text that nothing else is"
    difference = first_difference(body, other)
    assert difference is not None
    pointer = difference.split(": ")[0]
    assert resolve_pointer(other, pointer) == holder[place[-1]]


@pytest.mark.parametrize(
    ("recorded", "own"), [(1, True), (0, False), ("1", 1), (None, ""), ([], {}), ([1], [1, 2]), ({"a": 1}, {})]
)
def test_values_that_are_not_the_same_json_differ(recorded: Any, own: Any) -> None:
    assert first_difference(recorded, own) is not None
    assert first_difference(own, recorded) is not None


@given(st.text("0123456789abcdef", min_size=16, max_size=16))
def test_the_letters_of_a_fence_are_no_difference(letters: str) -> None:
    assert normalised([{"content": f"data-{letters}\nx"}]) == normalised([{"content": "data-0123456789abcdef\nx"}])
    assert normalised(f"mydata-{letters}") != normalised("mydata-0123456789abcdeg")


@given(st.text("ab", min_size=1, max_size=6), st.text("abc", max_size=6), st.text("ab", max_size=6))
def test_where_a_secret_stood_anything_may_stand_and_nowhere_else(before: str, secret: str, after: str) -> None:
    recorded = f"{before}{REDACTED}{after}{REDACTED}"
    assert first_difference(recorded, f"{before}{secret}{after}{secret}") is None
    assert first_difference(recorded, f"x{before}{secret}{after}{secret}") is not None
    assert first_difference(f"{REDACTED}{after}.", f"{secret}{after}") is not None


def test_a_file_is_found_for_any_case_id() -> None:
    from pathlib import Path

    names = {cassette_path(Path(), name, 1).name for name in ("a", "..", "案例" * 50, "案例" * 49 + "x", "a.1")}
    assert len(names) == 5
    assert all(len(name.encode()) < 200 and "/" not in name for name in names)


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from(["timeout", "broken", None]))
def test_what_holds_no_secret_is_kept_as_it_was(body: str, failure: Any) -> None:
    exchange = RecordedExchange(
        request={"a": [1]}, status=200, headers={"Content-Type": "x"}, body=body, failure=failure
    )
    clean = scrubbed(exchange, Redactor(["\x00secret\x00"]))
    assert clean.headers == {"content-type": "x"}
    assert clean.body == body or failure is not None
    assert body.startswith(clean.body)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_a_secret_in_the_pieces_of_a_stream_is_hidden_and_the_rest_reads_the_same(cuts: list[int]) -> None:
    whole = "before sk-secret-value after"
    pieces, at = list[str](), 0
    for cut in [*cuts, len(whole)]:
        pieces.append(whole[at : at + cut])
        at += cut
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    clean = scrubbed(RecordedExchange(body=body), Redactor(["sk-secret-value"])).body
    lines = [line[len("data: ") :] for line in clean.splitlines() if line.startswith("data: {")]
    read = "".join(json.loads(line)["choices"][0]["delta"]["content"] for line in lines)
    assert read == f"before {REDACTED} after"
    assert clean.endswith("data: [DONE]\n\n")
