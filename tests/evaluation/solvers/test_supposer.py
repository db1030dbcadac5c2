"""Of vague requests, supported values are read, suppositions are reported as such, and the rest is dropped."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.evaluation.dataset import read_dataset
from shardwright.agent.evaluation.score import score_case
from shardwright.agent.evaluation.solver import UNHURRIED
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.agent.evaluation.solvers.named import SolverSpec, solver_named
from shardwright.agent.evaluation.solvers.supposer import invented, reader_of, supposed
from shardwright.agent.reading.answer import ReadingAnswer
from shardwright.agent.reading.source import Source
from shardwright.agent.reading.verified import verified
from shardwright.tools.errors import InputError
from shardwright.tools.language.said import Said

VAGUE = {case.id: case for case in read_dataset(Path(__file__).parents[2] / "cases" / "vague_requests.json").cases}
CHAT = "vague-chat"


@cache
def read(name: str) -> Said:
    """The reading of a vague request by the rules and the persona."""
    text = VAGUE[name].request or ""
    source = Source(kind="words", texts=(("the request", text),))
    reader = Agent(reader_of(text)).reader()
    assert reader is not None
    said = reader.read(source)
    assert isinstance(said, Said)
    return said


@pytest.mark.parametrize("name", VAGUE)
def test_what_is_meant_is_read_though_the_reader_makes_things_up(name: str) -> None:
    result = score_case(VAGUE[name], solver_named(SolverSpec("supposer"))).result
    assert result.marks["reading"].passed, result.marks["reading"].why


def test_the_rules_alone_read_less_and_never_more() -> None:
    alone = [score_case(case, BuiltIn()).result.marks["reading"] for case in VAGUE.values()]
    assert sum(mark.passed for mark in alone) < len(alone)


@pytest.mark.parametrize("name", VAGUE)
def test_every_supposition_is_an_assumption_with_its_words_and_reason(name: str) -> None:
    said = read(name)
    for fact in supposed(VAGUE[name].request or ""):
        field, reason = fact["field"], fact["reason"]
        if reason is None:
            assert field not in said.assumed
        elif field not in said.words:  # a value that the rules read is no supposition
            assert said.assumed[field] == f"read by the model from {fact['quote']!r}: {reason}"


@pytest.mark.parametrize("name", VAGUE)
def test_what_nothing_suggests_is_dropped_and_told(name: str) -> None:
    said = read(name)
    assert (said.ttft_ms_max, said.usd_per_gpu_hour, said.strategy) == (None, None, None)
    assert said.model is None or "405B" not in said.model
    for fact in invented(VAGUE[name].request or ""):
        lines = [line for line in said.readings if line.startswith("not taken from the model's reading")]
        assert any(str(fact["value"]) in line for line in lines), fact


@pytest.mark.thorough
def test_a_plan_says_what_was_supposed_of_the_request() -> None:
    result = Agent(reader_of(VAGUE[CHAT].request or ""), options=UNHURRIED).run(VAGUE[CHAT].request or "")
    assert result.plan is not None and result.report is not None and result.intent is not None
    assert (result.plan.hardware.nodes, result.plan.hardware.gpus_per_node) == (2, 8)
    assert result.plan.workload.concurrency == 300
    reasons = {assumption.field: assumption.reason for assumption in result.report.assumptions}
    assert reasons["concurrency"].endswith("a few hundred are about three hundred")
    assert "nodes" not in reasons and "two of those" in result.intent.words["nodes"]


def test_a_model_that_nobody_named_is_asked_for_and_not_invented() -> None:
    text = VAGUE["vague-no-model"].request or ""
    assert any(fact["field"] == "model" for fact in invented(text))
    with pytest.raises(InputError, match="no model"):
        Agent(reader_of(text), options=UNHURRIED).run(text)


NAMES = {
    "a name in part": ("model", "Qwen3-235B-A22B", "the big Qwen3 MoE", True),
    "a name in Chinese": ("model", "Qwen3-235B-A22B", "千问最大的 MoE", True),
    "no name": ("model", "Llama-3.1-405B", "a few hundred people", False),
    "an architecture": ("accelerator", "b200-sxm", "those new Blackwell boxes", True),
    "a maker": ("accelerator", "mi300x", "the AMD machines", True),
    "no card": ("accelerator", "h100-sxm", "answers should feel instant", False),
}


@pytest.mark.parametrize(("field", "value", "quote", "is_kept"), NAMES.values(), ids=NAMES)
def test_a_name_is_supposed_only_of_words_that_suggest_it(field: str, value: str, quote: str, is_kept: bool) -> None:
    fact = {"field": field, "value": value, "quote": quote, "reason": "so it is meant"}
    reading = verified(ReadingAnswer.model_validate({"facts": [fact]}), f"Serve it: {quote}.")
    assert (field in reading.fields) is is_kept
    assert any("suggests it" in line for line in reading.dropped) is not is_kept
