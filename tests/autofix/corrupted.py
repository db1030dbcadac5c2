"""Corrupted plans for the tests of auto-fix: rows of the rules' tables alone, piled up, and under other names."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import jsonpatch

from shardwright.tools.autofix.autofix import FixResult
from shardwright.tools.errors import InputError
from shardwright.tools.rules.examples import base_names, base_plan, edited
from shardwright.tools.rules.registry import find_rule

from ..rules.corruptions import Corruption, corruptions

ROWS = tuple(row for row in corruptions("") if row.rule in row.expected)
# Rules that no repair can satisfy: limits and loads beyond the hardware, settings that an engine lacks.
BEYOND_REPAIR = frozenset({"ME001", "PE010", "EN014", "EN015"})
# Constraints of a request that no plan of some bases meets: there a repair ends in an answer, not in a plan.
DEMANDS = frozenset({"CO008"})
NO_READING = frozenset(
    {("ST001", "a negative number of tokens"), ("ST001", "lengths with another mean than the stated one")}
)
# Rows whose strategy itself is illegal, of rules that are otherwise mended locally.
STRATEGY_AT_FAULT = frozenset({("EP004", "more devices than experts"), ("TP006", "the relaxation is not named")})


def some_of_each_rule(rows: Iterable[Corruption], most: int) -> list[Corruption]:
    """The first `most` rows of each rule."""
    counted: Counter[str] = Counter()
    chosen: list[Corruption] = []
    for row in rows:
        counted[row.rule] += 1
        if counted[row.rule] <= most:
            chosen.append(row)
    return chosen


def is_local(row: Corruption) -> bool:
    """Whether repair mends the row in the graph and keeps the author's strategy."""
    key = (row.rule, row.name)
    return find_rule(row.rule).fix == "local" and key not in STRATEGY_AT_FAULT | NO_READING


def touches_strategy(row: Corruption) -> bool:
    """Whether the row corrupts the strategy block itself."""
    return any(edit.field.startswith("/strategy") for edit in row.example.edits)


def untouched(row: Corruption, document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Nodes of the corrupted `document` that are as in the base plan of `row`, by id."""
    before = {node["id"]: node for node in base_plan(row.example.base)["nodes"]}
    return {node["id"]: node for node in document["nodes"] if before.get(node["id"]) == node}


def replayed(result: FixResult) -> Any:
    """The document as read after the patches of `result`, one after another."""
    document: Any = result.read
    for fix in result.fixes:
        document = jsonpatch.apply_patch(document, list(fix.patch))
    return document


def piled(seed: int, most: int = 20) -> dict[str, Any]:
    """A base plan after 2 to `most` corruptions drawn from the tables of all rules that can be mended."""
    rng = random.Random(seed)
    document = base_plan(rng.choice(base_names()))
    rows = [row for row in ROWS if row.rule not in BEYOND_REPAIR and (row.rule, row.name) not in NO_READING]
    rows = [row for row in rows if not row.rule.startswith("EN") and row.rule not in DEMANDS]
    wanted_count, count = rng.randint(2, most), 0
    for row in rng.sample(rows, len(rows)):
        corrupted = corrupted_by(document, row)
        if corrupted is not None:
            document, count = corrupted, count + 1
        if count == wanted_count:
            break
    return document


def corrupted_by(document: dict[str, Any], row: Corruption) -> dict[str, Any] | None:
    """`document` after the edits of `row`; `None` if it lacks what they change."""
    try:
        return edited(copy.deepcopy(document), row.example.edits)
    except (InputError, KeyError, TypeError):
        return None


def rename(document: dict[str, Any], rng: random.Random) -> dict[str, str]:
    """Give random ids in place of all, dangling ones too, and a random order; returns the new id of each old one."""
    names: dict[str, str] = {}

    def name(old: Any) -> Any:
        return names.setdefault(old, f"{rng.randrange(1 << 60)}") if isinstance(old, str) else old

    for element, keys in [*((node, ("id", "parent")) for node in document["nodes"]),
                       *((edge, ("source", "target")) for edge in document["edges"])]:  # fmt: skip
        element.update({key: name(element[key]) for key in keys if key in element})
    rng.shuffle(document["nodes"])
    rng.shuffle(document["edges"])
    return names
