"""A document of our format is read as what it is, in whatever it comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.examples import base_plan

_Document = dict[str, Any]
_AT_MOST_2 = {"kind": "degree", "value": {"name": "tp", "relation": "<=", "degree": 2}, "words": "TP at most 2"}


def _plan() -> _Document:
    """A valid plan with parts that proposals in other forms do not have."""
    plan = base_plan("mla-tp2-ep2-pp2")
    plan["policy"]["constraints"] = [_AT_MOST_2]
    plan["workload"] |= {"ttft_statistic": "p99", "prefix_cache_hit_rate": 0.3, "min_tokens_per_second": 1.0}
    return {**plan, "serving": {"max_batch": 64}}


def _keyed(nodes: list[_Document]) -> _Document:
    return {node["id"]: {name: value for name, value in node.items() if name != "id"} for node in nodes}


def _arrows(plan: _Document) -> list[str]:
    return [f"{edge['source']} -> {edge['target']}" for edge in plan["edges"]]


_SAME: dict[str, Callable[[_Document], _Document]] = {
    "called the plan": lambda plan: {"plan": plan, "valid": True, "report": {"rounds": 1}},
    "deep inside": lambda plan: {"result": {"answer": plan}},
    "as a text": lambda plan: {"plan": json.dumps(plan)},
    "beside what it has itself": lambda plan: {"plan": plan, "model": plan["model"]},
    "nodes by id": lambda plan: {**plan, "nodes": _keyed(plan["nodes"])},
    "edges by name": lambda plan: {**plan, "edges": {f"e{place}": edge for place, edge in enumerate(plan["edges"])}},
    "edges as a text": lambda plan: {**plan, "edges": json.dumps(plan["edges"])},
    "what a repair printed": lambda plan: json.loads(autofix(plan).model_dump_json()),
}
_IN_ANOTHER_GRAPH: dict[str, Callable[[_Document], _Document]] = {
    "edges as arrows": lambda plan: {**plan, "edges": _arrows(plan)},
    "edges as one line": lambda plan: {**plan, "edges": "; ".join(_arrows(plan))},
}


@pytest.mark.one_in(1)
@pytest.mark.parametrize("form", _SAME)
def test_a_plan_inside_something_else_is_that_plan(form: str) -> None:
    for source in (_SAME[form](_plan()), json.dumps(_SAME[form](_plan()))):
        result = autofix(source)
        assert result.valid and not result.fixes and result.document == _plan()


@pytest.mark.one_in(1)
@pytest.mark.parametrize("form", _IN_ANOTHER_GRAPH)
def test_the_header_of_our_format_counts_whatever_the_graph_is(form: str) -> None:
    result, plan = autofix(_IN_ANOTHER_GRAPH[form](_plan())), _plan()
    assert result.valid and result.document is not None
    assert {name: result.document.get(name) for name in plan if name not in ("nodes", "edges")} == {
        name: value for name, value in plan.items() if name not in ("nodes", "edges")
    }


def test_what_lacks_a_block_that_stands_beside_it_is_no_whole_plan() -> None:
    plan = _plan()
    result = autofix({"plan": {name: block for name, block in plan.items() if name != "model"}, "model": plan["model"]})
    assert result.document is not None and result.document["model"]["config"] == plan["model"]["config"]
