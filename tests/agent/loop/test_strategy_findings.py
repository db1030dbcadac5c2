"""Findings on a strategy name every faulty field of it at once, with values that would pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.loop.feedback import feedback
from shardwright.agent.loop.judge import judge_document

from .questions import desk

REQUESTS = {
    "dense": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "moe": "Serve Mixtral 8x7B on 16 H100, 2k in / 256 out, 32 concurrent requests, best throughput",
}
CASES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "strategy_faults.json").read_text(encoding="utf-8")
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_every_fault_of_a_strategy_is_named_by_its_field(name: str) -> None:
    case = CASES[name]
    proposal = {"format": "shardwright/plan", "version": "1", "strategy": case["strategy"]}
    judgement = judge_document(desk(REQUESTS[case["request"]]), proposal)
    faults = {fault.field: fault for fault in judgement.strategy_faults}
    assert faults.keys() == case["faults"].keys()
    for field, (rule, words) in case["faults"].items():
        assert faults[field].rule == rule and words in faults[field].message
    report = feedback(judgement, "patch")
    if faults:
        assert [finding["field"] for finding in report["findings"]] == list(faults)
        assert "nodes" not in json.dumps(report["findings"])


@pytest.mark.thorough
def test_what_would_pass_is_legal() -> None:
    strategy = {"dp": 1, "prefill": {"tp": 6}, "decode": {"tp": 6}}
    faults = judge_document(desk(REQUESTS["dense"]), {"strategy": strategy}).strategy_faults
    (offered,) = (fault.expected for fault in faults if fault.field == "prefill.tp, decode.tp")
    for tp in offered:
        again = {"dp": 1, "prefill": {"tp": tp}, "decode": {"tp": tp}}
        assert judge_document(desk(REQUESTS["dense"]), {"strategy": again}).strategy_faults == ()


def test_a_stated_number_of_gpus_is_asked_about_and_not_put_right_in_silence() -> None:
    strategy = {"dp": 1, "gpu_count": 4, "prefill": {"tp": 8}, "decode": {"tp": 8}}
    judgement = judge_document(desk(REQUESTS["dense"]), {"strategy": strategy})
    assert judgement.is_ambiguous and not judgement.is_acceptable
