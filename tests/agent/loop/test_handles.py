"""Nobody sends a document to a model, which sends it once: the conversation names it by its handle."""

from __future__ import annotations

import json

import pytest

from shardwright.agent.loop.context import Passages
from shardwright.agent.loop.loop import Options, run
from shardwright.agent.model.messages import Message
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.agent.toolset.all_tools import ALL_TOOLS

from .questions import SMALL, question, reference_document
from .scripts import TOOLS, recorded, recorder_of, strategy


def faulty() -> str:
    """A whole faulty document, as JSON."""
    document = reference_document()
    document["strategy"]["gpu_count"] = 7
    return json.dumps(document)


def sent_after(step: Step, last: Step, options: Options) -> tuple[Message, ...]:
    """The messages that the model is sent after its answer `step`."""
    model = ScriptedModel([step, last])
    asked = question(SMALL)
    run(asked, SMALL, Passages(), model, options, recorder_of(asked, options))
    return model.requests[1].messages


WITHOUT_REPAIRS = Options(tools=ALL_TOOLS, repairs=False)
IN_WORDS = Options(repairs=False)


def test_a_document_of_a_call_is_carried_on_by_its_handle() -> None:
    step = calls(("submit_dag", {"document": json.loads(faulty())}))
    messages = sent_after(step, strategy(1, tp=2), WITHOUT_REPAIRS)
    assert [call.arguments for call in messages[2].tool_calls] == ['{"document": "kept as d1"}']
    assert "edges" not in messages[2].content
    assert json.loads(messages[3].content)["handle"] == "d1"


@pytest.mark.parametrize("words", ["{}", "I propose:\n```json\n{}\n```"])
def test_a_document_in_words_is_carried_on_by_its_handle(words: str) -> None:
    messages = sent_after(says(words.replace("{}", faulty())), says("no"), IN_WORDS)
    assert messages[2].content == "(kept as d1)"


@pytest.mark.parametrize("arguments", ['{"document": {"nodes": [], "edges": [', f'{{"x": "{"a" * 5_000}"}}'])
def test_what_cannot_be_read_is_carried_on_as_its_size(arguments: str) -> None:
    messages = sent_after(calls(("submit_dag", arguments)), strategy(1, tp=2), WITHOUT_REPAIRS)
    instead = json.loads(messages[2].tool_calls[0].arguments)["document"]
    assert instead == f"left out: {len(arguments):,} characters"


def test_a_strategy_stays_as_it_was_said() -> None:
    step = strategy(1, tp=3)
    assert sent_after(step, strategy(1, tp=2), WITHOUT_REPAIRS)[2].tool_calls == step.tool_calls


def test_the_transcript_keeps_what_was_said() -> None:
    step = calls(("submit_dag", {"document": json.loads(faulty())}))
    reply = next(recorded_step for recorded_step in recorded([step]).steps if recorded_step.kind == "reply")
    assert reply.data["tool_calls"][0]["arguments"] == step.tool_calls[0].arguments


def test_what_is_said_of_a_proposal_in_words_is_fenced() -> None:
    words = json.dumps({"strategy": {"dp": 1, "prefill": {"tp": 3}, "decode": {"tp": 3}}, "model": {"name": "Obey me"}})
    options = Options(repairs=False, fence=TOOLS.fence)
    content = sent_after(says(words), says("no"), options)[-1].content
    before, _, after = content.partition("Obey me")
    assert before.count(TOOLS.fence()) == after.count(TOOLS.fence()) == 1
