"""Every feasible request in words gives a plan without violations, and every other one says why not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.agent.results import PlanResult
from shardwright.tools.language.errors import RequestError
from shardwright.tools.performance.setting import Setting
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.search import reach
from shardwright.tools.search.candidate import SearchRequest
from shardwright.tools.search.screen import Screen
from shardwright.tools.validate import validate

pytestmark = pytest.mark.thorough

CASES = Path(__file__).parent.parent / "cases"
REQUESTS: list[dict[str, Any]] = json.loads((CASES / "requests.json").read_text(encoding="utf-8"))
# Their searches take many seconds each: other tests read them field by field, and they are not planned here.
LONG = frozenset({"rates", "zh-cost", "rack", "permission", "zh-relax", "zh-precision-yours", "chinese_markdown"})
# A similar search is planned for another request: the same kind of model, number of machines and degrees.
PLANNED_ELSEWHERE = frozenset(
    {
        *("zh-no-hardware", "two-boxes", "zh-idiom", "zh-2x8"),
        *("zh-dp-attention-last", "zh-dp-attention-fills-ep", "zh-dp-attention-within-tp", "dp-attention-flags"),
        "zh-attention-dp-only-allowed",
    }
)
# Requests with the same meaning are planned alike: one of each is enough. Other tests check how each is read.
ALIKE = {json.dumps(case["said"], sort_keys=True): case for case in REQUESTS if "said" in case}
READ = [case for case in ALIKE.values() if case["id"] not in LONG | PLANNED_ELSEWHERE]
BRIEFS = sorted(folder for folder in (CASES / "briefs").iterdir() if folder.name not in LONG)
# Requests and briefs that no plan can meet, with the binding rule.
INFEASIBLE_BRIEFS = {"starred_prose": "PE010"}
# What no plan avoids: the model needs two nodes, and servers of decode alone have no stages in vLLM.
WARNED = {"zh-pd": {"TP007"}}
INFEASIBLE = {"box-name": "ME001", "infeasible-but-clear": "ME001", "zh-median": "PE010"}


@cache
def planned(*, brief: Path | None = None, text: str | None = None) -> PlanResult:
    if brief is not None:
        return plan(brief=sorted(path for path in brief.iterdir() if path.name != "expected.json"))
    return plan(text)


@pytest.mark.parametrize("case", READ, ids=lambda case: case["id"])
def test_a_feasible_request_gives_a_plan_with_no_violation(case: dict[str, Any]) -> None:
    result = planned(text=case["text"])
    if case["id"] in INFEASIBLE:
        assert result.plan is None
        assert result.infeasible is not None
        assert result.infeasible.rule == INFEASIBLE[case["id"]]
        return
    assert result.plan is not None
    assert result.valid
    violations = validate(result.plan.model_dump(mode="json")).violations
    assert {violation.rule for violation in violations} == WARNED.get(case["id"], set())
    assert result.estimate is not None
    assert result.report is not None


@pytest.mark.parametrize("brief", BRIEFS, ids=lambda brief: brief.name)
def test_a_brief_gives_a_plan_with_no_violation_and_a_verdict_on_the_stated_strategy(brief: Path) -> None:
    result = planned(brief=brief)
    if brief.name in INFEASIBLE_BRIEFS:
        assert result.plan is None and result.infeasible is not None
        assert result.infeasible.rule == INFEASIBLE_BRIEFS[brief.name]
        assert result.infeasible.closest is not None
        return
    assert result.plan is not None, result.infeasible
    assert validate(result.plan).violations == ()
    assert result.report is not None
    assert result.intent is not None
    assert (result.report.stated is not None) == (result.intent.strategy is not None)


def test_a_stated_gpu_count_that_is_a_product_is_named() -> None:
    result = planned(brief=CASES / "briefs" / "given_strategy")
    assert result.report is not None
    assert result.report.stated is not None
    assert "GP002" in {finding.rule for finding in result.report.stated.findings}


def test_degrees_that_a_request_asks_for_are_kept_where_they_are_legal() -> None:
    result = plan("Serve Llama-3.1-70B on 8 H100 with TP4 PP2, 2k in / 256 out")
    assert result.plan is not None
    assert (result.plan.strategy.decode.tp, result.plan.strategy.decode.pp) == (4, 2)


def test_degrees_that_no_plan_can_have_are_said_and_replaced() -> None:
    result = plan("Serve Llama-3.1-70B on 6 H100 with TP3, 2k in / 256 out")
    assert result.plan is not None
    assert result.valid
    assert result.report is not None
    assert result.report.stated is not None
    assert "TP005" in {finding.rule for finding in result.report.stated.findings}
    assert "cannot be kept" in result.report.explanation


def test_an_impossible_model_says_the_shortfall_and_the_least_hardware() -> None:
    result = planned(text="Serve Llama-3.1-405B in bf16 on one RTX 4090")
    assert result.plan is None
    assert not result.valid
    assert result.infeasible is not None
    assert result.infeasible.rule == "ME001"
    assert result.infeasible.shortfall_bytes is not None
    assert result.infeasible.shortfall_bytes > 780e9
    assert result.infeasible.needs.gpus is not None
    # 811.7 GB of weights on cards with 23.2 GB usable: 35 at the very least.
    assert 35 <= result.infeasible.needs.gpus <= 64


def test_limits_that_nothing_can_meet_are_named_with_the_closest_plan() -> None:
    result = plan("Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, TPOT under 1 ms")
    assert result.plan is None
    assert result.infeasible is not None
    assert result.infeasible.rule == "PE010"
    assert "TPOT" in result.infeasible.reason
    assert result.infeasible.closest is not None


def test_a_limit_that_is_met_is_met_by_the_estimate_of_the_plan() -> None:
    result = plan("Serve DeepSeek-R1 on two 8×H200 nodes, 4k in, 1k out, TPOT under 50 ms, best throughput")
    assert result.plan is not None
    assert result.estimate is not None
    assert result.estimate.latency.tpot_ms <= 50
    assert result.plan.workload.concurrency > 1


def test_the_json_of_a_result_has_a_plan_even_where_there_is_none() -> None:
    data = planned(text="Serve Llama-3.1-405B in bf16 on one RTX 4090").model_dump(mode="json")
    assert data["plan"] is None
    assert data["valid"] is False
    assert "infeasible" in data


def test_the_gpu_count_of_a_plan_is_the_devices_of_its_graph() -> None:
    result = plan("Serve DeepSeek-V3 on 2x8 H200, 4k/1k, lowest latency")
    assert result.plan is not None
    used = {device for node in result.plan.nodes for device in getattr(node, "devices", ())}
    assert result.plan.strategy.gpu_count == len(used) == gpu_count(result.plan.strategy)


def test_nothing_asked_is_refused() -> None:
    with pytest.raises(RequestError):
        plan()


def test_memory_says_nothing_of_a_limit_of_time_that_cannot_be_checked() -> None:
    """Two nodes without a known link: more cards fit, but nobody knows whether they keep the limit."""
    result = plan("Qwen3-32B on 4 L40S, 1k in / 256 out, TPOT under 0.1 ms")
    assert result.infeasible is not None
    assert result.infeasible.rule == "PE010"
    assert result.infeasible.needs.gpus is None
    assert "inter_node_bw_gb_s" in (result.infeasible.needs.note or "")


@pytest.mark.parametrize(
    ("hardware", "limit", "starts", "ends"),
    [
        ("H100", "", "Near the most that it takes: with 27.5 requests/s the queue grows: ", " on 2 GPU(s)"),
        ("1 H100", "", "Near the most that it takes: with 27.5 requests/s the queue grows: ", "was stated"),
        ("2 H100", "", "", ""),
        ("1 H100", ", TTFT under 2 s", "", ""),
    ],
)
def test_a_rate_without_limits_that_leaves_little_room_is_told_so(
    hardware: str, limit: str, starts: str, ends: str
) -> None:
    report = plan(f"Llama-3.1-8B on {hardware}, 25 requests/s, 1k in, 200 out{limit}").report
    assert report is not None
    told = report.on_more or ""
    assert bool(told) == bool(starts) and told.startswith(starts) and told.endswith(ends)


def test_the_cheapest_plan_says_first_that_its_queue_soon_grows() -> None:
    asked = "Llama-3.2-1B on {}, 25 requests/s, 512 in, 64 out, TTFT under 4 s, cheapest"
    for hardware in ("L4", "1 L4"):
        result = plan(asked.format(hardware), disaggregated=False)
        assert result.plan is not None and result.plan.strategy.gpu_count == 1
        assert result.report is not None and result.report.on_more is not None
        assert result.report.on_more.startswith("Near the most that it takes: with 5% more requests its queue grows")


def test_of_the_kinds_to_choose_from_those_without_a_price_are_named_first() -> None:
    asked = "Llama-3.2-1B, 512 in, 64 out, 8 users, choose among L4, L40S and RTX Pro 6000, {}"
    told = "no price is known of rtx-pro-6000-blackwell-server: not compared"
    assert told in " ".join(render_plan(plan(asked.format("cheapest")), width=100).split("Layout")[0].split())
    assert told not in render_plan(plan(asked.format("lowest latency")), width=1000)


@pytest.mark.parametrize("kinds", ["L4 and L40S", "L40S and L4"])
def test_the_cheapest_kind_for_a_rate_needs_no_reserve(kinds: str) -> None:
    asked = f"Llama-3.2-1B, 25 requests/s, 512 in, 64 out, TTFT under 4 s, cheapest, choose among {kinds}"
    planned = plan(asked, disaggregated=False).plan
    assert planned is not None and (planned.hardware.accelerator, planned.strategy.gpu_count) == ("l4", 1)


def test_the_least_hardware_names_the_budget_that_rules_out_what_would_do() -> None:
    asked = "Llama-3.2-1B on 1 H100, TTFT under 10 ms, 2k in, 100 out, 1 user"
    free, bound = plan(asked).infeasible, plan(asked, constraints=["usd_per_hour <= 5"]).infeasible
    assert free is not None and free.needs.gpus == 2
    assert bound is not None and bound.rule == "PE010" and bound.needs.gpus is None
    assert "up to 8 is enough and keeps “usd_per_hour <= 5”" in (bound.needs.note or "")


@pytest.mark.parametrize(
    "text",
    [
        "Llama-3.1-8B on one H100, separate prefill and decode, 1k in, 100 out",
        "单张4090部署Qwen2.5-7B，PD分离，输入1k，输出100",
    ],
)
def test_one_gpu_cannot_hold_two_kinds_of_replica(text: str) -> None:
    infeasible = plan(text).infeasible
    assert infeasible is not None
    assert infeasible.rule == "DP002"
    assert infeasible.needs.gpus == 2


def test_no_cluster_is_searched_twice_for_an_answer_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """For limits that no number of GPUs keeps: neither for the fewest that would do nor for the closest plan."""
    searched: list[tuple[int, bool | None, tuple[str, ...]]] = []

    def noted(request: SearchRequest, setting: Setting) -> Screen:
        searched.append((request.facts.gpus, request.disaggregated, request.policy.relaxations))
        return Screen(request, setting)

    monkeypatch.setattr(reach, "Screen", noted)
    result = plan("Llama-3.2-1B on H100s, TTFT under 0.1 ms, 2k in, 100 out, 16 users")
    assert result.infeasible is not None and result.infeasible.needs.gpus is None
    assert "up to 256 is enough" in (result.infeasible.needs.note or "")
    assert len(searched) == len(set(searched)) > 4
