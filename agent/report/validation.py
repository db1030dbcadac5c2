"""Violations as text: grouped by rule, each with its place, what stands there, what would pass, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..citations import public_sources
from .text import Block, Bullets, Section, count_text, render, section, value_text

if TYPE_CHECKING:
    from ...tools.rules.base import Violation
    from ...tools.validate import ValidationReport

PLACES_SHOWN = 6
NODES_SHOWN = 4


def render_validation(report: ValidationReport, *, title: str, width: int, bold: bool = False) -> str:
    """The report of `validate FILE`; `title` says of what."""
    warnings = count_text(report.warnings, "warning")
    if report.valid:
        headline = f"Valid: {title}" + (f" ({warnings})" if report.warnings else "")
    else:
        headline = f"NOT valid: {title} has {count_text(report.errors, 'error')} and {warnings}"
    relaxations = f"Relaxations in force: {', '.join(report.relaxations)}" if report.relaxations else ""
    brought = Bullets(tuple(f"{name}: {reason}" for name, reason in report.brought.items()))
    sections = [section("", headline, *report.remarks, relaxations, brought), *violation_sections(report.violations)]
    return render(sections, width=width, bold=bold)


def violation_sections(violations: Iterable[Violation]) -> list[Section]:
    """One section for each rule, errors before warnings."""
    groups: dict[str, list[Violation]] = {}
    for violation in violations:
        groups.setdefault(violation.rule, []).append(violation)
    ordered = sorted(groups.values(), key=lambda group: group[0].severity != "error")
    return [section(_title(group), *_group_blocks(group)) for group in ordered]


def violation_blocks(violations: Sequence[Violation]) -> list[Block]:
    """The same inside a section of another report: a line for each rule's title, then its places."""
    blocks: list[Block] = []
    for part in violation_sections(violations):
        blocks += [part.title, *part.blocks]
    return blocks


def _title(group: Sequence[Violation]) -> str:
    first = group[0]
    count = count_text(len(group), first.severity)
    name = _rule_name(first.rule)
    return f"{first.rule} {name}: {count}" if name else f"{first.rule}: {count}"


def _rule_name(rule_id: str) -> str:
    from ...tools.errors import InputError
    from ...tools.rules.registry import find_rule

    try:
        return find_rule(rule_id).name
    except InputError:
        return ""  # a finding about a rule that no document can carry


def _group_blocks(group: Sequence[Violation]) -> list[Block]:
    places = [_place_text(violation) for violation in group[:PLACES_SHOWN]]
    if len(group) > PLACES_SHOWN:
        places.append(f"and {len(group) - PLACES_SHOWN:,} more (--format json lists all)")
    remedies = dict.fromkeys(violation.remedy for violation in group if violation.remedy)
    sources = public_sources(violation.source for violation in group if violation.source)
    rule = group[0].rule
    tail = [f"to mend: {remedy}" for remedy in list(remedies)[:PLACES_SHOWN]]
    tail += [f"source: {sources}"] if sources else []
    tail += [f"why: shardwright explain {rule}"] if _rule_name(rule) else []
    return [Bullets(tuple(places)), Bullets(tuple(tail), mark="→")]


def _place_text(violation: Violation) -> str:
    where = violation.path or "document"
    ends = {end for edge in violation.edges[:NODES_SHOWN] for end in edge}
    nodes = [node for node in violation.nodes if node not in ends]
    named = [f"node {value_text(node, 60)}" for node in nodes[:NODES_SHOWN]]
    if len(nodes) > NODES_SHOWN:
        named.append(f"{len(nodes) - NODES_SHOWN} more nodes")
    named += [f"edge {value_text(a, 60)} → {value_text(b, 60)}" for a, b in violation.edges[:NODES_SHOWN]]
    place = f"{where} ({', '.join(named)})" if named else where
    facts: list[str] = []
    # A whole element as the value says no more than its place does.
    if violation.value is not None and not isinstance(violation.value, dict):
        facts.append(f"is {value_text(violation.value)}")
    if violation.expected is not None:
        facts.append(f"would pass: {_expected_text(violation.expected)}")
    detail = f" [{'; '.join(facts)}]" if facts else ""
    return f"{place}: {violation.message}{detail}"


# Bounds of a JSON Schema, as people say them.
_BOUNDS = {"type": "{}", "minimum": "at least {}", "maximum": "at most {}", "exclusiveMinimum": "more than {}"}


def _expected_text(expected: object) -> str:
    match expected:
        case {**bound} if len(bound) == 1 and (words := _BOUNDS.get(str(next(iter(bound))))) is not None:
            return words.format(value_text(next(iter(bound.values()))))
        case _:
            return value_text(expected)
