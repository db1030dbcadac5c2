"""`fix_dag`: a document made valid by the repair, under a new handle, with what was changed; nothing is accepted."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.autofix.autofix import autofix_read
from ...tools.autofix.reading import Reading
from ...tools.autofix.result import FixResult
from ...tools.plan.reader import read_document
from ..loop.feedback import Level, patch_told, repairs_told
from .documents import kept, summary, validated
from .tool import Answer, Arguments, Bench, Tool

_MOST_LINES = 12


class FixArguments(Arguments):
    """Which document."""

    handle: str = Field(description="handle of a document")


def _run(bench: Bench, arguments: FixArguments) -> Answer:
    document = bench.desk.get(arguments.handle)
    if not bench.repairs:
        return Answer({"message": "documents are not repaired in this run: patch or build one"}, "infeasible")
    fixed = autofix_read(Reading(read_document(document)))
    if fixed.valid and not fixed.fixes:
        return Answer({"handle": arguments.handle, "valid": True, "message": "valid already: nothing was changed"})
    if fixed.document is None or not fixed.fixes:
        return Answer({"message": "nothing in it can be repaired", **_why_not(fixed)}, "infeasible")
    handle, mended, _ = kept(bench, fixed.document, "repair")
    told = {"handle": handle, **summary(mended), **_changed(fixed, bench.level), **validated(mended, bench.level)}
    return Answer(told) if fixed.valid else Answer({**told, **_why_not(fixed)}, "infeasible")


def _changed(fixed: FixResult, level: Level) -> dict[str, Any]:
    """What the repair changed, as far as `level` tells of rules."""
    if level not in ("full", "patch"):
        return {}
    told: dict[str, Any] = {"repaired": repairs_told(fixed.fixes)}
    if fixed.strategy_changes:
        told["strategy_changes"] = list(fixed.strategy_changes[:_MOST_LINES])
    return told | (patch_told(fixed.fixes) if level == "patch" else {})


def _why_not(fixed: FixResult) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if fixed.unfixed:
        told["not_repaired"] = list(fixed.unfixed[:_MOST_LINES])
    if fixed.infeasible is not None:
        told["infeasible"] = f"{fixed.infeasible.rule}: {fixed.infeasible.reason}"
    return told


FIX_DAG = Tool(
    name="fix_dag",
    description=(
        "Repair a document: local faults keep its strategy, else the nearest legal strategy is taken. Answers with the "
        "handle of the result and what was changed. It is not submitted by this."
    ),
    arguments=FixArguments,
    run=_run,
)
