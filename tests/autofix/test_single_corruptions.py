"""A single corruption gets a small repair: the graph is mended where it is broken, all else stays as written."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.validate import validate

from ..rules.corruptions import Corruption, halved_blocks, scattered, spelled_out
from .corrupted import (
    BEYOND_REPAIR,
    NO_READING,
    ROWS,
    corrupted_by,
    is_local,
    rename,
    replayed,
    some_of_each_rule,
    touches_strategy,
    untouched,
)

# Share of the nodes that a corruption leaves alone that a local repair leaves alone too.
LEAST_KEPT = 0.95
REPAIRABLE = [row for row in ROWS if row.rule not in BEYOND_REPAIR and (row.rule, row.name) not in NO_READING]
LOCAL = [row for row in REPAIRABLE if is_local(row)]
# Claimed figures are all mended in one way, which takes an estimate.
CHOSEN = [
    *(row for row in REPAIRABLE if row.rule[:2] not in ("PE", "EN")),
    *some_of_each_rule((row for row in REPAIRABLE if row.rule[:2] in ("PE", "EN")), 2),
]
# One row of each rule, for plans in other styles.
OF_EACH_RULE = some_of_each_rule((row for row in LOCAL if not row.rule.startswith("PE")), 1)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("row", CHOSEN, ids=str)
def test_a_corruption_ends_valid_and_the_patches_lead_there(row: Corruption) -> None:
    document = apply(row.example)
    as_it_was = apply(row.example)
    result = autofix(document)
    assert document == as_it_was
    assert result.valid and replayed(result) == result.document
    assert all(fix.description for fix in result.fixes)
    if is_local(row) and result.fixes:
        report = validate(document)
        named = {name for violation in report.violations for name in violation.nodes}
        remaining = {name: node for name, node in untouched(row, document).items() if name not in named}
        after = {node["id"]: node for node in (result.document or {})["nodes"]}
        same_count = sum(after.get(name) == node for name, node in remaining.items())
        assert same_count >= LEAST_KEPT * len(remaining)
        assert touches_strategy(row) or (result.document or {})["strategy"] == document["strategy"]


def _in_other_style(row: Corruption, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The base in a random style: its nodes by id, and the plan corrupted; `None` if it lacks what `row` changes."""
    document = base_plan(row.example.base)
    for style in (scattered, spelled_out, halved_blocks):
        if rng.random() < 0.5:
            document = style(document, rng)
    before = {node["id"]: copy.deepcopy(node) for node in document["nodes"]}
    corrupted = corrupted_by(document, row)
    return None if corrupted is None else (before, corrupted)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("row", OF_EACH_RULE, ids=str)
def test_a_plan_in_another_style_is_mended_in_its_own(row: Corruption) -> None:
    rng = random.Random(f"{row}")
    before, corrupted = next(filter(None, (_in_other_style(row, rng) for _ in range(20))))
    same = [node["id"] for node in corrupted["nodes"] if before.get(node["id"]) == node]
    names = rename(corrupted, rng)
    named = {name for violation in validate(corrupted).violations for name in violation.nodes}
    remaining = [node for node in corrupted["nodes"] if node["id"] in {names[name] for name in same} - named]
    result = autofix(corrupted)
    after = {node["id"]: node for node in (result.document or {})["nodes"]}
    assert result.valid
    assert sum(after.get(node["id"]) == node for node in remaining) >= LEAST_KEPT * len(remaining)


@pytest.mark.parametrize("name", ["dense-tp2", "moe-ep2", "dense-tp4"])
def test_what_an_engine_does_by_itself_need_not_be_drawn_or_stated(name: str) -> None:
    document = base_plan(name)
    document["serving"] = {"engine": "vllm"}
    broken = {**document, "edges": document["edges"][:-1]}
    result = autofix(broken)
    assert validate(document).valid and result.valid
    assert (result.document or {})["policy"] == document["policy"]
    assert [step["op"] for fix in result.fixes for step in fix.patch] == ["add"]


@pytest.mark.parametrize("row", [row for row in ROWS if (row.rule, row.name) in NO_READING], ids=str)
def test_a_value_that_cannot_be_guessed_is_named(row: Corruption) -> None:
    result = autofix(apply(row.example))
    assert not result.valid and result.remaining and any("workload" in reason for reason in result.unfixed)


@pytest.mark.parametrize("name", base_names())
def test_a_valid_plan_is_returned_as_it_is(name: str) -> None:
    result = autofix(base_plan(name))
    assert (result.valid, result.fixes, result.rounds, result.document) == (True, (), 0, base_plan(name))
