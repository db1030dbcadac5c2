"""The fit of engine constants: what it may move, and what it leaves as it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from shardwright.tools.fidelity.deployment import layout_of
from shardwright.tools.fidelity.engine_cases import About, case_of, neutral
from shardwright.tools.fidelity.engine_fit import (
    FAILED_FACTOR,
    NAMES,
    PRIORS,
    SHARES,
    constants_of,
    log_error,
    may_read_again,
    prior,
    residuals,
)
from shardwright.tools.fidelity.situation import Situation, situation_of
from shardwright.tools.performance.serving_estimate import server_of

from .rows import row_of


def test_what_is_assumed_before_anything_was_measured_are_the_priors() -> None:
    constants = prior().constants.model_dump()
    assert all(math.isclose(constants[name], value) for name, (value, _) in PRIORS.items())


def test_a_share_stays_between_nothing_and_all() -> None:
    place = NAMES.index(SHARES[0])
    for value, wanted in ((-0.5, 0.0), (0.25, 0.25), (7.0, 1.0)):
        logs = np.array(prior().logs)
        logs[place] = value
        assert getattr(constants_of(logs), SHARES[0]) == wanted


def test_engines_of_today_read_a_cached_head_once() -> None:
    assert may_read_again(("trtllm", "session", "hopper")) and may_read_again(("vllm", "v0", "cdna3"))
    for wanted in (("vllm", "v0", "hopper"), ("vllm", "v1", "cdna3"), ("trtllm", "pytorch", "blackwell")):
        assert not may_read_again(wanted)


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_a_case_under_other_constants_is_the_server_that_has_them(model: str) -> None:
    situation = situation_of(row_of(model=model, tp="4", gpus="4"))
    assert isinstance(situation, Situation)
    case = case_of(About("A", "group", "pair"), situation, {"tpot_ms": 7.5}, {})
    layout = layout_of(situation)
    # Those that are straight lines: factors on matmuls that are near both roofs are not.
    changes = {"recurrent_layer_us": 60.0, "attention_scale": 1.3, "moe_scale": 0.8, "host_step_ms": 2.0}
    profile = neutral(layout.setting.engine, **changes)
    wanted = server_of(
        replace(layout, setting=layout.setting.with_profile(profile), memo={}), situation.arrivals, situation.lengths
    )
    found = case.server_with(profile.entry.constants)
    for column in ("linear_s", "decode_base_s", "decode_per_token_s", "prefill_fixed_s", "prefill_per_pair_s"):
        assert getattr(found.table, column) == pytest.approx(getattr(wanted.table, column), rel=1e-6), column
    assert found.table.host_fixed_s == wanted.table.host_fixed_s


def test_a_case_that_has_no_prediction_costs_what_a_bad_one_does() -> None:
    # More requests than a run may have.
    situation = situation_of(row_of(concurrency_or_batch="12288"))
    assert isinstance(situation, Situation)
    case = case_of(About("A", "group", "pair"), situation, {"tpot_ms": 7.5, "ttft_ms": 80.0}, {})
    found = residuals(np.array(prior().logs), [case])
    assert len(found) == 2 and min(found) > 1.0
    assert log_error(None, 7.5) == log_error(7.5 * FAILED_FACTOR, 7.5) > log_error(2 * 7.5, 7.5) > 0.0
