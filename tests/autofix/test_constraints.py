"""What an author demands of a plan is kept through a repair, or the answer says why it could not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.catalog.models import find_model
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

_CASES = json.loads((Path(__file__).parents[1] / "cases" / "constraints_in_other_forms.json").read_text())
_AT_MOST_2 = {"kind": "degree", "value": {"name": "tp", "relation": "<=", "degree": 2}, "words": "TP at most 2"}


def _demanding(constraints: object, base: str = "dense-tp2") -> dict[str, Any]:
    document = base_plan(base)
    return {**document, "policy": {**document["policy"], "constraints": constraints}}


@pytest.mark.one_in(1)
@pytest.mark.parametrize("case", _CASES["read"], ids=lambda case: json.dumps(case["stated"]))
def test_a_constraint_in_another_form_is_written_as_the_one_that_it_can_only_mean(case: dict[str, Any]) -> None:
    result = autofix(_demanding(case["stated"]))
    assert (result.document or {})["policy"]["constraints"] == [case["meant"]]
    assert result.valid


@pytest.mark.one_in(1)
@pytest.mark.parametrize("constraint", _CASES["unread"], ids=json.dumps)
def test_a_constraint_that_cannot_be_read_stays_and_the_plan_is_not_called_valid(constraint: object) -> None:
    result = autofix(_demanding([_AT_MOST_2, constraint]))
    assert not result.valid
    assert (result.document or {})["policy"]["constraints"] == [_AT_MOST_2, constraint]
    assert any("policy.constraints.1" in reason for reason in result.unfixed)


def test_what_is_no_list_of_constraints_is_no_reason_to_drop_them() -> None:
    for stated in ("as few as can be", 7, [_AT_MOST_2] * 65):
        result = autofix(_demanding(stated))
        assert not result.valid and (result.document or {})["policy"]["constraints"] == stated
        assert any("policy.constraints" in reason for reason in result.unfixed)


def test_a_constraint_is_judged_although_another_cannot_be_read() -> None:
    broken = validate(_demanding(["as few as can be", _AT_MOST_2], "dense-tp4"))
    assert [(found.rule, found.path) for found in broken.violations if found.rule != "ST001"] == [
        ("CO008", "/policy/constraints/1")
    ]


def test_a_constraint_in_another_form_is_met_by_the_plan() -> None:
    result = autofix(_demanding([{"kind": "degree", "name": "TP", "relation": "<=", "degree": "2"}], "dense-tp4"))
    assert result.valid and result.plan is not None and result.plan.strategy.prefill.tp <= 2
    assert result.plan.policy.constraints is not None


def test_constraints_beside_the_policy_are_those_of_the_policy() -> None:
    plan = base_plan("dense-tp2")
    for policy in (plan["policy"], {}):
        result = autofix({**plan, "policy": policy, "constraints": ["TP at most 2"]})
        assert result.valid and (result.document or {})["policy"]["constraints"] == [_AT_MOST_2]
    assert not autofix({**plan, "constraints": ["as few as can be"]}).valid


def test_a_plan_that_was_found_before_the_walk_reached_its_bound_is_not_called_impossible() -> None:
    entry = find_model("meta-llama/Llama-3.1-70B")
    document = _demanding([{"kind": "across_nodes", "value": "pp", "words": "PP across nodes"}], "disaggregated-tp2")
    document |= {"model": {"name": entry.name, "config": entry.config}, "nodes": [], "edges": []}
    document["hardware"] = {"accelerator": "h200-sxm", "nodes": 2, "gpus_per_node": 8}
    prefill, decode = {"pp": 1, "tp": 2, "tp_ffn": 4, "replicas": 1}, {"pp": 3, "tp": 2, "tp_ffn": 1, "replicas": 2}
    document["strategy"] = {"dp": 3, "gpu_count": 16, "prefill": prefill, "decode": decode}
    result = autofix(document)
    assert result.valid and result.replanned is not None
