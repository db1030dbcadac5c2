"""The report of `fix`: what was mended, by which rule, as which JSON Patch, and what remains; the change as a diff.

`verify`'s verdict is here too. Nothing is judged: the figures are the result's.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...tools.plan.view import as_int, as_mapping
from .request import left_out_lines
from .text import Bullets, Column, Section, Table, bytes_text, count_text, figure, render, section
from .validation import violation_sections

if TYPE_CHECKING:
    from ...tools.autofix.result import AppliedFix, FixResult
    from ...tools.verify import Verification

# The part of a finding on idle devices that is the same in every stage: "attention leaves 2 of 4 devices idle".
_IDLE = re.compile(r"(\S+)(?: in stage \S+)?( leaves \d+ of \d+ devices idle).*")
OPERATIONS_SHOWN = 4
FIXES_SHOWN = 30
CHANGES_SHOWN = 4
# More than a load has fields.
LOAD_CHANGES_SHOWN = 30
_VALUE_SHOWN = 90
# How notes begin on what was no JSON.
_MENDED = "mended: "
# The options that withhold fixes.
_FLAGS = {"safe_only": "--safe-only", "rules": "--rule"}


def render_fix(result: FixResult, *, title: str, width: int, bold: bool = False) -> str:
    """What was done to the document called `title`."""
    sections = [
        section("", *_head(result, title)),
        *_changed(result),
        section("As it was read", Bullets(result.notes)),
        *_strategy(result),
        *_fixes(result),
        section("Why no more could be done", Bullets(result.unfixed)),
        *_infeasible(result),
        *violation_sections(result.remaining),
    ]
    return render(sections, width=width, bold=bold)


def _head(result: FixResult, title: str) -> Iterator[str]:
    fixes = count_text(len(result.fixes), "fix", "fixes")
    mended = [note.removeprefix(_MENDED) for note in result.notes if note.startswith(_MENDED)]
    if result.valid and not result.fixes and mended:
        yield f"Mended: {title} is valid so: {_listed(mended)}"
    elif result.valid and not result.fixes:
        yield f"Valid: {title} needs no fix"
    elif result.valid:
        cost = "; ".join(_costs(result))
        but = f", but {cost}" if cost else ""
        yield f"Fixed: {title} is valid after {fixes} in {count_text(result.rounds, 'round')}{but}"
    else:
        errors = sum(finding.severity == "error" for finding in result.remaining)
        yield f"NOT fixed: {title} keeps {count_text(errors, 'error')} after {fixes}"
    yield from left_out_lines(result.left_out)
    if result.valid and result.load_changes:
        changes = _listed(result.load_changes, LOAD_CHANGES_SHOWN)
        yield f"Changes what is served: {changes}; state what was meant where it is not that"
    if result.undone:
        yield (
            f"Undone: {_listed(result.undone)}: the graph shows otherwise, and was kept. To rebuild the graph for what "
            "the strategy block says: run with --keep-strategy"
        )
    if result.withheld is not None:
        flags = " and ".join(_FLAGS[name] for name in result.withheld.by)
        findings = count_text(result.withheld.findings, "finding has", "findings have")
        yield f"{findings} fixes that were not asked for: run without {flags}"


def _listed(changes: Sequence[str], most: int = CHANGES_SHOWN) -> str:
    more = len(changes) - most
    return ", ".join(changes[:most]) + (f" and {more} more" if more > 0 else "")


def _changed(result: FixResult) -> list[Section]:
    """What changed in the strategy block, unless the head says so already."""
    if result.strategy_changes == result.undone[:CHANGES_SHOWN]:
        return []
    return [section("The strategy block differs from what was read", Bullets(result.strategy_changes))]


def _costs(result: FixResult) -> Iterator[str]:
    """What the valid plan leaves unused: GPUs that were stated or are there, and GPUs that idle in a stage."""
    plan = result.plan
    if plan is None:
        return
    used, there = plan.strategy.gpu_count, plan.hardware.nodes * plan.hardware.gpus_per_node
    stated = as_int(as_mapping(as_mapping(result.read).get("strategy")).get("gpu_count"))
    if stated is not None and used < stated <= there:
        yield f"uses {used} GPUs where the proposal stated {stated}"
    elif used < there:
        yield f"uses {used} of {there} GPUs"
    idle = dict.fromkeys(_IDLE.sub(r"\1\2", finding.message) for finding in result.remaining if finding.rule == "GP005")
    yield from idle


def _strategy(result: FixResult) -> list[Section]:
    """What became of the strategy, if it could not be kept."""
    change = result.replanned
    if change is None:
        return []
    from ...tools.plan.describe import describe

    nearest = "the nearest legal strategy" if change.is_nearest else "the nearest legal strategy that was looked at"
    line = f"{describe(change.before)} → {describe(change.after)}: {nearest}, distance {figure(change.distance)}"
    return [section("The strategy could not be kept", line, Bullets(change.moves))]


def _infeasible(result: FixResult) -> list[Section]:
    """Why no plan exists, and what would do."""
    infeasible = result.infeasible
    if infeasible is None:
        return []
    lines = [f"What binds: {infeasible.rule}: {infeasible.reason}"]
    if infeasible.shortfall_bytes is not None:
        lines.append(f"Shortfall: {bytes_text(infeasible.shortfall_bytes)} on the fullest GPU of the closest layout")
    needs = infeasible.needs
    if needs is not None:
        size = "none that was tried would do" if needs.gpus is None else f"{needs.gpus} × {needs.accelerator}"
        lines.append(f"Least hardware: {size}" + (f" ({needs.note})" if needs.note else ""))
    lines += [f"A valid plan exists with {closest.change} (--format json has it)" for closest in infeasible.closest]
    return [section("No plan exists", Bullets(tuple(lines)))]


def _fixes(result: FixResult) -> list[Section]:
    rows = tuple(
        (str(number), fix.rule, fix.safety, fix.description)
        for number, fix in enumerate(result.fixes[:FIXES_SHOWN], start=1)
    )
    more = len(result.fixes) - len(rows)
    columns = (Column("#", figures=True), Column("rule"), Column("safety"), Column("what", wraps=True))
    patches = [
        f"{number} {fix.rule}: {line}"
        for number, fix in enumerate(result.fixes[:FIXES_SHOWN], start=1)
        for line in _operations(fix)
    ]
    return [
        section("Fixes", Table(columns, rows), f"and {more:,} more (--format json has all)" if more > 0 else None),
        section("JSON Patches (RFC 6902; the tests before each change left out)", Bullets(tuple(patches))),
    ]


def _operations(fix: AppliedFix) -> Iterator[str]:
    operations = [operation for operation in fix.patch if operation.get("op") != "test"]
    for operation in operations[:OPERATIONS_SHOWN]:
        value = f" {_short(operation['value'])}" if "value" in operation else ""
        yield f"{operation['op']} {operation['path']}{value}"
    if len(operations) > OPERATIONS_SHOWN:
        yield f"and {len(operations) - OPERATIONS_SHOWN:,} more operations"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _VALUE_SHOWN else text[: _VALUE_SHOWN - 1] + "…"


def diff_text(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, *, old: str, new: str) -> str:
    """The change as a unified diff: one line for each node, each edge and each field of the header."""
    lines = difflib.unified_diff(
        list(_lines(before or {})), list(_lines(after or {})), fromfile=old, tofile=new, lineterm="", n=2
    )
    return "\n".join(lines)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, list):
            yield from (f"{name}: {_line(item)}" for item in value)  # pyright: ignore[reportUnknownVariableType] - raw JSON
        elif isinstance(value, dict):
            yield from (f"{name}.{key}: {_line(item)}" for key, item in value.items())  # pyright: ignore[reportUnknownVariableType] - raw JSON
        else:
            yield f"{name}: {_line(value)}"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def render_verification(verification: Verification, *, title: str, width: int, bold: bool = False) -> str:
    """The report of `verify`: what the replay of the certificate called `title` showed."""
    failed = [check for check in verification.checks if not check.holds]
    head = (
        f"Confirmed: {title}, {count_text(len(verification.checks), 'check')}"
        if verification.confirmed
        else f"NOT confirmed: {title}"
    )
    verdict = "The plan that it ends in is valid" if verification.valid else "The plan that it ends in is NOT valid"
    lines = tuple(f"{check.what}: {check.detail or 'does not hold'}" for check in failed)
    return render(
        [
            section("", head, f"{verdict} (sha256 of its content {verification.plan_sha256})"),
            section("What does not hold", Bullets(lines)),
            section("What was not checked", Bullets(verification.not_checked)),
        ],
        width=width,
        bold=bold,
    )
