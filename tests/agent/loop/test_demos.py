"""Shipped demonstrations replay to the same end, and show what they are meant to show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.loop.replay import replay
from shardwright.agent.loop.transcript import Transcript, read_transcript
from shardwright.tools.validate import validate

FOLDER = Path(__file__).parents[3] / "docs" / "demos"
DEMOS = sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def demo(name: str) -> Transcript:
    return read_transcript(FOLDER / f"{name}.json")


def test_three_engineers_answer_three_requests() -> None:
    assert len(DEMOS) == 9


@pytest.mark.thorough
@pytest.mark.parametrize("name", DEMOS)
def test_a_demonstration_replays_to_the_same_end(name: str) -> None:
    outcome = replay(demo(name))
    assert outcome.same, f"{outcome.differences}: python benchmarks/demos.py makes it anew"
    assert outcome.result.plan is not None
    assert validate(outcome.result.plan.model_dump(mode="json")).valid


@pytest.mark.parametrize("name", [name for name in DEMOS if name.endswith("-good")])
def test_a_good_engineer_has_a_plan_at_once_or_takes_the_better_one_next(name: str) -> None:
    result = demo(name).result
    assert result is not None and result.status == "accepted"
    assert (result.spent.turns, result.spent.corrections) == ((1, 0) if result.origin == "model" else (2, 1))


@pytest.mark.parametrize("name", [name for name in DEMOS if name.endswith("-careless")])
def test_a_careless_engineer_ends_with_a_plan(name: str) -> None:
    result = demo(name).result
    assert result is not None
    assert result.status in ("accepted", "accepted_after_repair")


@pytest.mark.parametrize("name", [name for name in DEMOS if name.endswith("-stubborn")])
def test_a_stubborn_engineer_is_ended_with_a_plan_of_the_tools(name: str) -> None:
    result = demo(name).result
    assert result is not None
    assert result.status in ("no_progress", "corrections_spent")
    assert result.plan_hash is not None


@pytest.mark.parametrize("name", DEMOS)
def test_no_graph_is_sent_twice_and_none_by_the_tools(name: str) -> None:
    sent = Counter(node for kind, value in _messages(demo(name)) if kind == "assistant" for node in _nodes(value))
    assert not [node for node, times in sent.items() if times > 1]
    assert not [node for kind, value in _messages(demo(name)) if kind != "assistant" for node in _nodes(value)]


def _messages(transcript: Transcript) -> Iterator[tuple[str, Any]]:
    """Role and content of each message, the content parsed if it is JSON."""
    for step in transcript.steps:
        for message in step.data.get("messages", ()) if step.kind == "messages" else ():
            yield message["role"], _json(message["content"])
            for call in message.get("tool_calls", ()):
                yield message["role"], _json(call["arguments"])


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _nodes(value: Any) -> Iterator[str]:
    """Every node of a graph inside `value`, as a text."""
    if isinstance(value, dict):
        if "type" in value and "parent" in value and "id" in value:
            yield json.dumps(value, sort_keys=True)
        for inner in value.values():
            yield from _nodes(inner)
    if isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)
