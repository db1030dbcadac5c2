"""Predictions: the figure that was measured, each load computed once, and a roofline that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardwright.tools.fidelity.degrees import Refused
from shardwright.tools.fidelity.deployment import layout_of
from shardwright.tools.fidelity.predict import Predictor, figure_of, serve_by_roofline
from shardwright.tools.fidelity.roofline import Roofline
from shardwright.tools.fidelity.situation import Figure, Situation, situation_of
from shardwright.tools.performance.layout import Layout
from shardwright.tools.performance.serving.load import Arrivals, Lengths, ServingTimes, Statistics

from .rows import measured_rows, row_of

TIMES = ServingTimes(
    ttft=Statistics(0.5, 0.4, 0.7, 0.8, 0.9),
    tpot=Statistics(0.02, 0.02, 0.02, 0.02, 0.03),
    end_to_end=Statistics(3.0, 3.0, 3.5, 3.5, 4.0),
    output_tokens_per_s=800.0,
    makespan_s=40.0,
    running=4.0,
)


def situation(**changes: str) -> Situation:
    found = situation_of(row_of(**changes))
    assert isinstance(found, Situation), found
    return found


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("ttft_ms", 500.0), ("tpot_ms", 20.0), ("e2e_ms", 3000.0), ("makespan_ms", 40_000.0), ("output_tok_s", 800.0),
        ("output_tok_s_per_gpu", 400.0), ("total_tok_s", 7200.0), ("total_tok_s_per_gpu", 3600.0),
    ],
)  # fmt: skip
def test_each_figure_is_in_its_own_unit(figure: Figure, value: float) -> None:
    found = replace(situation(tp="2", gpus="2", isl="1024", osl="128"), figure=figure)
    assert figure_of(TIMES, found) == pytest.approx(value)


@pytest.mark.parametrize(
    ("statistic", "value"), [("mean", 500.0), ("p50", 400.0), ("median", 400.0), ("p99", 900.0), ("single run", 500.0)]
)
def test_a_latency_is_the_statistic_that_the_row_states(statistic: str, value: float) -> None:
    assert figure_of(TIMES, situation(metric="ttft_ms", statistic=statistic)) == pytest.approx(value)


def test_rows_that_share_a_load_share_the_computation() -> None:
    calls: list[Arrivals] = []

    def serve(
        layout: Layout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
    ) -> ServingTimes:
        calls.append(arrivals)
        return TIMES

    predict = Predictor(serve)
    assert predict(situation(metric="ttft_ms")) == 500.0
    assert predict(situation(metric="itl_ms", value="3")) == 20.0
    assert len(calls) == 1
    predict(situation(metric="ttft_ms", concurrency_or_batch="5"))
    assert len(calls) == 2


def test_a_figure_that_is_none_is_refused() -> None:
    predict = Predictor(lambda layout, arrivals, lengths, **_: replace(TIMES, tpot=Statistics.constant(0.0)))
    found = predict(situation())
    assert isinstance(found, Refused) and "tpot_ms" in found.reason


def test_weights_that_do_not_fit_are_a_reason() -> None:
    found = Predictor(serve_by_roofline)(situation(model="meta-llama/Llama-3.1-405B"))
    assert isinstance(found, Refused) and "GB of a GPU" in found.reason


def test_a_decode_step_of_one_request_streams_the_weights_once() -> None:
    found = situation(notes="static batch", concurrency_or_batch="1", isl="1", osl="2")
    layout = layout_of(found)
    # Llama-3.1-8B without its embedding table, in 16 bits, at 3350 GB/s; the cache of one token beside it is nothing.
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    assert Roofline(layout).step_seconds(1) == pytest.approx(weights / 3350e9, rel=1e-3)


def test_a_long_prompt_takes_its_flops_at_the_peak() -> None:
    layout = layout_of(situation(isl="8192"))
    matmuls = 2 * 8192 * (8_030_261_248 - 2 * 128_256 * 4096)
    attention = 32 * 4 * 32 * 128 * 8192 * 8193 / 2
    head = 2 * 128_256 * 4096
    assert Roofline(layout).prefill_seconds(1) == pytest.approx((matmuls + attention + head) / 989e12, rel=1e-3)


def test_two_gpus_stream_half_the_weights_each_and_add_their_reductions() -> None:
    one, two = (Roofline(layout_of(situation(tp=tp, gpus=tp, isl="1", osl="2"))) for tp in ("1", "2"))
    reductions = 2 * 32 * 2 * (1 / 2) * 4096 * 2 / 450e9
    assert two.step_seconds(1) == pytest.approx(one.step_seconds(1) / 2 + reductions, rel=1e-2)


def test_a_pipeline_brings_a_single_request_nothing() -> None:
    one, two = (Roofline(layout_of(situation(pp=pp, gpus=pp))) for pp in ("1", "2"))
    assert two.step_seconds(1) == pytest.approx(one.step_seconds(1), rel=0.1)
    assert two.prefill_seconds(1) == pytest.approx(one.prefill_seconds(1), rel=1e-6)


def test_every_row_of_the_own_table_has_a_roofline() -> None:
    predict = Predictor(serve_by_roofline)
    for row in measured_rows():
        found = situation_of(row)
        assert isinstance(found, Situation)
        value = predict(found)
        assert not isinstance(value, Refused), (row.id, value)
        # A yardstick with no overhead is faster than what was measured, but for loads that it does not queue.
        slower = value / row.value if row.metric.endswith("_ms") else row.value / value
        assert 0.0 < slower < 1.3, (row.id, slower)


@given(st.integers(1, 512), st.integers(1, 512), st.sampled_from(["1", "2", "4", "8"]))
@settings(max_examples=25, deadline=None)
def test_more_requests_never_make_the_rooflines_step_faster(few: int, more: int, tp: str) -> None:
    low, high = sorted((few, more))
    roofline = Roofline(layout_of(situation(model="openai/gpt-oss-120b", weights_dtype="mxfp4", tp=tp, gpus=tp)))
    assert roofline.step_seconds(low) <= roofline.step_seconds(high) * (1 + 1e-9)
