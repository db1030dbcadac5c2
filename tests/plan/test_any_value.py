"""With any value at any place of a plan `validate` answers, and all else answers or raises a clear error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.compare import compare
from shardwright.agent.fix_api import autofix
from shardwright.tools.errors import ShardwrightError
from shardwright.tools.input.strict_values import MAX_DEPTH, cleaned, is_sound
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.document import PhaseStrategy, Plan
from shardwright.tools.validate import validate
from shardwright.tools.verify import FORMAT, verify

from ..examples import examples
from .tiny import DENSE, tiny_plan

PLAN: dict[str, Any] = tiny_plan(DENSE, PhaseStrategy(tp=2)).model_dump(mode="json")
# All characters, halves of surrogate pairs too.
TEXT = st.text(max_size=8) | st.text(st.characters(categories=["Cs", "Cc", "Lu"]), min_size=1, max_size=4)
LEAVES = st.one_of(
    st.none(), st.booleans(), TEXT, st.floats(), st.integers(), st.sampled_from([10**400, b"x", object(), {1: 2}, (1,)])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of a document, and a new key in each object."""
    if isinstance(value, dict):
        inner = [path for key, member in value.items() for path in places(member, (*at, key))]
        return [*([at] if at else []), *inner, (*at, "own")]
    if isinstance(value, list):
        return [at, *(path for place, member in enumerate(value[:4]) for path in places(member, (*at, place)))]
    return [at]


PLACES = places(PLAN)


@examples(15)
@given(st.sampled_from(PLACES), VALUES, st.sampled_from([0, 0, 0, MAX_DEPTH, 300, 5000]))
def test_any_value_anywhere_is_answered(place: tuple[Any, ...], value: Any, depth: int) -> None:
    document = copy.deepcopy(PLAN)
    inner: Any = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = nested(value, depth)
    report = validate(document)
    report.model_dump_json()
    if not is_sound(document) and cleaned(document)[1]:
        assert not report.valid
    uses: tuple[Callable[[Any], Any], ...] = (
        autofix, estimate, lambda document_given: compare(PLAN, document_given),
        lambda document_given: verify({"format": FORMAT, "version": "1", "read": document_given}),
    )  # fmt: skip
    for use in uses:
        try:
            use(document).model_dump_json()
        except ShardwrightError as error:
            str(error).encode()


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    wide: list[Any] = []
    wide += [wide, wide]
    for value in (ring, wide):
        report = validate({**PLAN, "reasoning": value})
        assert not report.valid


@pytest.mark.parametrize("value", ["\ud800", nested(1, 300), {"\udfff": 1}])
def test_a_plan_whose_open_places_hold_what_json_cannot_carry_is_no_valid_one(value: Any) -> None:
    document = copy.deepcopy(PLAN)
    plan = Plan.model_validate(document)
    plan.model.config["own"] = value
    report = validate(plan)
    (violation,) = [candidate for candidate in report.violations if candidate.rule == "ST001"]
    assert violation.path.startswith("/model/config/own")
    fixed = autofix(plan)
    assert any("/model/config/own" in note for note in fixed.notes)
    assert is_sound(fixed.document)
