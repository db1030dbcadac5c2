"""Equal elements are read once, and a document counts as a plan exactly if the models accept it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shardwright.tools.input.strict_values import cleaned
from shardwright.tools.plan.document import PhaseStrategy, Plan
from shardwright.tools.plan.reader import read_document
from shardwright.tools.plan.view import PlanView

from ..examples import examples
from .tiny import MOE, tiny_plan

PLAN = tiny_plan(MOE, PhaseStrategy(tp=2, ep=2), dp=2).model_dump(mode="json")
# Values that resemble valid ones: equal in Python, of another type, or of another form.
_LOOKALIKES: tuple[Any, ...] = (
    None, True, False, 0, 1, 1.0, -1, "0", "", "n0.g0", "n0.g0\n", "n00.g0", "data", "kv_cache", b"n0.g0",
    [], ["n0.g0"], ["n0.g0", "n0.g1"], ["n0.g0", 1], ["N0.g0"], [[]], ("n0.g0",), {}, {"tp": 0}, {"tp": True},
    {"tp": 0.0}, {"tp": 0, "x": 1}, {1: 0}, [0, 7], [0, 7.0], [True, 7], (0, 7), [7], 10**30, float("nan"), object(),
)  # fmt: skip


def _with_integers(value: Any) -> Any:
    """A value with 7 for 7.0: JSON Schema takes both for integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _with_integers(member) for key, member in value.items()}
    return [_with_integers(item) for item in value] if isinstance(value, list) else value


def _is_plan(document: dict[str, Any]) -> bool:
    try:
        Plan.model_validate(document | {part: _with_integers(document[part]) for part in ("nodes", "edges")})
    except ValidationError:
        return False
    # The models accept bytes as text; JSON has none.
    return not cleaned(document)[1]


def test_nodes_that_say_the_same_share_what_was_read_of_them() -> None:
    view = PlanView(PLAN)
    assert len({id(node.content) for node in view.nodes}) < len(view.nodes) / 2
    for node in view.nodes:
        assert node.type == node.raw["type"]
        assert list(node.devices) == node.raw.get("devices", [])
        assert node.index == node.raw.get("index") and node.role == node.raw.get("role")
        assert dict(node.rank) == {key: place for key, place in node.raw.get("rank", {}).items() if place is not None}
    for edge in view.edges:
        assert (edge.type, edge.carries) == (edge.raw["type"], edge.raw.get("carries"))


@pytest.mark.parametrize("field", ["rank", "layers", "index", "experts"])
def test_what_is_equal_but_of_another_type_is_not_the_same(field: str) -> None:
    """`True` equals 1 in Python; in a plan it does not."""
    document = json.loads(json.dumps(PLAN))
    node = next(node for node in document["nodes"] if node.get(field))
    for wrong in (True, 1.5):
        twin = copy.deepcopy(node) | {"id": "twin", field: {"tp": wrong} if field == "rank" else wrong}
        with_twin = {**document, "nodes": [*document["nodes"], twin]}
        assert read_document(with_twin).faults
        view = PlanView(with_twin)
        assert view.by_id["twin"].content is not view.by_id[node["id"]].content


@examples(200)
@given(st.data())
def test_a_document_is_a_plan_exactly_where_the_models_say_so(data: st.DataObject) -> None:
    document = copy.deepcopy(PLAN)
    for _ in range(data.draw(st.integers(1, 2))):
        part = data.draw(st.sampled_from(["nodes", "edges"]))
        element = data.draw(st.sampled_from(document[part]))
        fields = sorted({*element, "devices", "rank", "carries", "bytes", "x"})
        field = data.draw(st.sampled_from(fields))
        if data.draw(st.integers(0, 4)) == 0:
            element.pop(field, None)
        else:
            element[field] = data.draw(st.sampled_from(_LOOKALIKES))
    assert bool(read_document(document).faults) is not _is_plan(document)
    assert (read_document(document).plan is not None) is _is_plan(document)


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, {"id": 1}, {"id": None}])
@pytest.mark.parametrize("part", ["nodes", "edges"])
def test_an_element_that_is_none_is_a_fault(part: str, junk: Any) -> None:
    assert read_document({**PLAN, part: [*PLAN[part], junk]}).faults


@pytest.mark.parametrize("part", ["nodes", "edges"])
@pytest.mark.parametrize("wrong", [None, {}, "x", 1])
def test_a_graph_that_is_no_list_is_a_fault(part: str, wrong: Any) -> None:
    assert read_document({**PLAN, part: wrong}).faults
    assert read_document({key: value for key, value in PLAN.items() if key != part}).faults
