"""How many GPUs and nodes a plan uses, whether fewer would do, how near a limit is, and what is served."""

from __future__ import annotations

import itertools
import re

import pytest

import shardwright
from shardwright.agent.planning.examined import Examined
from shardwright.agent.planning.proposer import examine
from shardwright.agent.report.plan import render_plan
from shardwright.agent.stated.request import intent_of
from shardwright.tools.checkpoint import best_so_far

pytestmark = pytest.mark.thorough


def report_of(words: str) -> str:
    return " ".join(render_plan(shardwright.plan(words), width=100).split())


SIZED = [
    "Llama-3.1-70B, 30 requests per second, 2k in / 300 out, TPOT under 50 ms, cheapest, how many H100 do I need",
    "Qwen3-32B, 60 requests per second, 2k in / 300 out, TPOT under 30 ms, lowest cost, how many H100 do I need",
    "Mixtral-8x7B, 60 requests per second, 2k in / 300 out, TPOT under 20 ms, cheapest, how many H100 do I need",
]


@pytest.mark.parametrize("words", SIZED)
def test_nodes_that_are_told_are_those_that_the_plan_uses(words: str) -> None:
    result = shardwright.plan(words)
    assert result.plan is not None and result.estimate is not None and result.estimate.cost is not None
    hardware, used = result.plan.hardware, result.plan.strategy.gpu_count
    owned = hardware.nodes * hardware.gpus_per_node
    assert result.estimate.cost.billed_gpus == owned
    of = f" of {owned}" if owned > used else ""
    report = " ".join(render_plan(result, width=100).split())
    assert f"Uses {used} GPUs{of}, in {hardware.nodes} nodes of 8" in report
    assert "How many GPUs was left open: planned for the fewest" in report


def test_a_sizing_that_is_cut_short_owns_no_node_that_its_plan_leaves_idle() -> None:
    intent, cut_short = intent_of(SIZED[1]), 0
    for looks in range(60, 400, 20):
        count = itertools.count()
        with best_so_far(lambda count=count, looks=looks: next(count) > looks) as limit:
            examined = examine(intent)
        if isinstance(examined, Examined) and limit.left_out:
            cut_short += 1
            hardware = examined.request.hardware
            assert hardware.nodes * hardware.gpus_per_node == examined.best.billed_gpus
    assert cut_short


def test_what_a_part_of_a_billed_node_costs_alone_is_told_where_a_token_is_to_be_cheapest() -> None:
    words = "Llama-3.1-8B on {}, 1k in, 256 out, 16 users, lowest cost per token"
    whole, alone = (shardwright.plan(words.format(cards)) for cards in ("8 H100", "1 H100"))
    assert whole.report is not None and whole.report.on_fewer is not None
    assert whole.estimate is not None and whole.estimate.cost is not None
    assert alone.estimate is not None and alone.estimate.cost is not None
    share = alone.estimate.cost.per_million_output_tokens / whole.estimate.cost.per_million_output_tokens
    assert whole.report.on_fewer.startswith(
        f"All 8 GPUs are billed; rented alone, 1 would serve a token at {share:.0%}"
    )


def test_gpus_that_stay_free_are_counted_in_what_fewer_would_do() -> None:
    limits = "TTFT under 4 s, TPOT under 60 ms"
    words = f"Qwen3-32B in fp8 on 8 L40S, two cards must stay free, 3k in, 300 out, 24 users, {limits}"
    result = shardwright.plan(words)
    assert result.report is not None and result.report.on_fewer is not None
    match = re.match(r"Every limit holds on (\d+) of these 8 GPUs too: ", result.report.on_fewer)
    assert match is not None
    on_as_many = shardwright.plan(words.replace("on 8 L40S", f"on {int(match[1]) + 2} L40S"))
    one_less = shardwright.plan(words.replace("on 8 L40S", f"on {int(match[1]) + 1} L40S"))
    assert on_as_many.valid and not one_less.valid


NAMED = [
    ("Llama-3.1-8B, 12 requests per second, 1k in / 128 out, TPOT under 30 ms, lowest latency on 8 H100", 8),
    ("Qwen3-32B, 100 concurrent users, 1k in / 256 out, p99 TPOT under 25 ms, lowest latency on 16 H100", 16),
    ("Mixtral-8x7B, 20 requests per second, 1k in / 200 out, TPOT under 25 ms, lowest latency on 8 H100", 8),
]


@pytest.mark.parametrize(("words", "owned"), NAMED)
def test_gpus_that_are_not_needed_are_named_and_fewer_do(words: str, owned: int) -> None:
    result = shardwright.plan(words)
    assert result.report is not None and result.report.on_fewer is not None and result.plan is not None
    match = re.match(rf"Every limit holds on (\d+) of these {owned} GPUs too: ", result.report.on_fewer)
    assert match is not None and int(match[1]) < result.plan.strategy.gpu_count
    assert shardwright.plan(words.replace(f"on {owned} H100", f"on {match[1]} H100")).valid


def test_where_all_gpus_are_needed_the_report_says_so() -> None:
    words = "Llama-3.1-8B, 60 requests per second, 2k in / 300 out, TPOT under 20 ms, on 7 H100"
    assert "No smaller part of these 7 GPUs, of a node or whole nodes, holds every limit" in report_of(words)


def test_a_limit_that_just_holds_is_marked_with_how_sure_that_is() -> None:
    load = "Qwen3-32B on 4 H100, 40 users, 1k in / 128 out, lowest latency"
    free = shardwright.plan(load)
    assert free.estimate is not None
    report = report_of(f"{load}, TPOT under {free.estimate.latency.tpot_ms * 1.005:.3f} ms")
    assert re.search(
        r"TPOT \(mean\) [\d.]+ ms of at most [\d.]+ ms, tight, 0\.[45]% to spare; may be missed: the", report
    )
    assert re.search(r"more load: no room, with 42 requests at once: TPOT [\d.]+ ms exceeds", report)
    bare = report_of(f"{load}, TPOT under {free.estimate.latency.tpot_ms * 1.0001:.5f} ms")
    assert "Limits: all hold, TPOT with nothing to spare" in bare and "ms, met with nothing to spare; may be" in bare
    roomy = report_of(f"{load}, TPOT under {free.estimate.latency.tpot_ms * 2:.3f} ms")
    assert re.search(r"TPOT \(mean\) [\d.]+ ms of at most [\d.]+ ms, 50% to spare; ", roomy) and "tight" not in roomy


@pytest.mark.parametrize(
    ("model", "rate", "out"), [("Llama-3.1-8B", 10, 300), ("Qwen3-32B", 4, 256), ("Mixtral-8x7B", 6, 200)]
)
def test_what_comes_at_a_rate_stands_beside_what_a_run_makes(model: str, rate: int, out: int) -> None:
    result = shardwright.plan(f"{model} on 4 H100, {rate} requests per second, 1k in / {out} out")
    assert result.report is not None and result.estimate is not None and result.estimate.cost is not None
    simulated = result.estimate.throughput.dp_scaled_tokens_per_s
    (line,) = (limit for limit in result.report.limits if "requests/s and serves" in limit)
    assert f"keeps up with {rate} requests/s and serves their {rate * out:,} output tokens/s" in line
    assert (simulated < rate * out) is (f"{simulated:,.0f} tokens/s of the simulated run" in line)
    billed = result.estimate.cost.billed_gpus or 0
    price = float(re.findall(r"([\d.]+) USD per GPU-hour\)", result.estimate.cost.price_source or "")[0])
    expected = billed * price / 3600 / (rate * out) * 1e6
    assert result.estimate.cost.per_million_output_tokens == pytest.approx(expected)


def test_gpus_that_are_kept_back_are_no_part_of_what_was_looked_at() -> None:
    report = report_of(
        "Llama-3.1-70B, 200 requests per second, 2k in / 300 out, TPOT under 30 ms on 16 H100, keep 8 free"
    )
    assert "no strategy on 8 of 16 × h100-sxm holds the limits" in report
    assert re.search(
        r"Least hardware that would do: (?:[\d,]+ × h100-sxm in \d+ nodes instead of 16 GPUs|no number)", report
    )
