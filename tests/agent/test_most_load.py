"""A question for the highest load is planned for, or reported as not acted on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import shardwright
from shardwright.agent.intent.complete import complete
from shardwright.agent.report.plan import render_plan
from shardwright.tools.language.request import read_request

CASES: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "most_load.json").read_text(encoding="utf-8")
)
SMALL = "Llama-3.2-1B on 1 L4, 512 in / 32 out, TPOT under {limit} ms"


@pytest.mark.parametrize("words", CASES["asked"])
def test_the_question_is_planned_for_as_many_requests_as_the_limits_allow(words: str) -> None:
    said = read_request(words)
    intent = complete(said)
    assert intent.concurrency_open and intent.workload.objective == "throughput"
    assert not said.unread and any("as many requests at once as the limits allow" in line for line in said.readings)


@pytest.mark.parametrize("words", CASES["not_asked"])
def test_words_that_say_how_many_ask_for_nothing(words: str) -> None:
    said = read_request(words)
    assert said.objective is None and not any("most load" in line for line in said.unread)


@pytest.mark.parametrize("words", CASES["beside"])
def test_beside_another_wish_the_question_is_said_not_to_be_acted_on(words: str) -> None:
    assert any("the most load is not looked for beside" in line for line in read_request(words).unread)


def test_a_tighter_limit_allows_fewer_and_the_report_says_whose_number_it_is() -> None:
    counts: list[int] = []
    for limit in (200, 20):
        result = shardwright.plan(f"{SMALL.format(limit=limit)}. How many users can it serve?")
        assert result.plan is not None and result.report is not None and result.report.limits_met
        counts.append(result.plan.workload.concurrency)
        assert f"{counts[-1]:,} requests at once (assumed)" in " ".join(render_plan(result, width=100).split()[:60])
    assert counts[0] > counts[1] > 1


CEILINGS = [
    ("5 requests per second, TPOT under 60 ms", 1),
    ("4 users, TPOT under 60 ms", 1),
    ("5 requests per second, TPOT under 60 ms, lowest latency", 4),
    ("TPOT under 60 ms, maximum throughput", 4),
    ("4 users", 4),
]


@pytest.mark.parametrize(("load", "used"), CEILINGS)
def test_of_at_most_so_many_gpus_all_are_used_only_where_the_load_does_not_say_what_is_enough(
    load: str, used: int
) -> None:
    result = shardwright.plan(f"Llama-3.2-1B on at most 4 L4, 512 in / 32 out, {load}")
    assert result.plan is not None and result.plan.strategy.gpu_count == used


@pytest.mark.thorough
def test_a_strategy_that_holds_more_requests_than_the_best_one_is_named_first() -> None:
    words = "How many users can 8 H100 serve with Llama-3.1-70B, 2k in / 300 out, TPOT under 50 ms?"
    result = shardwright.plan(words)
    assert result.plan is not None and result.report is not None and result.report.on_more is not None
    match = re.search(r"simulated: ([\d,]+) by (.+?) with", result.report.on_more)
    assert match is not None and int(match[1].replace(",", "")) > result.plan.workload.concurrency
    assert result.report.on_more in render_plan(result, width=2000).split("\n\n")[0]
