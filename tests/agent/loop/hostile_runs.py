"""Runs of the agent with a hostile model, and checks that must hold whatever the model said.

The returned plan is judged by a fresh process of the command, and against the words of the request, not by what the
loop used to judge it.
"""

from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from shardwright.agent.loop.budget import Limits
from shardwright.agent.loop.context import Passages
from shardwright.agent.loop.loop import Ending, Options, run
from shardwright.agent.loop.outcome import Status
from shardwright.agent.loop.question import OPEN_SETTINGS, Question
from shardwright.agent.loop.report import result_of
from shardwright.agent.loop.transcript import Recorder, Setup
from shardwright.agent.results import PlanResult
from shardwright.agent.toolset import toolset
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.strategy_answer import STRATEGY_ANSWER
from shardwright.tools.plan.document import ServingBlock

from .hostile_model import HostileModel

LIMITS = Limits(corrections=2, tool_calls=8, seconds=30)
# A step begun in time is finished: the repair of the largest document takes no longer. Seconds are CPU time, so that a
# loaded machine fails no run; nothing in it waits.
LONGEST_STEP_S = 20.0
# All calls of an answer are answered, so the last answer may exceed the limit by as many.
MOST_CALLS_AT_ONCE = 10
_VALIDATE = """
import sys
from shardwright.agent.cli.app import run
for path in sys.argv[1:]:
    if run(["validate", path, "--format", "json"]) != 0:
        print(path, file=sys.stderr)
"""


class HostileRun(Struct, frozen=True):
    """The outcome of a run: its plan, the judge's verdict on each proposal, and the checks that failed.

    `seconds` are CPU time.
    """

    name: str
    status: Status
    origin: str
    plan: dict[str, Any]
    verdicts: tuple[str, ...]
    seconds: float
    faults: tuple[str, ...]

    @property
    def share(self) -> str:
        """Where the returned plan came from, in the words of the table."""
        if self.status == "accepted":
            return "accepted as it stood"
        if self.status == "accepted_after_repair":
            return "accepted after repair"
        return "replaced by the built-in's" if self.origin == "builtin" else "ended with the best that stood"


def hostile_run(seed: int, question: Question) -> HostileRun:
    """The run of `seed`, from which the model, the mode and all answers are drawn."""
    rng = random.Random(seed)
    mode = rng.choice(("tools", "tools", "tools", "text", "schema"))
    options = Options(
        limits=LIMITS,
        feedback=rng.choice(("patch", "full", "codes", "bit", "none")),
        repairs=rng.random() < 0.9,
        tools=ALL_TOOLS if mode == "tools" else (),
        answer=STRATEGY_ANSWER if mode == "schema" else None,
        fence=lambda: f"data-{seed:016x}",
    )
    model = HostileModel(rng, question.reference_plan.model_dump(mode="json"))
    recorder = Recorder(Setup(request="", intent=question.intent, model=model.name, fence=options.fence()))
    started = time.process_time()
    with failed_tools() as failures:
        ending = run(question, "", Passages(), model, options, recorder)
    seconds = time.process_time() - started
    result = result_of(question, ending, model.name)
    return HostileRun(
        name=f"seed {seed}, {mode}",
        status=ending.status,
        origin=ending.origin,
        plan={} if result.plan is None else result.plan.model_dump(mode="json"),
        verdicts=tuple(judgement.verdict for judgement in ending.judgements),
        seconds=seconds,
        faults=(*broken_bounds(ending, seconds), *unanswered(question, result), *failures),
    )


@contextmanager
def failed_tools() -> Iterator[list[str]]:
    """Collect the tool failures inside the `with`: a run survives them and only logs them."""
    failures: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            failures.append(logging.Formatter().format(record))

    log, handler = logging.getLogger(toolset.__name__), Kept()
    log.addHandler(handler)
    try:
        yield failures
    finally:
        log.removeHandler(handler)


def broken_bounds(ending: Ending, seconds: float) -> Iterator[str]:
    """Limits that a run exceeded, and statuses that are not in the closed list."""
    spent = ending.spent
    if ending.status not in get_args(Status):
        yield f"status {ending.status!r} is not in the list"
    if seconds > LIMITS.seconds + LONGEST_STEP_S:
        yield f"took {seconds:.0f} s"
    if spent.corrections > LIMITS.corrections or spent.turns > LIMITS.corrections + LIMITS.tool_calls + 2:
        yield f"{spent.turns} turns, {spent.corrections} corrections"
    if spent.tool_calls > LIMITS.tool_calls + MOST_CALLS_AT_ONCE:
        yield f"{spent.tool_calls} tool calls"
    if ending.status == "accepted_after_repair" and ending.standing is None:
        yield "accepted without a plan"


def _decided(serving: ServingBlock | None, asked: ServingBlock | None) -> ServingBlock:
    """The serving settings of a plan without those that the request leaves open."""
    left_open = {name for name in OPEN_SETTINGS if asked is None or getattr(asked, name) is None}
    return (serving or ServingBlock()).model_copy(update=dict.fromkeys(left_open))


def unanswered(question: Question, result: PlanResult) -> Iterator[str]:
    """Names of what was requested and the plan does not keep."""
    plan, intent = result.plan, question.intent
    if plan is None or not result.valid:
        yield "there is no valid plan"
        return
    asked = question.reference_plan
    wanted = {"concurrency": plan.workload.concurrency} if intent.concurrency_open else {}
    same = {
        "model": plan.model == asked.model and plan.model.name == intent.model.name,
        "hardware": plan.hardware == asked.hardware,
        "load": plan.workload == asked.workload.model_copy(update=wanted),
        "input": plan.workload.input_tokens == intent.workload.input_tokens,
        "output": plan.workload.output_tokens == intent.workload.output_tokens,
        "precision": plan.precision == asked.precision,
        "relaxations": set(plan.policy.relaxations) <= set(intent.relaxations),
        "memory utilization": plan.policy.memory_utilization == intent.memory_utilization,
        "serving": _decided(plan.serving, asked.serving) == (asked.serving or ServingBlock()),
    }
    yield from (f"the {name} is not what was asked for" for name, holds in same.items() if not holds)


def refused_afresh(plans: Sequence[dict[str, Any]]) -> list[int]:
    """Indices of the plans that `shardwright validate` refuses, in one fresh process for all of them.

    Raises:
        AssertionError: the process failed or did not judge every plan.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{place}.json" for place in range(len(plans))]
        for path, plan in zip(paths, plans, strict=True):
            path.write_text(json.dumps(plan), encoding="utf-8")
        command = [sys.executable, "-c", _VALIDATE, *map(str, paths)]
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count('"violations":') == len(plans), "not every plan was judged"
    return [int(Path(line).stem) for line in process.stderr.splitlines()]
