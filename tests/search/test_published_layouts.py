"""Layouts that others have published are among the first for the engine, the hardware and the load of their source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.benchmarks.layouts import Case, cases, judged
from shardwright.tools.engines.names import engine_of
from shardwright.tools.plan.document import ServingBlock

CASES = Path(__file__).parents[1] / "cases"
LOADS: list[dict[str, Any]] = json.loads((CASES / "search_layouts.json").read_text("utf-8"))["layouts"]
# Those of one node and of sides that are judged apart are quick; `benchmarks/layouts.py` judges all.
QUICK = (
    "DeepSeek-R1 on one node: EP8 with data-parallel attention",
    "DeepSeek-R1 on AMD: TP8",
    "DeepSeek-V3.2 without padded heads: DP8 with EP8",
    "DeepSeek on 13 nodes: three prefill groups of 3 nodes, decode on 4",
    "Llama-3.3-70B in bf16, TP8 for latency",
)


def published(name: str) -> Case:
    return next(case for case in cases() if case.name == name)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", QUICK)
def test_a_published_layout_is_among_the_first(name: str) -> None:
    assert any(judgement.is_found for judgement in judged(published(name)))


@pytest.mark.parametrize("row", LOADS, ids=lambda row: row["name"])
def test_each_load_is_of_a_known_layout_and_engine_or_says_why_not(row: dict[str, Any]) -> None:
    known = {layout["name"] for layout in json.loads((CASES / "deployments.json").read_text("utf-8"))}
    assert row["name"] in known
    if "unknown" not in row:
        assert row["concurrency"]
        serving = ServingBlock.model_validate(row.get("serving", {}))
        assert serving.engine is None or engine_of(serving.engine) is not None
