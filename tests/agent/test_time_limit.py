"""A search ends with its time limit, answers with the best so far, and says what it left out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import shardwright
from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.cli.app import run
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.model.scripted import ScriptedModel, calls, says
from shardwright.agent.report.plan import render_plan
from shardwright.agent.sweep.document import read_sweep
from shardwright.agent.sweep.run import Running, run_sweep, sweep_journal
from shardwright.tools.errors import InputError
from shardwright.tools.rules.examples import base_plan

ASKED = "Llama-3.1-8B on 2 H100, 8k in / 64 out, best throughput"
KINDS = [
    {"name": "chat", "weight": 3, "input_tokens": 1024, "output_tokens": 128},
    {"name": "documents", "weight": 1, "input_tokens": 6000, "output_tokens": 256},
]
LOAD = {"name": "w", "input_tokens": 9, "output_tokens": 9}
SWEEP = json.dumps({"models": ["Llama-3.1-8B"], "hardware": ["1x2:h100-sxm"], "workloads": [LOAD]})
TOO_MUCH = "Llama-3.1-405B on 2 H100, 2k in / 256 out"


def left_out_of(result: shardwright.PlanResult | None) -> tuple[str, ...]:
    assert result is not None and result.report is not None
    return result.report.left_out


def by_model(limit_s: float, seconds: float = 300.0) -> tuple[str, ...]:
    options = AgentOptions(reader="rules", knowledge_tokens=0, time_limit_s=limit_s, limits=Limits(seconds=seconds))
    return left_out_of(Agent(ScriptedModel([says("{}")] * 9), options=options).run(ASKED))


def by_chat(limit_s: float) -> tuple[str, ...]:
    chat = Chat(time_limit_s=limit_s)
    answer = chat.say(ASKED)
    assert ("The time limit was over" in answer.text) == (limit_s == 0)
    return left_out_of(chat.result)


def by_chat_with_a_model(limit_s: float) -> tuple[str, ...]:
    model = ScriptedModel([calls(("replan", {"words": ASKED})), says("no"), *[says("{}")] * 9])
    chat = Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0, time_limit_s=limit_s)).chat()
    chat.say("please plan: " + ASKED)
    return left_out_of(chat.result)


def by_sweep(limit_s: float) -> tuple[str, ...]:
    row = run_sweep(read_sweep(SWEEP, "sweep"), Running(jobs=1, time_limit_s=limit_s)).rows[0]
    assert row.feasible
    return () if row.left_out is None else (row.left_out,)


LIMITED: dict[str, Callable[[float], tuple[str, ...]]] = {
    "plan": lambda limit_s: left_out_of(shardwright.plan(ASKED, time_limit_s=limit_s)),
    "search": lambda limit_s: shardwright.search(ASKED, time_limit_s=limit_s).left_out,
    "plan_mix": lambda limit_s: shardwright.plan_mix(ASKED, workloads=KINDS, time_limit_s=limit_s).left_out,
    "a model's run": by_model,
    "chat": by_chat,
    "chat with a model": by_chat_with_a_model,
    "sweep": by_sweep,
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("left_out", LIMITED.values(), ids=LIMITED.keys())
def test_what_was_not_looked_at_is_told(left_out: Callable[[float], tuple[str, ...]]) -> None:
    assert left_out(0.0)
    assert left_out(3600.0) == ()


def test_the_first_search_ends_with_the_time_of_the_run_too() -> None:
    assert by_model(3600.0, seconds=1e-9)


@pytest.mark.parametrize("limit_s", [-1.0, float("nan"), "3", None])
def test_a_limit_that_is_no_time_is_refused(limit_s: float) -> None:
    with pytest.raises(InputError, match="time_limit_s"):
        shardwright.plan(ASKED, time_limit_s=limit_s)


def test_a_model_is_told_what_its_search_did_not_look_at() -> None:
    model = ScriptedModel([calls(("search_strategies", {})), *[says("{}")] * 9])
    Agent(model, options=AgentOptions(reader="rules", knowledge_tokens=0, time_limit_s=0.0)).run(ASKED)
    assert "not_looked_at_for_want_of_time" in model.requests[1].messages[-1].content


def test_no_search_beside_the_answer_begins_after_the_limit() -> None:
    refused = shardwright.search(TOO_MUCH, time_limit_s=0.0, sensitivity=True)
    assert refused.infeasible is not None and refused.infeasible.needs.gpus is None
    assert any("clusters" in line for line in refused.left_out)


def test_a_case_that_was_cut_short_is_not_kept_for_the_next_run(tmp_path: Path) -> None:
    sweep, path = read_sweep(SWEEP, "sweep"), tmp_path / "table.csv.journal"
    for limit_s in (0.0, 3600.0):
        with sweep_journal(sweep, path) as journal:
            result = run_sweep(sweep, Running(jobs=1, time_limit_s=limit_s), journal=journal)
        assert result.kept == 0
    with sweep_journal(sweep, path) as journal:
        assert run_sweep(sweep, Running(jobs=1), journal=journal).kept == 1


def files(folder: Path) -> dict[str, str]:
    (folder / "kinds.json").write_text(json.dumps(KINDS), encoding="utf-8")
    (folder / "sweep.json").write_text(SWEEP, encoding="utf-8")
    return {"KINDS": str(folder / "kinds.json"), "SWEEP": str(folder / "sweep.json")}


COMMANDS = {
    "plan": ["plan", ASKED],
    "plan --mix": ["plan", ASKED, "--mix", "KINDS"],
    "search": ["search", ASKED],
    "search --mix": ["search", ASKED, "--mix", "KINDS"],
    "sweep": ["sweep", "SWEEP", "--jobs", "1"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_first_lines_say_that_the_limit_was_over(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = files(tmp_path)
    assert run([*(places.get(word, word) for word in command), "--time-limit", "1e-9"]) == 0
    assert "(--time-limit)" in capsys.readouterr().out[:1000]


def test_a_sizing_that_is_cut_short_says_that_it_is_and_claims_nothing_of_what_it_did_not_look_at() -> None:
    words = "Llama-3.1-8B, 40 requests per second, 2k in / 256 out, TPOT under 20 ms"
    cut = shardwright.plan(f"{words}, as few H100 as needed", time_limit_s=0)
    for result in (cut, shardwright.plan(f"{words}, on 1 H100", time_limit_s=0)):
        report = " ".join(render_plan(result, width=100).split())
        assert "The time limit was over" in report
        assert "is enough is not known: the time was over" in report or "of those looked at before" in report
        assert not re.search(r"no number of h100-sxm up to \d+ (?:is|that)", report)


def test_a_repair_without_a_plan_ends_in_time_and_says_what_was_not_looked_at() -> None:
    document = base_plan("dense-tp2")
    document["workload"]["concurrency"] = 20_000
    started = time.monotonic()
    fixed = shardwright.autofix(document, time_limit_s=0.5)
    assert time.monotonic() - started < 10.0 and not fixed.valid
    assert fixed.infeasible is not None and fixed.left_out
    assert fixed.infeasible.needs is not None and "in the time" in fixed.infeasible.needs.note
