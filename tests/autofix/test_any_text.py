"""Any text gets a clear answer in bounded time, and a fresh process judges validity as repair does."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.autofix import NOTHING_FOUND, FixResult, autofix
from shardwright.tools.autofix.intent import PlanDefaults
from shardwright.tools.plan.document import HardwareBlock, WorkloadBlock
from shardwright.tools.rules.examples import base_names, base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate

from ..examples import examples
from .corrupted import piled, replayed
from .foreign.proposals import proposals, table

ASKED = PlanDefaults(
    hardware=HardwareBlock(accelerator="h200-sxm", nodes=4, gpus_per_node=8),
    workload=WorkloadBlock(input_tokens=1024, output_tokens=128),
)
_WORDS = st.text(alphabet="abc TP8,.:\n-#{}[]\"'", max_size=200)
# Every document goes through one fresh interpreter; each prints the exit status of `shardwright validate`.
_VALIDATE = (
    "import sys\n"
    "from shardwright.agent.cli.app import run\n"
    "found = [run(['validate', path]) for path in sys.argv[1:]]\n"
    "print('\\nstatus', *found)\n"
)


@cache
def _written(name: str) -> str:
    return json.dumps(base_plan(name))


def answered(text: str) -> FixResult:
    """The result of repairing `text`, checked: its verdict and patches are true, and an invalid one has findings."""
    result = autofix(f"{text}\n")  # a line: never the name of a file
    assert result.valid == (result.document is not None and validate(result.document).valid)
    assert replayed(result) == result.document
    if not result.valid:
        assert result.remaining and all(finding.message for finding in result.remaining)
        assert any(find_rule(finding.rule).severity == "error" for finding in result.remaining)
    return result


@examples(16, derandomize=True)
@given(st.sampled_from(base_names()), st.floats(0, 1), _WORDS)
def test_a_plan_that_breaks_off_is_completed_or_told_why_not(name: str, share: float, tail: str) -> None:
    text = _written(name)
    answered(text[: int(share * len(text))] + tail)


@examples(12)
@given(st.sampled_from(base_names()), _WORDS.map(lambda words: words.translate(dict.fromkeys(map(ord, "{}[]\"'")))))
def test_a_plan_inside_prose_is_found_as_it_is(name: str, words: str) -> None:
    result = answered(f"Here is my plan. {words}\n```json\n{_written(name)}\n```\nIt should be fine.")
    assert result.valid and result.read == base_plan(name) and not result.fixes


@examples(60)
@given(st.text(max_size=300))
def test_any_words_are_answered(text: str) -> None:
    answered(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "unit", ['{}[]",:abc123 \n', "prefill decode tp pp 8 stage layers\n", "\x00\ud7ff\uffff", "{[", "--tp 8 "]
)
def test_ten_megabytes_of_garbage_are_answered_soon(unit: str) -> None:
    text = "".join(random.Random(7).choices(unit, k=100_000)) * 100
    assert len(text) == 10_000_000
    result = answered(text)
    assert not result.valid and any(NOTHING_FOUND in finding.message for finding in result.remaining)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "text"), table("unread.json").items(), ids=lambda value: value[:20])
def test_a_text_in_a_form_that_is_not_read_gets_a_clear_answer(name: str, text: str) -> None:
    for part in (text, text[: len(text) // 2], f"Here is my plan.\n```{name}\n{text}\n```\n"):
        result = answered(part)
        assert not result.valid and (result.notes or result.unfixed)


def _results() -> list[FixResult]:
    """Some tens of results: of piled corruptions, foreign proposals, plans with a fault that stays."""
    faulty = [{**base_plan(name), "model": {"name": "nobody's", "config": {}}} for name in base_names()[:6]]
    texts: list[Any] = [
        *(piled(seed, 6) for seed in range(200, 210)),
        *(proposal.text for proposal in proposals()[::7]),
        *faulty,
    ]
    return [result for result in (autofix(text, request=ASKED) for text in texts) if result.document is not None]


@pytest.mark.thorough
def test_a_fresh_process_says_of_validity_what_autofix_says(tmp_path: Path) -> None:
    results = _results()
    paths: list[str] = []
    for place, result in enumerate(results):
        path = tmp_path / f"{place}.json"
        path.write_text(json.dumps(result.document), encoding="utf-8")
        paths.append(str(path))
    process = subprocess.run([sys.executable, "-c", _VALIDATE, *paths], capture_output=True, check=True, text=True)
    statuses = process.stdout.rpartition("status ")[2].split()
    assert len(results) >= 30 and {result.valid for result in results} == {True, False}
    assert statuses == ["0" if result.valid else "1" for result in results]
