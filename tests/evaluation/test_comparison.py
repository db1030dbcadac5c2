"""Comparing two runs: every case that a deterministic solver lost counts; a loss by chance is no regression."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.evaluation.comparison import Comparison, RungChange, compare_runs
from shardwright.agent.evaluation.results import CaseResult

from .results import result, run_of


def final(comparison: Comparison) -> RungChange:
    """The change of the rules rung in the final stage."""
    return next(change for change in comparison.changes if (change.rung, change.stage) == ("rules", "final"))


def test_one_case_that_a_deterministic_solver_lost_is_a_regression() -> None:
    comparison = compare_runs(run_of("+" * 40), run_of("+" * 39 + "-"), is_exact=True)
    assert final(comparison).is_regression
    assert final(comparison).lost == comparison.lost == ("case-039",)
    assert {regression.rung for regression in comparison.regressions} == {"rules"}


def test_what_is_gained_is_no_regression_and_what_is_lost_is_not_made_good_by_it() -> None:
    better = compare_runs(run_of("--++"), run_of("++++"), is_exact=True)
    assert not better.regressions
    assert final(better).gained == ("case-000", "case-001")
    mixed = compare_runs(run_of("-+++"), run_of("+-++"), is_exact=True)
    assert mixed.regressions and mixed.lost == ("case-001",)
    assert final(mixed).low < 0 < final(mixed).high


def test_the_same_again_is_no_change() -> None:
    for is_exact in (True, False):
        comparison = compare_runs(run_of("+-+"), run_of("+-+"), is_exact=is_exact)
        assert not comparison.regressions and not comparison.not_compared
        assert all((row.low, row.high, row.lost, row.gained) == (0.0, 0.0, (), ()) for row in comparison.changes)


def test_a_drop_that_chance_explains_is_no_regression_and_a_large_one_is() -> None:
    before = run_of("+" * 60)
    assert not compare_runs(before, run_of("-" * 3 + "+" * 57)).regressions
    comparison = compare_runs(before, run_of("-" * 30 + "+" * 30))
    assert final(comparison).is_regression and final(comparison).high < 0
    assert len(comparison.lost) == 30


def test_cases_of_one_family_are_one_witness() -> None:
    # The same thirty lost cases, all in one family.
    before, after = run_of("+" * 60, of_family=30), run_of("-" * 30 + "+" * 30, of_family=30)
    assert not compare_runs(before, after).regressions


def test_few_cases_are_no_proof_even_where_all_are_lost() -> None:
    for count in (1, 2, 5):
        assert not compare_runs(run_of("+" * count), run_of("-" * count)).regressions
    assert compare_runs(run_of("+" * 12), run_of("-" * 12)).regressions


def test_runs_that_differ_by_chance_alone_are_seldom_called_worse() -> None:
    draws, called = np.random.default_rng(3), 0
    for _ in range(80):
        runs = ["".join(np.where(draws.random(40) < 0.7, "+", "-")) for _ in range(2)]
        called += bool(compare_runs(run_of(runs[0], 2), run_of(runs[1], 2)).regressions)
    # Each end is exceeded by chance in at most 2.5 of 100 runs; here only one end counts, with a stricter bound.
    assert called <= 3


def test_an_answer_that_was_there_and_is_not_any_more_is_lost() -> None:
    nothing = CaseResult(id="case-000", family="family-000", case="case-000", answer="failed")
    comparison = compare_runs(run_of("++"), (nothing, *run_of("++")[1:]), is_exact=True)
    assert comparison.lost == ("case-000",)


def test_changed_and_single_cases_are_named_and_not_compared() -> None:
    old = (result("same", "f", True), result("changed", "f", True, digest="before"), result("gone", "f", True))
    new = (result("same", "f", True), result("changed", "f", False, digest="after"), result("new", "f", False))
    comparison = compare_runs(old, new, is_exact=True)
    assert comparison.not_compared == ("changed", "gone", "new")
    assert not comparison.regressions and final(comparison).n == 1


def test_epochs_are_compared_by_their_share() -> None:
    old = (result("a", "a", True, 1), result("a", "a", True, 2))
    comparison = compare_runs(old, (result("a", "a", True, 1), result("a", "a", False, 2)), is_exact=True)
    assert (final(comparison).before, final(comparison).after, final(comparison).lost) == (1.0, 0.5, ("a",))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=15), st.randoms())
def test_no_order_counts(drawn: list[tuple[bool, bool, int]], order: random.Random) -> None:
    old = [result(f"c{place}", f"f{family}", before) for place, (before, _, family) in enumerate(drawn)]
    new = [result(f"c{place}", f"f{family}", after) for place, (_, after, family) in enumerate(drawn)]
    comparison = compare_runs(old, new)
    order.shuffle(old)
    order.shuffle(new)
    assert compare_runs(old, new) == comparison
