"""Runs of scripted models of three kinds, and what came of them beside the built-in plan.

    python benchmarks/model_runs.py

A careful one takes what is best, sloppy ones slip as models do and then follow the feedback to the letter, one tries to
beat the reference. For each run: turns, corrections, tokens (estimated), whose plan is returned, and how the returned
plan's figure compares with the built-in one's. The exit status is 1 where one is worse, or a slip took more than one
further turn.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from shardwright.agent.evaluation.solvers import obedient, opener
from shardwright.agent.evaluation.solvers.speaker import Speaker, submits
from shardwright.agent.loop.against import REFERENCE
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.planner import Finished, ModelPlanner
from shardwright.agent.loop.question import Question, ask
from shardwright.agent.model.client import ModelClient
from shardwright.agent.stated.request import intent_of

REQUESTS = {
    "dense": "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency",
    "MoE": "Serve DeepSeek-V3 on 16 H200, 4k in / 1k out, 64 concurrent requests, best throughput",
    "open load": ("Serve Llama-3.1-70B on 40 H100, 4k in / 512 out, best throughput, TTFT under 1 s, TPOT under 30 ms"),
}


class Run(Struct, frozen=True):
    """One run: what was asked, who proposed, and how it ended."""

    request: str
    persona: str
    question: Question
    finished: Finished

    @property
    def is_good(self) -> bool:
        """Whether the plan is no worse than the built-in one, and a slip took one further turn at most."""
        result, spent = self.finished.result, self.finished.ending.spent
        assert result.plan is not None
        assert result.estimate is not None
        return not self.question.against(result.plan, result.estimate).is_behind and spent.turns <= 2

    @property
    def row(self) -> str:
        """Its line of the table."""
        ending, result = self.finished.ending, self.finished.result
        assert result.plan is not None
        assert result.estimate is not None
        beside = self.question.against(result.plan, result.estimate)
        return (
            f"{self.request:10}{self.persona:24}{ending.status:24}{ending.origin:16}{ending.spent.turns:5}"
            f"{ending.spent.corrections:6}{ending.spent.input_tokens:10,}  {beside.words}"
        )


def personas(question: Question) -> dict[str, ModelClient]:
    """Who proposes, by name."""
    careful = Speaker("careful", lambda request: submits(request, "The search is exact.", handle=REFERENCE))
    sloppy = {slip: obedient.speaker_of(question, slip) for slip in obedient.SLIPS}
    return {"careful": careful, **sloppy, "opener": opener.speaker_of(question.request.workload.objective)}


def runs() -> list[Run]:
    """Every persona on every request."""
    results: list[Run] = []
    for name, text in REQUESTS.items():
        question = ask(intent_of(text))
        if not isinstance(question, Question):
            raise SystemExit(f"{text}: no plan exists")
        for persona, client in personas(question).items():
            planner = ModelPlanner(client, AgentOptions(mode="tools", reader="rules"))
            results.append(Run(name, persona, question, planner.run_question(question, text)))
    return results


def main() -> int:
    """Print the table."""
    titles = f"{'request':10}{'persona':24}{'how it ended':24}{'plan from':16}{'turns':>5}{'corr.':>6}{'tokens in':>10}"
    print(f"{titles}  the returned plan against the built-in one")
    results = runs()
    for run in results:
        print(run.row)
    return 0 if all(run.is_good for run in results) else 1


if __name__ == "__main__":
    sys.exit(main())
