"""Intervals of figures agree with other formulas, enumeration and simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shardwright.agent.evaluation.statistics import case_means, interval, over_epochs, pass_at_k, pass_hat_k, rate

from .results import result, run_of

SHARES = st.lists(st.tuples(st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 0.1]), st.integers(0, 5)), min_size=1, max_size=20)


def by_case(values: list[float]) -> dict[str, float]:
    return {str(place): value for place, value in enumerate(values)}


@pytest.mark.parametrize("seed", range(5))
def test_families_of_one_case_give_student_s_interval_of_a_mean(seed: int) -> None:
    # Enough values near the middle that no end is cut off at 0 or 1.
    values = np.random.default_rng(seed).uniform(0.3, 0.7, 20)
    low, high = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    estimate = interval(by_case(list(values)), {str(place): str(place) for place in range(20)})
    assert estimate == pytest.approx((values.mean(), low, high))


@pytest.mark.parametrize("seed", range(5))
def test_families_give_the_cluster_robust_interval_of_a_regression_on_a_constant(seed: int) -> None:
    draws = np.random.default_rng(seed)
    values, families = draws.uniform(0.3, 0.7, 60), draws.integers(0, 12, 60)
    # The sandwich: (X'X)^-1 (sum over families of X_g' u_g u_g' X_g) (X'X)^-1, X a column of ones.
    ones, residuals = np.ones((60, 1)), values - values.mean()
    bread = np.linalg.inv(ones.T @ ones)
    scores = [ones[families == family].T @ residuals[families == family] for family in np.unique(families)]
    meat = sum(np.outer(score, score) for score in scores)
    count = len(scores)
    error = math.sqrt(float((bread @ meat @ bread)[0, 0]) * count / (count - 1))
    reach = float(stats.t.ppf(0.975, count - 1)) * error
    family_of = {str(place): str(family) for place, family in enumerate(families)}
    assert interval(by_case(list(values)), family_of) == pytest.approx(
        (values.mean(), values.mean() - reach, values.mean() + reach)
    )


def test_the_interval_of_30_families_holds_the_truth_in_about_95_of_100_draws() -> None:
    draws, covered, alone = np.random.default_rng(11), 0, 0
    names = {str(place): str(place // 5) for place in range(150)}
    apart = {case: case for case in names}
    for _ in range(600):
        # Cases of a family share a difficulty; the truth is the mean difficulty, 0.6.
        difficulty = np.repeat(draws.beta(3, 2, 30), 5)
        values = by_case(list((draws.random(150) < difficulty).astype(float)))
        _, low, high = interval(values, names)
        covered += low <= 0.6 <= high
        _, low, high = interval(values, apart)
        alone += low <= 0.6 <= high
    # 95% of 600 draws, plus or minus three standard errors of such a count.
    assert 554 <= covered <= 586
    # Without families the interval would be too narrow.
    assert alone < covered - 15


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
@pytest.mark.parametrize("passed", [True, False])
def test_where_all_came_out_alike_the_interval_is_the_exact_binomial_one(trials: int, passed: bool) -> None:
    exact = stats.binomtest(trials if passed else 0, trials).proportion_ci(0.95, "exact")
    share = rate(run_of(("+" if passed else "-") * trials), "rules")
    assert share is not None
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))


def test_families_that_each_came_out_alike_are_no_proof_either() -> None:
    # Each family lost one of its two cases, so there is no variance between families to estimate.
    share = rate(run_of("+-+-+-", of_family=2), "rules")
    assert share is not None
    assert share.rate == 0.5
    assert share.low < 0.2 and share.high > 0.8


def test_a_share_that_no_binary_number_is_is_still_alike() -> None:
    mean, low, high = interval(by_case([0.1] * 10), {str(place): str(place) for place in range(10)})
    assert mean == pytest.approx(0.1)
    assert high > 0.3 and low == 0.0


def test_one_family_says_nothing_of_others() -> None:
    share = rate(run_of("+-++", of_family=4), "rules")
    assert share is not None
    assert (share.rate, share.low, share.high, share.n, share.families) == (0.75, 0.0, 1.0, 4, 1)


@given(SHARES, st.booleans())
def test_an_interval_holds_its_mean_within_its_bounds_whatever_the_order(
    drawn: list[tuple[float, int]], is_difference: bool
) -> None:
    least = -1.0 if is_difference else 0.0
    values = {str(place): value * 2 - 1 if is_difference else value for place, (value, _) in enumerate(drawn)}
    families = {str(place): str(family) for place, (_, family) in enumerate(drawn)}
    mean, low, high = interval(values, families, bounds=(least, 1.0))
    assert least <= low <= mean + 1e-12 and mean - 1e-12 <= high <= 1.0
    turned = dict(reversed(values.items()))
    assert interval(turned, families, bounds=(least, 1.0)) == pytest.approx((mean, low, high), abs=1e-9)


@pytest.mark.parametrize("trials", range(1, 16))
def test_differences_that_are_all_alike_leave_zero_out_where_the_sign_test_does(trials: int) -> None:
    families = {str(place): str(place) for place in range(trials)}
    _, _, high = interval(by_case([-1.0] * trials), families, bounds=(-1.0, 1.0))
    assert (high < 0) == (stats.binomtest(trials, trials, 0.5).pvalue < 0.05)


@pytest.mark.parametrize(("passed", "epochs"), [(0, 4), (1, 4), (3, 5), (4, 4), (2, 7)])
def test_pass_at_k_and_pass_hat_k_are_shares_of_the_subsets(passed: int, epochs: int) -> None:
    marks = [place < passed for place in range(epochs)]
    for k in range(1, epochs + 1):
        subsets = list(combinations(marks, k))
        assert pass_at_k(passed, epochs, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
        assert pass_hat_k(passed, epochs, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_repeats_are_means_over_cases_and_none_where_a_case_has_too_few() -> None:
    marks = {"a": (True, True), "b": (True, False)}
    results = [
        result(case, case, passed, epoch) for case, mark in marks.items() for epoch, passed in enumerate(mark, start=1)
    ]
    assert over_epochs(results, lambda scored: scored.is_solved, 1) == (0.75, 0.75)
    assert over_epochs(results, lambda scored: scored.is_solved, 2) == (1.0, 0.5)
    assert over_epochs(results, lambda scored: scored.is_solved, 3) is None
    assert over_epochs([], lambda scored: scored.is_solved, 1) is None


def test_an_epoch_counts_within_its_case_and_a_rung_where_it_applies() -> None:
    results = [result("a", "a", True), result("a", "a", False, 2), result("b", "b", True)]
    assert case_means(results, "rules") == {"a": 0.5, "b": 1.0}
    assert case_means(results, "regret") == {}
    assert rate(results, "regret") is None
    share = rate(results, "rules")
    assert share is not None and (share.rate, share.n) == (0.75, 2)
