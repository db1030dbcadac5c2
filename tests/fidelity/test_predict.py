"""Predictions: the figure that was measured, each load computed once, and a yardstick that can be checked by hand."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from shardwright.tools.fidelity.predict import Predictor, figure_of
from shardwright.tools.fidelity.run import serve_at_datasheet_rates
from shardwright.tools.fidelity.situation import Figure, Refused, Situation, situation_of
from shardwright.tools.performance.clock import LAUNCH_S
from shardwright.tools.performance.layout import LoadedLayout
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
    modelled = situation_of(row_of(**changes))
    assert isinstance(modelled, Situation), modelled
    return modelled


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("ttft_ms", 500.0), ("tpot_ms", 20.0), ("e2e_ms", 3000.0), ("makespan_ms", 40_000.0), ("output_tok_s", 800.0),
        ("output_tok_s_per_gpu", 400.0), ("total_tok_s", 7200.0), ("total_tok_s_per_gpu", 3600.0),
    ],
)  # fmt: skip
def test_each_figure_is_in_its_own_unit(figure: Figure, value: float) -> None:
    modelled = replace(situation(tp="2", gpus="2", isl="1024", osl="128"), figure=figure)
    assert figure_of(TIMES, modelled) == pytest.approx(value)


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        ("mean", 500.0),
        ("p50", 400.0),
        ("median", 400.0),
        ("p90", 700.0),
        ("p95", 800.0),
        ("p99", 900.0),
        ("single run", 500.0),
    ],
)
def test_a_latency_is_the_statistic_that_the_row_states(statistic: str, value: float) -> None:
    assert figure_of(TIMES, situation(metric="ttft_ms", statistic=statistic)) == pytest.approx(value)


def test_rows_that_share_a_load_share_the_computation() -> None:
    calls: list[Arrivals] = []

    def serve(
        layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
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
    refused = predict(situation())
    assert isinstance(refused, Refused) and "tpot_ms" in refused.reason


def test_weights_that_do_not_fit_are_a_reason() -> None:
    refused = Predictor(serve_at_datasheet_rates)(situation(model="meta-llama/Llama-3.1-405B"))
    assert isinstance(refused, Refused) and "GB of a GPU" in refused.reason


# Seconds of launches, for more kernels than a layer of a dense model has.
LAUNCHES_S = 32 * 16 * LAUNCH_S


def at_datasheet_rates(**changes: str) -> ServingTimes:
    modelled = situation(notes="static batch", concurrency_or_batch="1", **changes)
    times = Predictor(serve_at_datasheet_rates).times(modelled)
    assert isinstance(times, ServingTimes), times
    return times


def test_a_decode_step_of_one_request_streams_the_weights_once() -> None:
    # Llama-3.1-8B without its embedding table, in 16 bits, at 3350 GB/s; the cache of one token beside it is nothing.
    weights_s = 2 * (8_030_261_248 - 128_256 * 4096) / 3350e9
    assert weights_s <= at_datasheet_rates(isl="1", osl="2").tpot.mean <= weights_s + LAUNCHES_S


def test_a_long_prompt_takes_its_flops_at_the_peak() -> None:
    matmuls = 2 * 8192 * (8_030_261_248 - 2 * 128_256 * 4096)
    attention = 32 * 4 * 32 * 128 * 8192 * 8193 / 2
    peak_s = (matmuls + attention) / 989e12
    # Element-wise operators move their bytes beside it, and chunks read the weights again.
    assert peak_s <= at_datasheet_rates(isl="8192").ttft.mean <= 1.25 * peak_s


def test_two_gpus_stream_half_the_weights_each_and_reduce() -> None:
    tp1_s, tp2_s = (at_datasheet_rates(tp=tp, gpus=tp, isl="1", osl="2").tpot.mean for tp in ("1", "2"))
    assert tp1_s / 2 - LAUNCHES_S <= tp2_s < tp1_s


@pytest.mark.thorough
def test_every_row_of_the_own_table_has_a_yardstick() -> None:
    predict = Predictor(serve_at_datasheet_rates)
    for row in measured_rows():
        modelled = situation_of(row)
        assert isinstance(modelled, Situation)
        value = predict(modelled)
        assert not isinstance(value, Refused), (row.id, value)
        slower = value / row.value if row.metric.endswith("_ms") else row.value / value
        # Without overhead it is faster than what was measured; a first token waits for its turn, whatever the rates.
        assert 0.0 < slower < (math.inf if modelled.figure == "ttft_ms" else 1.05), (row.id, slower)
