"""A solver that returns the golden has full marks; without a golden the built-in proposer stands in."""

from __future__ import annotations

import pytest

from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.agent.evaluation.solvers.golden import Golden

from .worlds import dataset, scored


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [case.id for case in dataset().cases])
def test_the_golden_has_every_mark_there_is(name: str) -> None:
    result = scored(Golden(), name)
    marks = {**result.stages.get("final", {}), **result.marks}
    assert result.fault is None
    assert marks
    assert {rung: mark.why for rung, mark in marks.items() if not mark.passed} == {}


@pytest.mark.parametrize("name", ["broken", "broken-text"])
def test_a_broken_proposal_is_judged_as_it_was_and_the_golden_stands_in_its_place(name: str) -> None:
    result = scored(Golden(), name)
    assert not result.stages["at_once"]["rules"].passed
    assert not result.stages["after_fix"]["rules"].passed
    assert result.stages["after_1"]["rules"].passed
    assert result.plan_from == "model"


def test_without_a_golden_the_built_in_proposer_answers() -> None:
    golden, builtin = scored(Golden(), "no-golden"), scored(BuiltIn(), "no-golden")
    assert golden == builtin


def test_the_built_in_proposer_corrects_a_broken_proposal_by_its_repair() -> None:
    result = scored(BuiltIn(), "broken")
    assert result.passed("rules", "at_once") is False
    assert result.passed("rules") is True
    assert result.plan_from == "model_repaired"
