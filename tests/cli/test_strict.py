"""`--strict`: statements not acted on give exit status 1, and are in the first lines with or without it."""

from __future__ import annotations

import json

import pytest

from shardwright.agent.cli.app import run

REQUEST = "Llama-3.1-8B on 1 H100, 512 in, 64 out, 17 bananas"


@pytest.mark.parametrize("command", ["plan", "search"])
def test_words_without_effect_cost_the_exit_status_only_under_strict(command: str) -> None:
    assert run([command, REQUEST]) == 0
    assert run([command, REQUEST, "--strict"]) == 1
    assert run([command, REQUEST.partition(", 17")[0], "--strict"]) == 0


def test_words_without_effect_stand_in_the_first_lines(capsys: pytest.CaptureFixture[str]) -> None:
    run(["plan", REQUEST])
    first = capsys.readouterr().out.splitlines()[:3]
    assert any("Not acted on" in line and "17" in line for line in first)
    run(["plan", REQUEST, "--format", "json"])
    report = json.loads(capsys.readouterr().out)["report"]
    assert any("17" in words for words in report["not_acted_on"])
