"""Batches that follow one another through the stages of a pipeline, by hand: each pass and each stage counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardwright.tools.performance.serving.load import Burst, ClosedLoop, Lengths, ServingTimes

from .engines import ENGINE, ROOMY, simulate

# Every pass takes a second, whatever it holds.
FLAT = replace(
    ENGINE,
    linear_s=[1.0] * len(ENGINE.tokens), decode_base_s=[0.0] * len(ENGINE.sequences),
    decode_per_token_s=[0.0] * len(ENGINE.sequences), head_s=[0.0] * len(ENGINE.sequences),
    prefill_fixed_s=[0.0] * len(ENGINE.chunk_tokens), prefill_per_pair_s=[0.0] * len(ENGINE.chunk_tokens),
    host_fixed_s=0.0, host_per_sequence_s=0.0, host_per_prefill_s=0.0,
)  # fmt: skip


def run(batches: int, users: int, lengths: Lengths, *, budget: int, slowest_share: float | None = None) -> ServingTimes:
    table = replace(FLAT, slowest_share=slowest_share or 1.0 / batches)
    return simulate(table, replace(ROOMY, batches=batches, token_budget=budget), Burst(users), lengths)


@given(st.sampled_from([2, 4, 8]), st.integers(1, 20))
def test_a_single_user_gains_nothing_from_stages(batches: int, tokens: int) -> None:
    times = run(batches, 1, Lengths(64, tokens), budget=64)
    assert times.ttft.mean == pytest.approx(1.0)
    assert times.end_to_end.mean == pytest.approx(tokens)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 40))
def test_chunks_of_one_prompt_follow_one_another_through_the_stages(batches: int, chunks: int) -> None:
    times = run(batches, 1, Lengths(64 * chunks, 1), budget=64)
    assert times.ttft.mean == pytest.approx((chunks + batches - 1) / batches)


@pytest.mark.parametrize(("batches", "users"), [(2, 2), (4, 4), (4, 8)])
def test_full_batches_have_the_rate_of_all_stages(batches: int, users: int) -> None:
    """Each user's step takes as long as the way through all stages, and all batches take theirs at once."""
    times = run(batches, users, Lengths(64, 1001), budget=64 * (users // batches))
    assert times.tpot.mean == pytest.approx(1.0, rel=0.01)
    assert times.output_tokens_per_s == pytest.approx(users, rel=0.01)


def test_prompts_that_share_a_pass_leave_the_other_batches_empty() -> None:
    """The scheduler fills the first batch with all that its budget takes: nobody fills the others."""
    linear = [seconds / 1024 for seconds in ENGINE.tokens]
    table = replace(FLAT, linear_s=linear, slowest_share=0.25)
    roomy, narrow = (
        simulate(table, replace(ROOMY, batches=4, token_budget=budget), Burst(64), Lengths(16, 512))
        for budget in (1024, 256)
    )
    assert roomy.tpot.mean == pytest.approx(64 / 1024, rel=0.01)
    assert narrow.tpot.mean == pytest.approx(16 / 1024, rel=0.02)


def test_a_slow_stage_holds_up_all_batches() -> None:
    times = run(4, 4, Lengths(64, 1001), budget=64, slowest_share=0.5)
    assert times.tpot.mean == pytest.approx(2.0, rel=0.01)


@given(st.sampled_from([1, 2, 4]), st.integers(1, 12), st.integers(1, 200), st.integers(1, 12))
def test_every_request_is_served_and_none_is_done_before_it_is_shown(
    batches: int, users: int, prompt: int, output: int
) -> None:
    policy = replace(ROOMY, batches=batches, token_budget=64, kv_tokens=4 * (prompt + output), max_sequences=5)
    times = simulate(
        replace(ENGINE, slowest_share=1.0 / batches), policy, ClosedLoop(users, 3 * users), Lengths(prompt, output)
    )
    assert times.ttft.mean > 0.0 and times.tpot.mean >= 0.0
    assert times.end_to_end.mean >= times.ttft.mean - 1e-12
    assert times.output_tokens_per_s * times.makespan_s == pytest.approx(3 * users * output)
