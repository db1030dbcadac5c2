"""Questions that tests of the loop share, each built once a process, and documents that answer them."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from shardwright.agent.loop.desk import Desk
from shardwright.agent.loop.judge import Judgement, judge_document
from shardwright.agent.loop.question import Question, ask
from shardwright.agent.stated.request import intent_of
from shardwright.tools.language.said import StatedStrategy

SMALL = "Serve Qwen3-8B on 2 RTX 4090, 1k in / 100 out, lowest latency, one request at a time"
LONG = "Serve Llama-3.1-8B on 4 H100, 32k in / 256 out, lowest latency, one request at a time"
# Long prompts and short answers: few requests are in flight, and simulating them is quick.
OPEN = "Serve Llama-3.1-8B on 4 H100, 8k in / 64 out, best throughput"
STATED = "Serve Llama-3.1-8B on 2 H100 with DP2, 2k in / 256 out, lowest latency"
IMPOSSIBLE = "Serve Llama-3.1-8B on 2 H100 with TP7, 2k in / 256 out, lowest latency"


@cache
def question(request: str) -> Question:
    """The question of `request`, without hints on what a relaxation would gain, since each hint takes a search."""
    asked = ask(intent_of(request), with_hint=False)
    assert isinstance(asked, Question)
    return asked


def desk(request: str = SMALL) -> Desk:
    """An empty desk for `request`."""
    return Desk(question(request))


def judge_strategy(
    at_desk: Desk, stated: StatedStrategy, *, concurrency: int | None = None, repairs: bool = True
) -> Judgement:
    """The judgement of a strategy proposed as an object."""
    proposed: dict[str, Any] = {"strategy": stated.model_dump(exclude_none=True)}
    if concurrency is not None:
        proposed["workload"] = {"concurrency": concurrency}
    return judge_document(at_desk, proposed, repairs=repairs)


def reference_document(request: str = SMALL) -> dict[str, Any]:
    """A valid document that answers `request`; the caller may change it."""
    return copy.deepcopy(question(request).reference_plan.model_dump(mode="json"))


def node(document: dict[str, Any], node_id: str) -> dict[str, Any]:
    """The node with this id."""
    return next(listed for listed in document["nodes"] if listed["id"] == node_id)
