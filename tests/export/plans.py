"""Plans of all kinds for exporters: the rows of `tests/cases/exports.json`, laid out."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import shardwright
from shardwright.agent.compare import plan_of_words
from shardwright.tools.export.export import TARGETS, export
from shardwright.tools.export.result import Export
from shardwright.tools.plan.document import Plan

CASES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "cases" / "exports.json").read_text(encoding="utf-8"))
REFUSED = [(name, target) for name, targets in CASES["refused"].items() for target in targets]
EXPORTED = [(name, target) for name in CASES["plans"] for target in TARGETS if (name, target) not in REFUSED]


@cache
def plan_named(name: str) -> Plan:
    """The plan of a row."""
    row = CASES["plans"][name]
    stated = {"precision": row["precision"]} if "precision" in row else {}
    base = shardwright.plan(
        model=row["model"], hardware=row["hardware"], input_tokens=1024, output_tokens=128, concurrency=8, **stated
    )
    assert base.plan is not None
    return plan_of_words(row["words"], base.plan)


@cache
def exported(name: str, target: str) -> Export:
    """The plan of a row, exported."""
    return export(plan_named(name), target)
