"""No prompt is empty, and an answer in the form that a prompt shows is read and judged."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

import shardwright.prompts
from shardwright.agent.loop.judge import judge_text
from shardwright.prompts.render import render

from .questions import desk

PROMPTS = sorted(path.name for path in resources.files(shardwright.prompts).iterdir() if path.name.endswith(".md"))


@pytest.mark.parametrize("name", PROMPTS)
def test_no_prompt_is_empty(name: str) -> None:
    assert (resources.files(shardwright.prompts) / name).read_text(encoding="utf-8").strip()


def test_the_answer_that_a_model_without_tools_is_shown_is_read_field_by_field() -> None:
    shown = re.search(r"^\{.*\}$", render("text_mode"), re.MULTILINE)
    assert shown is not None
    answer = json.loads(shown[0])
    for phase in ("prefill", "decode"):
        answer["strategy"][phase]["tp"] = 2
    judged = judge_text(desk(), json.dumps(answer))
    assert judged.verdict == "valid" and judged.standing is not None and not judged.strategy_faults
    assert judged.standing.plan.strategy.prefill.tp == judged.standing.plan.strategy.decode.tp == 2
    assert judged.rationale == "…"
