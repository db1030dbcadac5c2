"""A request's demands on the layout hold wherever a plan is made: plan, search, fix, chat, a model's run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import shardwright
from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.scripted import ScriptedModel, says
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import ModelBlock, PolicyBlock

SMALL = "Qwen2.5-7B on 2 nodes of 4 H100, 512 in / 64 out, 4 concurrent"
DEMANDS = (
    "no tensor parallelism",
    "TP at most 2",
    "no pipeline parallelism",
    "exactly 3 replicas",
    "one node must stay free",
    "keep 3 GPUs free for other jobs",
    "leave 20 GB free on every GPU",
    "TP must stay inside a node",
)


def planned(words: str) -> dict[str, Any]:
    result = shardwright.plan(f"{SMALL}, {words}")
    assert result.plan is not None
    return result.plan.model_dump(mode="json")


def searched(words: str) -> dict[str, Any]:
    """The plan of the best candidate of a search, with the hardware and the demands of the request."""
    like = shardwright.plan(f"{SMALL}, {words}").plan
    best = shardwright.search(f"{SMALL}, {words}", top=1).candidates[0]
    assert like is not None
    build = BuildRequest(
        model=ModelBlock.model_validate(like.model.model_dump()),
        hardware=like.hardware,
        workload=like.workload.model_copy(update={"concurrency": best.concurrency}),
        precision=like.precision,
        strategy=best.strategy,
        policy=PolicyBlock.model_validate(like.policy.model_dump()),
        serving=like.serving,
    )
    return build_plan(build).model_dump(mode="json")


def fixed(words: str) -> dict[str, Any]:
    """A plan made without the demand, repaired under it."""
    before = shardwright.plan(SMALL).plan
    assert before is not None
    document = before.model_dump(mode="json")
    document["policy"]["constraints"] = planned(words)["policy"]["constraints"]
    mended = shardwright.autofix(document)
    assert mended.plan is not None
    return mended.plan.model_dump(mode="json")


def chatted(words: str) -> dict[str, Any]:
    """The plan after a follow-up on another subject."""
    chat = Chat()
    chat.say(f"{SMALL}, {words}")
    result = chat.say("now with 6 users").result
    assert result is not None and result.plan is not None
    return result.plan.model_dump(mode="json")


def proposed(words: str) -> dict[str, Any]:
    """The plan of a run in which a model proposes a layout that the demand may rule out."""
    wide = says('{"strategy": {"dp": 1, "prefill": {"tp": 4, "pp": 2}, "decode": {"tp": 4, "pp": 2}}}')
    model = ScriptedModel([wide] * 12)
    agent = Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0))
    result = agent.run(f"{SMALL}, {words}")
    assert result.plan is not None and model.requests
    return result.plan.model_dump(mode="json")


@pytest.mark.thorough
@pytest.mark.parametrize("way", [planned, searched, fixed, chatted, proposed], ids=lambda way: way.__name__)
@pytest.mark.parametrize("words", DEMANDS)
def test_a_demand_holds_on_every_way_to_a_plan(words: str, way: Callable[[str], dict[str, Any]]) -> None:
    document = way(words)
    assert document["policy"]["constraints"]
    assert [violation for violation in shardwright.validate(document).violations if violation.severity == "error"] == []
