"""No repair changes the load silently: each stated field of it that changes is reported first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shardwright.agent.report.fix import render_fix
from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.examples import base_plan

HEADLINE = "Changes what is served: "
# Optional fields of a load, and the changes reported of them; none where only the form changes.
STATED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"input_tokenz": 5}, ("input_tokenz 5 -> not stated",)),
    ({"concurrency": "1", "request_rate": None}, ()),
]
# Fields of the load and the hardware that can be read in no way, or in two.
UNREADABLE: list[tuple[str, str, object]] = [
    ("workload", "input_tokens", -5),
    ("workload", "request_rate", -2),
    ("workload", "concurrency", "many"),
    ("workload", "concurrency", 2_000_000),
    ("workload", "concurrency", float("nan")),
    ("workload", "tpot_ms_max", "20ms"),
    ("workload", "tpot_ms_max", float("inf")),
    ("workload", "objective", "latancy"),
    ("workload", "lengths", {"input": "long"}),
    ("hardware", "nodes", "some"),
    ("hardware", "gpus_per_node", 0),
    ("hardware", "inter_node_bw_gb_s", "fast"),
]
# Proposals in other forms, and the changes reported of each.
PROPOSED: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (
        {"input_tokens": "4k", "concurrency": -8},
        ("'-8' cannot be read as concurrency (/concurrency) -> concurrency not stated",),
    ),
    ({"input_tokens": "4k", "concurrency": 8}, ()),
]


def _check(document: dict[str, Any], changes: tuple[str, ...]) -> None:
    result = autofix(document)
    assert result.valid and result.load_changes == changes
    head = render_fix(result, title="draft", width=1000).split("\n\n")[0]
    assert (f"{HEADLINE}{', '.join(changes)}; state what was meant" in head) == bool(changes)
    assert (HEADLINE in head) == bool(changes)


@pytest.mark.parametrize(("stated", "said"), STATED)
def test_a_field_that_repair_changes_is_said_first(stated: dict[str, Any], said: tuple[str, ...]) -> None:
    document = base_plan("dense-tp2")
    document["workload"].update(stated)
    _check(document, said)


@pytest.mark.parametrize(("block", "name", "value"), UNREADABLE)
def test_what_is_stated_and_cannot_be_read_is_reported_and_never_replaced(block: str, name: str, value: object) -> None:
    document = base_plan("dense-tp2")
    document[block][name] = value
    result = autofix(document)
    assert not result.valid and result.load_changes == ()
    assert any(f"{block}.{name}" in why for why in result.unfixed)


def test_a_number_that_is_spelled_out_is_read() -> None:
    document = base_plan("dense-tp2")
    document["hardware"]["nodes"] = "two"
    result = autofix(document)
    assert result.valid and result.plan is not None and result.plan.hardware.nodes == 2


@pytest.mark.parametrize(("again", "is_valid"), [("9", False), ("{concurrency}", True)])
def test_a_number_that_stands_twice_is_reported_unless_both_are_alike(again: str, is_valid: bool) -> None:
    document = base_plan("dense-tp2")
    stated = f'"concurrency": {document["workload"]["concurrency"]}'
    doubled = f'{stated}, "concurrency": {again.format(**document["workload"])}'
    text = json.dumps(document).replace(stated, doubled)
    result = autofix(text)
    assert result.valid == is_valid
    assert is_valid or any(f"{document['workload']['concurrency']}, then 9" in why for why in result.unfixed)


@pytest.mark.parametrize(("stated", "said"), PROPOSED)
def test_a_field_of_a_proposal_that_is_not_understood_is_said_first(
    stated: dict[str, Any], said: tuple[str, ...]
) -> None:
    proposal = {"model": "Qwen/Qwen3-8B", "hardware": "4x L40S", "tensor_parallel": 4, "output_tokens": 256}
    _check({**proposal, **stated}, said)
