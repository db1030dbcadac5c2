"""An infeasible answer names the number formats and cards that would do, and each of them does."""

from __future__ import annotations

import re

import pytest

from shardwright.agent.pipeline import plan

TOO_LARGE = "Serve Llama-3.1-405B on {}, 2k in, 256 out, 16 users, TPOT under 50 ms"


@pytest.mark.thorough
def test_formats_and_cards_that_would_do_are_named_with_their_plan() -> None:
    answer = plan(TOO_LARGE.format("8 H100"))
    assert answer.infeasible is not None
    ways = answer.infeasible.other_ways
    assert any(way.startswith("in fp8: ") and "quality" in way for way in ways)
    assert any(way.startswith("on 8 × h200-sxm: ") for way in ways)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("changed", ["8 H200", "8 H100 in fp8"])
def test_a_way_that_is_named_has_a_plan(changed: str) -> None:
    assert plan(TOO_LARGE.format(changed)).valid


@pytest.mark.thorough
def test_nothing_is_named_where_nothing_would_do() -> None:
    answer = plan("Serve Llama-3.1-70B on 4 A100, 2k in, 256 out, 16 users, TPOT under 0.1 ms")
    assert answer.infeasible is not None and answer.infeasible.other_ways == ()


@pytest.mark.thorough
def test_what_memory_holds_and_what_a_limit_allows_are_told_apart() -> None:
    words = "Llama-3.1-8B on one L4, 2k in, 200 out, {} users"
    limited = plan(words.format(400) + ", TPOT under 80 ms").infeasible
    assert limited is not None
    match = re.search(r"at most ([\d,]+) do, and about ([\d,]+) with TPOT as limited", limited.reason)
    assert match is not None
    most, within_limit = int(match[1]), int(match[2])
    assert within_limit < most < 400
    assert (
        plan(words.format(most)).plan is not None
        and plan(words.format(within_limit) + ", TPOT under 80 ms").plan is not None
    )
    assert plan(words.format(most + 1)).plan is None
    free = plan(words.format(400)).infeasible
    assert free is not None and f"at most {most} do" in free.reason and "limited" not in free.reason


def test_a_closest_plan_for_fewer_requests_says_for_how_many() -> None:
    answer = plan("Serve Llama-3.1-8B on 1 L40S, 20k in, 500 out, 300 users")
    assert answer.infeasible is not None and answer.infeasible.closest is not None
    assert f"room for {answer.infeasible.closest.concurrency} requests at once" in answer.infeasible.closest.why_not[0]


def test_what_would_do_holds_a_request_and_is_the_plan_of_who_asks_for_it() -> None:
    words = "Llama-3.3-70B on {} RTX 3090, 4 bit, 2k in, 200 out"
    answer = plan(words.format(1))
    assert answer.infeasible is not None and answer.infeasible.needs.gpus is not None
    named = (answer.infeasible.needs.note or "", answer.infeasible.with_engine or "", *answer.infeasible.other_ways)
    assert not any("holds no request" in way for way in named)
    there = plan(words.format(answer.infeasible.needs.gpus))
    assert there.estimate is not None and there.estimate.memory.unheld_request is None


def test_a_percentile_that_is_missed_in_the_burst_at_the_start_alone_is_told_with_the_rate_that_holds_it() -> None:
    words = "Llama-3.1-8B on 1 L40S, 2k in, 200 out, {}, TTFT p95 under 1 s"
    answer = plan(words.format("16 at once")).infeasible
    assert answer is not None and answer.at_start is not None
    rate = re.search(r"--request-rate ([\d.]+)", answer.at_start)
    assert rate is not None and plan(words.format("no stated number at once"), request_rate=float(rate[1])).valid


def test_a_limit_on_means_is_no_matter_of_the_start() -> None:
    answer = plan("Llama-3.1-8B on 1 L40S, 2k in, 200 out, 16 at once, TTFT under 10 ms").infeasible
    assert answer is not None and answer.at_start is None
