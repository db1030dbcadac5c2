"""Counts the tokens that a model is given and takes: the opening by its parts, and a whole good run.

    python benchmarks/agent_tokens.py

Tokens are the project's estimate (`knowledge.tokens`), without any model's vocabulary. A good run is one in which the
model submits a right strategy at once; the DAG of its plan is counted beside it, as it would be were it sent.
"""

from __future__ import annotations

import json

from msgspec import Struct

from shardwright.agent.loop.against import REFERENCE
from shardwright.agent.loop.agent_options import KNOWLEDGE_TOKENS
from shardwright.agent.loop.context import Passages, facts, opening, reference, understood
from shardwright.agent.loop.loop import Options, run
from shardwright.agent.loop.passages import passages_for
from shardwright.agent.loop.question import Question, ask
from shardwright.agent.loop.transcript import Recorder, Setup
from shardwright.agent.model.scripted import ScriptedModel, calls
from shardwright.agent.stated.request import intent_of
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.knowledge.tokens import estimate_tokens
from shardwright.prompts.render import render
from shardwright.tests.agent.loop.counted import Counted, message_tokens, tool_tokens

REQUESTS = {
    "dense": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "MoE": "Serve DeepSeek-V3 on 16 H200, 4k in / 1k out, 64 concurrent requests, best throughput",
    "64 GPUs": "Serve Llama-3.1-405B on 64 H100, 2k in / 512 out, 256 concurrent requests, best throughput",
}
FENCE = "data-0000000000000000"


class Counts(Struct, frozen=True):
    """Tokens of one request, part by part."""

    system: int
    core: int
    selected: int
    facts: int
    reference: int
    opening: int
    tools: int
    run_in: int
    run_out: int
    turns: int
    dag: int


def count(text: str) -> Counts:
    """The tokens of the request `text`.

    Raises:
        SystemExit: it has no plan, or the good run did not end with its first proposal.
    """
    question = ask(intent_of(text))
    if not isinstance(question, Question):
        raise SystemExit(f"{text}: no plan exists")
    passages = passages_for(question.intent, KNOWLEDGE_TOKENS)
    start = opening(question, text, passages, with_tools=True, fence=FENCE)
    spent = good_run(question, text, passages)
    return Counts(
        system=estimate_tokens(render("system")),
        core=estimate_tokens(passages.core),
        selected=estimate_tokens(passages.selected),
        facts=estimate_tokens(json.dumps([facts(question), understood(question)])),
        reference=estimate_tokens(json.dumps(reference(question))),
        opening=sum(map(message_tokens, start.messages)),
        tools=tool_tokens(tuple(tool.spec for tool in ALL_TOOLS)),
        run_in=spent[0],
        run_out=spent[1],
        turns=spent[2],
        dag=estimate_tokens(json.dumps(question.reference_plan.model_dump(mode="json"))),
    )


def good_run(question: Question, text: str, passages: Passages) -> tuple[int, int, int]:
    """Tokens in, tokens out and turns of a run in which the model takes the reference."""
    step = calls(("submit_dag", {"handle": REFERENCE, "rationale": "It is the fastest split."}))
    options = Options(tools=ALL_TOOLS, fence=lambda: FENCE)
    recorder = Recorder(Setup(request=text, intent=question.intent, model="scripted", fence=FENCE))
    ending = run(question, text, passages, Counted(ScriptedModel([step])), options, recorder)
    if ending.status != "accepted":
        raise SystemExit(f"{text}: {ending.status}")
    return ending.spent.input_tokens, ending.spent.output_tokens, ending.spent.turns


def main() -> None:
    """Print the table."""
    counted = {name: count(text) for name, text in REQUESTS.items()}
    rows = {
        "system prompt": "system",
        "knowledge, core": "core",
        "knowledge, for the request": "selected",
        "facts and the request as read": "facts",
        "the reference": "reference",
        "opening in all": "opening",
        "tools": "tools",
        "a good run, in": "run_in",
        "a good run, out": "run_out",
        "a good run, turns": "turns",
        "the DAG, which is never sent": "dag",
    }
    print(f"{'tokens (estimated)':32}{''.join(f'{name:>10}' for name in counted)}")
    for title, field in rows.items():
        print(f"{title:32}{''.join(f'{getattr(counts, field):10,}' for counts in counted.values())}")


if __name__ == "__main__":
    main()
