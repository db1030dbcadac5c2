"""Each damaged golden loses exactly the rungs that it should, and a ladder that errs is reported."""

from __future__ import annotations

from functools import cache

import pytest

from shardwright.agent.evaluation.case import Broken, Case, Golden
from shardwright.agent.evaluation.coverage import coverage_of
from shardwright.agent.evaluation.mutants import MUTATORS
from shardwright.agent.evaluation.mutation import (
    Mutant,
    goldens_to_damage,
    mutants_of,
    mutation_score,
    scored_mutants,
)
from shardwright.agent.evaluation.report.summary import summed_up
from shardwright.agent.evaluation.report.text import render_summary
from shardwright.agent.evaluation.results import CaseResult
from shardwright.agent.evaluation.rungs.ladder import PLAN_RUNGS
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.registry import all_rules

from .report.samples import HEADER, kept_cases

pytestmark = pytest.mark.thorough

BASES = ("dense-dp2-pp2", "dense-tp2", "moe-ep2")


def about(base: str, family: str = "") -> Case:
    return Case(id=base, family=family or base, goldens=(Golden(base=base),))


@cache
def mutants(base: str) -> tuple[Mutant, ...]:
    return tuple(mutants_of(about(base)))


@pytest.mark.parametrize("base", BASES)
def test_every_mutant_loses_exactly_the_rungs_that_it_should(base: str) -> None:
    assert {mutant.mutator: (mutant.lost, mutant.expected) for mutant in mutants(base) if not mutant.is_exact} == {}
    assert sum(bool(mutant.expected) for mutant in mutants(base)) >= 15
    assert sum(not mutant.expected for mutant in mutants(base)) == 3


def test_every_way_to_damage_a_plan_is_tried_and_every_rung_is_lost_by_some() -> None:
    tried = [mutant for base in BASES for mutant in mutants(base)]
    assert {mutant.mutator for mutant in tried} == {mutator.name for mutator in MUTATORS}
    # `parses` fails only for texts that are no proposals, and a damaged document is always one.
    assert {rung for mutant in tried for rung in mutant.lost} == {rung.name for rung in PLAN_RUNGS} - {"parses"}


def test_a_mutant_is_the_same_each_time() -> None:
    assert tuple(mutants_of(about("moe-ep2"))) == mutants("moe-ep2")


def test_a_ladder_that_errs_is_told_by_name() -> None:
    rungs = ("rules", "equivalent", "regret")
    judged = [
        Mutant(case="a", mutator="caught", lost=rungs, expected=rungs),
        Mutant(case="a", mutator="not noticed", lost=(), expected=rungs),
        Mutant(case="a", mutator="noticed too low", lost=("equivalent",), expected=rungs),
        Mutant(case="b", mutator="noticed too much", lost=("schema", *rungs), expected=rungs),
        Mutant(case="b", mutator="harmless", lost=(), expected=()),
        Mutant(case="b", mutator="harmless and lost", lost=("equivalent",), expected=()),
    ]
    score = scored_mutants(judged, 2)
    assert (score.goldens, score.mutants, score.harmful, score.killed, score.exact) == (2, 6, 4, 2, 2)
    assert [survivor.mutator for survivor in score.survivors] == ["not noticed", "noticed too low"]
    assert [mutant.mutator for mutant in score.inexact] == [
        "not noticed", "noticed too low", "noticed too much", "harmless and lost"
    ]  # fmt: skip
    text = render_summary(summed_up(HEADER, kept_cases(), mutation=score), kept_cases(), width=140)
    assert "mutation score 50%: 2 of 4 harmful mutants of 2 goldens broke a rule; 2 of 6 mutants" in text
    assert text.count("a, not noticed: lost nothing, should rules, equivalent, regret") == 1
    assert "b, harmless and lost: lost equivalent, should nothing" in text


def test_a_score_of_harmless_mutants_alone_can_be_told() -> None:
    score = scored_mutants([Mutant(case="a", mutator="harmless", lost=(), expected=())], 1)
    assert (score.harmful, score.exact) == (0, 1)
    render_summary(summed_up(HEADER, kept_cases(), mutation=score), kept_cases(), width=100)


def test_one_golden_of_a_family_is_damaged_and_of_both_kinds_in_turn() -> None:
    broken = Broken(base="moe-ep2", edits=(Edit("set_top", field="strategy/gpu_count", value=9),))
    mended = Case(id="mended", family="m", proposal=broken, goldens=(Golden(base="moe-ep2"),))
    none = Case(id="none", family="n", request="x", expect="refused")
    picked = goldens_to_damage([about("dense-1", "a"), about("dense-tp2", "a"), mended, none])
    assert [case.id for case in picked] == ["mended", "dense-1"]


def test_the_score_is_the_same_on_one_and_two_processes() -> None:
    cases = [about("dense-1", "a"), about("dense-1", "b")]
    two = mutation_score(cases, 2)
    assert two is not None and two == mutation_score(cases, 1)
    assert two.goldens == 2 and two.killed == two.harmful > 0
    assert mutation_score([], 1) is None


def test_a_case_that_cannot_be_asked_has_no_mutants_and_ends_nothing() -> None:
    gone = Case(id="gone", family="gone", goldens=(Golden(base="no-such-plan"),))
    wrong = Case(id="wrong", family="wrong", request="Llama-3.1-8B on 2 H100", goldens=(Golden(strategy="TP7"),))
    assert mutants_of(gone) == mutants_of(wrong) == []
    assert mutation_score([gone], 1) is None


def result(case: Case, *rules: str) -> CaseResult:
    return CaseResult(id=case.id, family=case.family, answer="plan", rules_broken=rules)


def broken_case(own_id: str, *rules: str) -> Case:
    edits = (Edit("set_top", field="strategy/gpu_count", value=9),)
    return Case(id=own_id, family="f", proposal=Broken(base="dense-1", edits=edits), rules=rules)


def test_a_rule_is_exercised_where_it_is_expected_and_found() -> None:
    cases = [broken_case("a", "GP001"), broken_case("b", "GP001", "PP001"), broken_case("c", "TP001")]
    coverage = coverage_of(cases, [result(cases[0], "GP001", "ME001"), result(cases[1]), result(cases[2], "EP001")])
    assert coverage is not None
    assert (coverage.exercised, coverage.not_found) == (("GP001",), ("PP001", "TP001"))
    assert {*coverage.exercised, *coverage.missing} == {rule.id for rule in all_rules()}
    assert coverage.rules == len(coverage.missing) + 1


def test_a_rule_that_leaves_no_plan_is_not_one_that_was_overlooked() -> None:
    none = Case(id="none", family="f", request="x", expect="infeasible", rules=("ME001",))
    coverage = coverage_of([broken_case("a", "GP001"), none], [result(broken_case("a"), "GP001")])
    assert coverage is not None and coverage.not_found == ()
    assert coverage_of([none], []) is None
