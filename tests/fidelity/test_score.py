"""Scores: groups count equally, order and scaling compare like with like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.fidelity.score import errors, family_of, kendall_tau, quantile, score
from shardwright.tools.fidelity.table import MeasuredRow

from .rows import row_of


def test_a_group_of_many_rows_counts_as_one() -> None:
    many = [row_of(id=f"A-{n}", value="10") for n in range(1, 100)]
    rows = [*many, row_of(id="B-1", value="10")]
    (tpot,) = score(rows, [11.0] * 99 + [15.0]).families
    assert (tpot.groups, tpot.rows) == (2, 100)
    assert tpot.model.median_pct == pytest.approx(30.0)
    assert tpot.model.p90_pct == pytest.approx(46.0)
    assert tpot.model.bias_pct == pytest.approx(30.0)


def test_a_groups_error_is_the_median_of_absolute_errors_and_its_bias_keeps_the_sign() -> None:
    rows = [row_of(id=f"A-{n}", value="100") for n in range(3)]
    scores = score(rows, [80.0, 90.0, 130.0])
    assert scores.groups[0].error_pct == pytest.approx(20.0)
    assert scores.groups[0].bias_pct == pytest.approx(-10.0)


def test_rows_without_a_prediction_are_left_out_and_the_yardstick_stands_beside() -> None:
    rows = [row_of(id="A-1", value="10"), row_of(id="A-2", value="10")]
    (tpot,) = score(rows, [12.0, None], [5.0, 5.0]).families
    assert tpot.rows == 1 and tpot.roofline is not None
    assert tpot.roofline.median_pct == pytest.approx(50.0) and tpot.roofline.bias_pct == pytest.approx(-50.0)


@pytest.mark.parametrize(
    ("metric", "load", "family"),
    [
        ("ttft_ms", "8", "ttft-low"), ("ttft_ms", "9", "ttft-load"), ("ttft_ms", "qps=2", "ttft-load"),
        ("ttft_ms", "inf(5)", "ttft-load"), ("itl_ms", "64", "tpot"), ("tpot_ms", "1", "tpot"),
        ("e2e_latency_ms", "1", "e2e"), ("total_tok_s", "max", "throughput"),
        ("output_tok_s_per_gpu", "max", "throughput"), ("joules", "1", None),
    ],
)  # fmt: skip
def test_metrics_fall_into_families(metric: str, load: str, family: str | None) -> None:
    assert family_of(row_of(metric=metric, concurrency_or_batch=load)) == family


def test_tiers_sources_and_metrics_are_scored_apart() -> None:
    rows = [row_of(id="A-1", notes="tier=A"), row_of(id="B-1", notes="tier=B", metric="itl_ms"), row_of(notes="")]
    scores = score(rows, [8.0, 8.0, 8.0])
    assert [part.of for part in scores.tiers] == ["no tier", "tier A", "tier B"]
    assert [part.of for part in scores.sources] == ["A", "B", "OWN"]
    assert [(part.of, part.rows) for part in scores.metrics] == [("itl_ms", 1), ("tpot_ms", 2)]


def test_no_rows_score_nothing() -> None:
    scores = score([], [])
    assert scores.families == () and scores.order == () and scores.scaling == ()


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [([3.0], 0.9, 3.0), ([1.0, 2.0], 0.5, 1.5), ([4.0, 1.0, 3.0, 2.0], 0.9, 3.7), (list(range(11)), 0.9, 9.0)],
)
def test_quantiles_are_linear_between_the_nearest(values: list[float], share: float, found: float) -> None:
    assert quantile(values, share) == pytest.approx(found)


@given(st.lists(st.lists(st.floats(-90, 900), min_size=1, max_size=5), min_size=1, max_size=9))
def test_the_median_over_groups_is_never_above_the_p90(groups: list[list[float]]) -> None:
    scores = errors(groups)
    assert scores.median_pct <= scores.p90_pct + 1e-9
    assert abs(scores.bias_pct) <= max(abs(error) for group in groups for error in group) + 1e-9


def scaled(tp: int, value: float, **changes: str) -> MeasuredRow:
    return row_of(id=f"A-{tp}", tp=str(tp), gpus=str(tp), value=str(value), **changes)


def test_order_and_scaling_are_taken_from_rows_of_one_load() -> None:
    rows = [scaled(1, 40.0), scaled(2, 20.0), scaled(4, 16.0), scaled(8, 30.0, concurrency_or_batch="5")]
    scores = score(rows, [30.0, 18.0, 12.0, 1.0])
    overall = scores.order[0]
    assert (overall.of, overall.sets, overall.tau) == ("all", 1, 1.0)
    steps = {(step.from_tp, step.to_tp): step for step in scores.scaling}
    assert steps.keys() == {(1, 2), (2, 4)}
    assert steps[1, 2].measured_speedup == pytest.approx(2.0)
    assert steps[1, 2].predicted_speedup == pytest.approx(30 / 18)
    assert steps[2, 4].error_pct == pytest.approx(100 * (1.5 / 1.25 - 1))


def test_a_speedup_of_throughput_is_the_other_way_round() -> None:
    cells = {"metric": "output_tok_s_total"}
    (step,) = score([scaled(1, 100.0, **cells), scaled(2, 150.0, **cells)], [90.0, 180.0]).scaling
    assert (step.measured_speedup, step.predicted_speedup) == (pytest.approx(1.5), pytest.approx(2.0))


def test_tau_counts_pairs_that_the_measurement_orders() -> None:
    assert kendall_tau([(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]) == pytest.approx(1 / 3)
    assert kendall_tau([(1.0, 2.0), (2.0, 1.0)]) == -1.0
    assert kendall_tau([(1.0, 2.0), (1.01, 1.0)]) is None
    assert kendall_tau([(1.0, 1.0), (2.0, 1.0)]) == 0.0


@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), max_size=8))
def test_tau_is_a_share_and_turns_with_the_order(pairs: list[tuple[float, float]]) -> None:
    tau = kendall_tau(pairs)
    turned = kendall_tau([(measured, -predicted) for measured, predicted in pairs])
    assert tau is None or (-1.0 <= tau <= 1.0 and turned == pytest.approx(-tau))
