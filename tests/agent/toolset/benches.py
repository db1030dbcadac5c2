"""A bench with a few documents, and tool calls on it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from shardwright.agent.loop.feedback import Level
from shardwright.agent.loop.question import Question
from shardwright.agent.model.messages import ToolCall
from shardwright.agent.stated.strategy import read_strategy
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.tool import Answer, Bench
from shardwright.agent.toolset.toolset import Toolset
from shardwright.tools.language.said import StatedDegrees, StatedStrategy

from ..loop.questions import SMALL, desk, reference_document

GOOD, ILLEGAL, FAULTY = "reference", "d1", "d2"


def bench(request: str = SMALL, level: Level = "patch", *, repairs: bool = True) -> Bench:
    """A bench with a good document, one of an illegal strategy and one with a local fault, in this order."""
    new_bench = Bench(desk(request), level, repairs)
    assert new_bench.desk.put(reference_document(request)) == GOOD
    illegal = StatedStrategy(dp=1, prefill=StatedDegrees(tp=3))
    assert new_bench.desk.put(new_bench.desk.question.pinned(laid_out(new_bench.desk.question, illegal))) == ILLEGAL
    faulty = reference_document(request)
    faulty["strategy"]["gpu_count"] += 1
    assert new_bench.desk.put(faulty) == FAULTY
    return new_bench


def laid_out(question: Question, stated: StatedStrategy) -> dict[str, Any]:
    """The document that lays out a strategy, legal or not."""
    return question.document_of(read_strategy(stated, question.request.architecture, question.request.hardware))


@cache
def still_bench() -> Bench:
    """A shared bench for tools that change nothing."""
    return bench()


def call(tool: str, arguments: dict[str, Any] | str, call_id: str = "c") -> ToolCall:
    """A tool call as a model writes it."""
    return ToolCall(id=call_id, name=tool, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))


def use(at: Bench, tool: str, **arguments: Any) -> Answer:
    """The answer of `tool`; its text is checked to be JSON."""
    answer = Toolset(at, ALL_TOOLS).answer(call(tool, arguments))
    json.loads(answer.text)
    return answer


def body(answer: Answer) -> dict[str, Any]:
    """The answer as the model reads it."""
    return json.loads(answer.text)


def refused(answer: Answer, *words: str) -> None:
    """Assert that the answer is a refusal to try again, with `words` in its message."""
    assert answer.trouble == "try_again"
    assert all(word in body(answer)["message"] for word in words), body(answer)["message"]
