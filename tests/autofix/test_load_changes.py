"""No repair changes what is served in silence: each field of the load that was stated and is another is said first."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.report.fix import render_fix
from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.examples import base_plan

HEADLINE = "Changes what is served: "
# What a load states, and what is said of it; nothing where it says the same in another form.
STATED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"request_rate": -2}, ("request_rate -2 -> not stated",)),
    ({"concurrency": -4, "tpot_ms_max": "20ms"}, ("concurrency -4 -> 1", "tpot_ms_max 20ms -> not stated")),
    ({"objective": "latancy"}, ("objective latancy -> latency",)),
    ({"input_tokenz": 5}, ("input_tokenz 5 -> not stated",)),
    ({"lengths": {"input": "long"}}, ("lengths unreadable -> not stated",)),
    ({"concurrency": "1", "request_rate": None}, ()),
]
# Proposals in other forms, and what is said of each.
PROPOSED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (
        {"input_tokens": "4k", "concurrency": -8},
        ("'-8' cannot be read as concurrency (/concurrency) -> concurrency not stated",),
    ),
    ({"input_tokens": "4k", "concurrency": 8}, ()),
]


def _check(document: dict[str, Any], said: tuple[str, ...]) -> None:
    result = autofix(document)
    assert result.valid and result.load_changes == said
    head = render_fix(result, title="draft", width=1000).split("\n\n")[0]
    assert (f"{HEADLINE}{', '.join(said)}; state what was meant" in head) == bool(said)
    assert (HEADLINE in head) == bool(said)


@pytest.mark.parametrize(("stated", "said"), STATED)
def test_a_field_that_repair_changes_is_said_first(stated: dict[str, Any], said: tuple[str, ...]) -> None:
    document = base_plan("dense-tp2")
    document["workload"].update(stated)
    _check(document, said)


@pytest.mark.parametrize(("stated", "said"), PROPOSED)
def test_a_field_of_a_proposal_that_is_not_understood_is_said_first(
    stated: dict[str, Any], said: tuple[str, ...]
) -> None:
    proposal = {"model": "Qwen/Qwen3-8B", "hardware": "4x L40S", "tensor_parallel": 4, "output_tokens": 256}
    _check({**proposal, **stated}, said)
