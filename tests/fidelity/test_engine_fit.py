"""The fit of engine constants: what it may move, and what it leaves as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shardwright.benchmarks.fits.engine_levels import expected
from shardwright.tools.calibration.engine_profile import all_entries, neutral
from shardwright.tools.fidelity.deployment import layout_of
from shardwright.tools.fidelity.engine_cases import About, case_of
from shardwright.tools.fidelity.engine_fit import (
    FAILED_FACTOR,
    PRIORS,
    log_error,
    prior,
    residuals,
)
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.performance.serving_estimate import server_of

from .rows import row_of


def test_what_is_assumed_before_anything_was_measured_are_the_priors() -> None:
    constants = prior().constants.model_dump()
    assert all(math.isclose(constants[name], value) for name, (value, _) in PRIORS.items())


FIRST_TRTLLM = {"framework": "TensorRT-LLM", "framework_version": "0.9.0"}


@pytest.mark.parametrize(
    "row, head_token_ns",
    [
        ({"model": "meta-llama/Llama-3.1-8B-Instruct"}, 0.0),
        ({"model": "Qwen/Qwen3-Next-80B-A3B-Instruct"}, 0.0),
        ({"model": "mistralai/Mistral-7B-v0.1", **FIRST_TRTLLM}, 1e-3),
        ({"model": "mistralai/Mistral-7B-v0.1", **FIRST_TRTLLM}, 80.0),
        ({"model": "meta-llama/Llama-2-70b", **FIRST_TRTLLM}, 80.0),
    ],
)
def test_a_case_under_other_constants_is_the_server_that_has_them(row: dict[str, str], head_token_ns: float) -> None:
    situation = situation_of(row_of(**row, tp="4", gpus="4"))
    assert isinstance(situation, Situation)
    case = case_of(About("A", "group", "pair"), situation, {"tpot_ms": 7.5}, {})
    layout = layout_of(situation)
    # Constants in which times are linear; factors on matmuls near both roofs are not.
    changes = {"recurrent_layer_us": 60.0, "attention_scale": 1.3, "moe_scale": 0.8, "host_step_ms": 2.0}
    changes["head_token_ns"] = head_token_ns
    profile = neutral(layout.setting.engine, **changes)
    wanted = server_of(layout.with_setting(layout.setting.with_profile(profile)), situation.arrivals, situation.lengths)
    server = case.server_with(profile.entry.constants)
    for column in ("linear_s", "decode_base_s", "decode_per_token_s", "prefill_fixed_s", "prefill_per_pair_s"):
        assert getattr(server.table, column) == pytest.approx(getattr(wanted.table, column), rel=1e-6, abs=1e-12), (
            column
        )
    assert server.table.host_fixed_s + server.table.hidden_fixed_s > 0.0
    assert server.table.host_fixed_s == wanted.table.host_fixed_s
    assert server.table.hidden_fixed_s == wanted.table.hidden_fixed_s


def test_a_case_that_has_no_prediction_costs_what_a_bad_one_does() -> None:
    # More requests than a run may have.
    situation = situation_of(row_of(concurrency_or_batch="12288"))
    assert isinstance(situation, Situation)
    case = case_of(About("A", "group", "pair"), situation, {"tpot_ms": 7.5, "ttft_ms": 80.0}, {})
    missed = residuals(np.array(prior().logs), [case])
    assert len(missed) == 2 and min(missed) > 1.0
    assert log_error(None, 7.5) == log_error(7.5 * FAILED_FACTOR, 7.5) > log_error(2 * 7.5, 7.5) > 0.0


def test_the_fit_of_an_engine_begins_with_the_time_that_a_host_in_its_language_takes() -> None:
    assert expected(prior(), "vllm", "v0").constants.host_sequence_us == pytest.approx(45.0)
    assert expected(prior(), "trtllm", "cpp") == prior()
    pooled = [entry for entry in all_entries() if entry.accelerator_class == "pooled"]
    took_us = {(entry.engine, entry.generation): entry.constants.host_sequence_us for entry in pooled}
    assert min(took_us["vllm", "v0"], took_us["vllm", "v1"], took_us["sglang", "any"]) > 5.0 * took_us["trtllm", "cpp"]
