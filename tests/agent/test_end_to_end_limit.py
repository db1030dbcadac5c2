"""A limit on the whole answer is read, kept, shown and missed like those on its first token and on each token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright.agent.chat.edit_reader import read_edit
from shardwright.agent.chat.edits import Spoken, apply_edit
from shardwright.agent.chat.words import request_facts
from shardwright.agent.cli.app import run
from shardwright.agent.intent.complete import complete
from shardwright.agent.loop.would_need import allowed
from shardwright.agent.operations.all_operations import OPERATIONS
from shardwright.agent.reading.answer import ReadingAnswer, StatedFact
from shardwright.agent.reading.verified import verified
from shardwright.tools.language.request import read_words
from shardwright.tools.plan.document import Plan, WorkloadBlock
from shardwright.tools.search.sensitivity import changes

from ..search.requests import search_request

ASKED: dict[str, Any] = {
    "model": "Llama-3.1-8B-Instruct", "hardware": "1x8:l40s", "input_tokens": 2048, "output_tokens": 256,
    "concurrency": 16, "objective": "cost",
}  # fmt: skip
# Nodes are rented whole: without the limit fewer of them are enough.
SMALL_NODES = {**ASKED, "hardware": "4x2:l40s"}
LIMIT_MS = 5500.0
LIMITED: dict[str, Any] = {"end_to_end_ms": LIMIT_MS, "end_to_end_statistic": "p95"}


def limited_plan() -> Plan:
    plan = shardwright.plan(**ASKED, **LIMITED).plan
    assert plan is not None
    return plan


def test_another_strategy_is_planned_where_the_best_without_the_limit_misses_it() -> None:
    free, bound = shardwright.plan(**SMALL_NODES), shardwright.plan(**SMALL_NODES, **LIMITED)
    assert free.plan is not None and free.estimate is not None
    assert bound.plan is not None and bound.estimate is not None and bound.report is not None
    assert free.estimate.latency.percentiles.end_to_end_ms.p95 > LIMIT_MS
    assert bound.estimate.latency.percentiles.end_to_end_ms.p95 <= LIMIT_MS
    assert free.plan.strategy != bound.plan.strategy and bound.valid and bound.report.limits_met
    assert bound.report.limits[0].startswith("end to end (p95) ")


@pytest.mark.thorough
def test_options_fields_arguments_and_a_block_ask_for_the_same(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    options = [f"--{name.replace('_', '-')}={value}" for name, value in ASKED.items()]
    assert run(["plan", *options, f"--end-to-end-ms={LIMIT_MS}", "--output", str(path)]) == 0
    load = {name: ASKED[name] for name in ("input_tokens", "output_tokens", "concurrency", "objective")}
    where = {"model": ASKED["model"], "hardware": ASKED["hardware"]}
    (operation,) = [operation for operation in OPERATIONS if operation.name == "plan"]
    stated = {**load, "end_to_end_ms_max": LIMIT_MS}
    plans = [
        json.loads(path.read_text(encoding="utf-8")),
        shardwright.plan(**ASKED, end_to_end_ms=LIMIT_MS).model_dump(mode="json")["plan"],
        shardwright.plan(**ASKED, end_to_end_ms_max=LIMIT_MS).model_dump(mode="json")["plan"],
        shardwright.plan(**where, workload=stated).model_dump(mode="json")["plan"],
        shardwright.plan(**where, workload=WorkloadBlock.model_validate(stated)).model_dump(mode="json")["plan"],
        operation.answer(operation.question({**ASKED, "end_to_end_ms": LIMIT_MS})).model_dump(mode="json")["plan"],
    ]
    assert plans[0]["workload"]["end_to_end_ms_max"] == LIMIT_MS
    assert all(plan["nodes"] == plans[0]["nodes"] and plan["workload"] == plans[0]["workload"] for plan in plans)


@pytest.mark.thorough
def test_what_cannot_be_held_is_named_with_how_far_it_is_missed() -> None:
    refused = shardwright.plan(**ASKED, end_to_end_ms=900.0).infeasible
    assert refused is not None and refused.rule == "PE010" and refused.closest is not None
    assert refused.closest.end_to_end_ms is not None and refused.closest.end_to_end_ms > 900.0
    figure = f"end to end {refused.closest.end_to_end_ms:,.0f} ms exceeds 900 ms"
    assert figure in refused.reason


@pytest.mark.thorough
def test_of_several_limits_the_whole_answer_has_what_the_others_leave() -> None:
    limits = {"end_to_end_ms": 900.0, "min_tokens_per_second": 500.0}
    reach = {within.limit: within.best for within in shardwright.search(**ASKED, **limits).within_reach}
    best = reach["end_to_end_ms_max"]
    assert best is not None and best.end_to_end_ms is not None and best.end_to_end_ms > 900.0
    alone = shardwright.search(**{**ASKED, "objective": "latency"}, min_tokens_per_second=500.0).best
    assert alone is not None and best.end_to_end_ms == pytest.approx(alone.end_to_end_ms, rel=0.01)


@pytest.mark.thorough
def test_reports_name_it_beside_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in ASKED.items()]
    assert run(["search", *options, "--end-to-end-ms=5500", "--tpot-ms=50"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "TPOT ≤ 50 ms" in text and "end to end ≤ 5,500 ms" in text
    assert run(["search", *options, "--end-to-end-ms=900", "--tpot-ms=50"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "end to end: " in text.partition("The best of each limit while the others are held")[2]


@pytest.mark.thorough
def test_a_repair_keeps_it() -> None:
    document = limited_plan().model_dump(mode="json")
    del document["strategy"], document["nodes"][3]
    fixed = shardwright.autofix(document)
    assert fixed.valid and fixed.plan is not None
    assert fixed.plan.workload.end_to_end_ms_max == LIMIT_MS
    assert fixed.plan.workload.end_to_end_statistic == "p95"


def test_a_repair_takes_another_strategy_where_the_proposed_one_misses_it() -> None:
    proposal = {
        "model": ASKED["model"], "hardware": "8 L40S", "input_tokens": 2048, "output_tokens": 256,
        "concurrency": 16, "e2e_latency_ms": LIMIT_MS, "strategy": {"tp": 2, "dp": 1},
    }  # fmt: skip
    fixed = shardwright.autofix(proposal)
    assert fixed.valid and fixed.plan is not None and fixed.plan.workload.end_to_end_ms_max == LIMIT_MS
    assert fixed.plan.strategy.gpu_count > 2


def test_kinds_of_a_mixture_are_each_held_to_theirs() -> None:
    kind = {"name": "chat", "weight": 1, "input_tokens": 2048, "output_tokens": 256}
    where = {"model": ASKED["model"], "hardware": "1x2:l40s", "objective": "cost"}
    loose = shardwright.plan_mix(workloads=[{**kind, "end_to_end_ms_max": 20_000.0}], **where)
    tight = shardwright.plan_mix(workloads=[{**kind, "end_to_end_ms_max": 500.0}], **where)
    assert loose.feasible and not tight.feasible
    assert any("chat: PE010: end to end" in why for candidate in tight.candidates for why in candidate.why_not)


FOLLOW_UPS = (
    ("drop the end to end limit", None, "mean"),
    ("drop the limit on the whole answer", None, "mean"),
    ("no end-to-end latency limit", None, "mean"),
    ("drop all limits", None, "mean"),
    ("取消端到端延迟限制", None, "mean"),
    ("lower the end to end limit by 2 s", 7000.0, "p95"),
    ("raise the end-to-end latency limit by 10%", 9900.0, "p95"),
    ("double the response time", 18_000.0, "p95"),
)


@pytest.mark.parametrize(("say", "limit_ms", "statistic"), FOLLOW_UPS)
def test_a_follow_up_changes_it_and_nothing_else(say: str, limit_ms: float | None, statistic: str) -> None:
    words = "Serve Llama-3.1-8B on 8 H100, 2k in / 256 out, concurrency 4"
    said = read_words(words).model_copy(update={"end_to_end_ms_max": 9000.0, "end_to_end_statistic": "p95"})
    spoken = [Spoken(said, complete(said))]
    edit = read_edit(say, spoken)
    after = complete(apply_edit(said, edit)).workload
    assert not edit.unread and not edit.questions
    assert (after.end_to_end_ms_max, after.end_to_end_statistic) == (limit_ms, statistic)
    before = spoken[0].intent.workload
    assert after == before.model_copy(update={"end_to_end_ms_max": limit_ms, "end_to_end_statistic": statistic})
    assert request_facts(spoken[0].intent)["end to end limit (ms)"] == "9,000 (p95)"


def _read(field: str, value: float | str, quote: str) -> dict[str, Any]:
    fact = StatedFact.model_validate({"field": field, "value": value, "quote": quote})
    reading = verified(ReadingAnswer(facts=(fact,)), f"Llama-3.1-8B on 2 H100. {quote}.")
    return {name: reported.value for name, reported in reading.fields.items()}


def test_a_model_reads_it_and_what_its_quote_does_not_bear_out_is_dropped() -> None:
    assert _read("end_to_end_ms_max", 9000, "the complete answer within 9 s") == {"end_to_end_ms_max": 9000.0}
    assert _read("end_to_end_statistic", "p95", "95% of answers are there") == {"end_to_end_statistic": "p95"}
    assert _read("end_to_end_ms_max", 8000, "the complete answer within 9 s") == {}
    assert _read("end_to_end_statistic", "p99", "the complete answer within 9 s") == {}


def test_a_proposer_may_ask_what_another_limit_would_bring_and_a_search_what_it_flips() -> None:
    request = search_request("Llama-3.1-8B", (1, 2, "l40s"), input_tokens=512, output_tokens=64, end_to_end_ms_max=1e4)
    assert allowed(request, ["end_to_end_ms = 12000"]).workload.end_to_end_ms_max == 12_000.0
    words = {change.words: change.workload for change in changes(request)}
    looser = words["end to end limit 20% looser (12,000 ms)"]
    assert looser is not None and looser.end_to_end_ms_max == pytest.approx(12_000.0)
