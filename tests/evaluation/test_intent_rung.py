"""The rung `intent` marks what the person said, not what an engine does by itself."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.marks import Mark, Solution, Subject
from shardwright.agent.evaluation.posed import PosedCase
from shardwright.agent.evaluation.rungs.ladder import ANSWER_RUNGS
from shardwright.agent.stated.request import intent_of

RUNG = next(rung for rung in ANSWER_RUNGS if rung.name == "intent")
ASKED = "Serve DeepSeek-R1 on 8 H200 with {engine}, 1k in / 1k out, 64 users, best throughput{more}"


def mark(request: str, **wanted: Any) -> Mark:
    case = Case(id="a", family="a", request=request, intent=wanted)
    marked = RUNG.mark(PosedCase(case, intent_of(request)), Solution("plan", Subject(False)))
    assert marked is not None
    return marked


@pytest.mark.parametrize("engine", ["vLLM", "SGLang", "TensorRT-LLM"])
def test_what_the_engine_does_by_itself_is_no_reading_of_the_words(engine: str) -> None:
    request = ASKED.format(engine=engine, more="")
    assert intent_of(request).relaxations != ()
    assert mark(request, relaxations=[]).passed
    assert not mark(request, relaxations=["attention_dp"]).passed


@pytest.mark.parametrize("engine", ["vLLM", "SGLang", "TensorRT-LLM"])
def test_what_the_person_allows_is_marked_though_the_engine_does_it_too(engine: str) -> None:
    request = ASKED.format(engine=engine, more=", tp_in_expert and attention_dp are allowed")
    assert mark(request, relaxations=["attention_dp", "tp_in_expert"]).passed
    missed = mark(request, relaxations=[])
    assert not missed.passed and "attention_dp" in missed.why
