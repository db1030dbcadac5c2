"""The time limit of a run covers its tools: whatever a model sends, a step ends in time, whole or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from msgspec import field
from msgspec.structs import replace

from shardwright.agent.agent import Agent
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.replay import replay
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import Reply
from shardwright.agent.model.scripted import ScriptedModel, calls, says
from shardwright.agent.model.settings import EndpointFlags, read_settings
from shardwright.tools.autofix.autofix import read_text_anyhow
from shardwright.tools.checkpoint import stoppable

from ..model.fault_server import FaultServer, answer, call, sends
from .questions import SMALL, question, reference_document
from .scripts import TOOLS, recorded

pytestmark = pytest.mark.thorough


class Counted(Deadline, frozen=True):
    """A deadline that has passed after being checked a set number of times."""

    most: int = 0
    asked: Iterator[int] = field(default_factory=count)

    def is_over(self) -> bool:
        """Whether it was checked more often than allowed."""
        return next(self.asked) >= self.most


def _broken() -> dict[str, Any]:
    document = reference_document()
    document["nodes"][4]["devices"] = ["n7.g7"]
    document["nodes"].append({"id": "x{i}", "type": "ShardNode", "parent": "r0", "repeat": 300})
    return document


CUT: dict[str, Callable[[], Reply]] = {
    "submitted": lambda: calls(("submit_dag", {"document": _broken()})),
    "several": lambda: calls(
        ("submit_dag", {"only_try": True, "strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}),
        ("search_strategies", {}),
        ("submit_dag", {"document": _broken()}),
        ("submit_dag", {"only_try": True, "handle": "d1"}),
    ),
    "in words": lambda: says(json.dumps(_broken())),
}


@pytest.mark.parametrize("reply", CUT.values(), ids=CUT.keys())
def test_a_run_that_is_cut_anywhere_ends_with_a_valid_plan_and_replays_to_the_same_end(
    reply: Callable[[], Reply],
) -> None:
    cuts = 0
    for most in (3, 8, 20, 60, 150, 400, 1000):
        deadline = Counted(time.monotonic() + 3600, most=most)
        whole = recorded([reply()], replace(TOOLS, deadline=deadline))
        assert whole.result is not None
        assert whole.result.plan_hash is not None
        stops = [step.data for step in whole.steps if step.kind == "stopped"]
        cuts += any(stop.get("is_within", False) for stop in stops)
        if whole.result.status == "time_spent":
            assert len(stops) == 1
        assert replay(whole).differences == ()
    assert cuts >= 3


def test_a_cut_is_said_where_the_plan_is_explained() -> None:
    agent = Agent(ScriptedModel([CUT["submitted"]()]), options=AgentOptions(reader="rules", knowledge_tokens=0))
    finished = agent.run_question(question(SMALL), SMALL, Counted(time.monotonic() + 3600, most=20))
    assert finished.ending.status == "time_spent"
    assert finished.result.valid
    report = finished.result.report
    assert report is not None
    assert "the time allowed was spent, which cut off submit_dag" in report.explanation


def _edges(number: int) -> dict[str, Any]:
    """A document with few letters and many edges."""
    document = reference_document()
    node = {"id": "x{i}", "type": "ShardNode", "parent": "r0", "devices": ["n0.g0"], "repeat": number}
    document["nodes"].append(node)
    document["edges"].append({"source": "x{i}", "target": "x{i+1}", "type": "data", "repeat": number})
    return document


@pytest.mark.parametrize("size", [18_000, 900_000])
def test_a_document_of_a_few_letters_does_not_outlive_the_run(size: int) -> None:
    document = json.dumps({"document": _edges(size)})
    with FaultServer(sends(answer({"tool_calls": [call("submit_dag", document)]}, "tool_calls"))) as server:
        settings = read_settings(EndpointFlags(model="m"), {"OPENAI_BASE_URL": server.url})
        agent = Agent(EndpointClient(settings), options=AgentOptions(reader="rules", knowledge_tokens=0))
        asked = question(SMALL)
        # CPU time, so that a loaded machine fails no run; until the run ends no more of it than wall time can pass.
        started = time.process_time()
        finished = agent.run_question(asked, SMALL, Deadline.after(1.0))
        assert time.process_time() - started < 1.0 + 2.0
    assert finished.result.valid


HELD_UP: dict[str, str] = {
    "YAML": "```yaml\nstrategy: {tp: 2}\nnodes:\n" + "a: 1\n" * 20_000 + "```",
    "a list of numbers": json.dumps({"strategy": {"dp": 1}, "nodes": [1] * 20_000}),
    "a list of objects": json.dumps({"strategy": {"dp": 1}, "nodes": [{"a": 1}] * 20_000}),
}


@pytest.mark.parametrize("text", HELD_UP.values(), ids=HELD_UP.keys())
def test_reading_a_long_answer_passes_checkpoints_all_along(text: str) -> None:
    looks = count()
    with stoppable(lambda: next(looks) < 0):
        read_text_anyhow(text)
    assert next(looks) > 50
