"""Lengths in words or characters are converted to tokens, and reported as an assumption."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.intent.complete import complete
from shardwright.agent.report.request import workload_text
from shardwright.tools.language.request import read_request

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "written_lengths.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_a_length_of_writing_is_a_length_in_tokens_and_assumed(case: dict[str, Any]) -> None:
    said = read_request(case["text"])
    assert (said.input_tokens, said.output_tokens) == (case["input_tokens"], case["output_tokens"])
    assumed = {name: reason for name, reason in said.assumed.items() if name.endswith("_tokens")}
    assert sorted(assumed) == case["assumed"] and all(
        re.search(r"read as [\d,]+ tokens: (one|four) for ", reason) for reason in assumed.values()
    )
    assert not said.unread


def test_the_line_of_the_load_marks_it() -> None:
    intent = complete(read_request("Qwen3-8B on 1 H100, 输入3000字, 200 tokens out, 4 users"))
    assert workload_text(intent.workload, intent.assumptions).startswith("3,000 tokens in (assumed), 200 out, 4 req")


@pytest.mark.parametrize("words", ["in 2 words: 1k tokens in", "1k tokens in, 800 字节", "on 4 H100, word for word"])
def test_what_is_no_length_is_left_alone(words: str) -> None:
    said = read_request(f"Qwen3-8B, {words}")
    assert not said.assumed and not any(" tokens: " in reading for reading in said.readings)
