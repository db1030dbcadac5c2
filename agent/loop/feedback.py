"""What a model is told of its proposal: the validator's findings, what was repaired, and what is to be left alone.

How much it is told is a switch, so that it can be measured: `none` that another proposal is wanted, `bit` that this one
was wrong, `codes` which rules it broke, `full` every finding with place, value, legal values and remedy, `patch` that
and the repair as a JSON Patch. Findings come structure first, as the validator orders them, and are capped with a count
of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from ...tools.autofix.result import AppliedFix
from ...tools.rules.base import Violation
from ...tools.search.describe import describe
from .judge import Judgement

Level = Literal["none", "bit", "codes", "full", "patch"]

MOST_FINDINGS = 12
# Findings of one rule that are written out: the others are the same fault in other places.
_MOST_OF_A_RULE = 3
_MOST_PLACES = 6
_MOST_OPERATIONS = 40
_MOST_NOTES = 12


def feedback(judgement: Judgement, level: Level) -> dict[str, Any]:
    """What `level` tells of `judgement`, as JSON values; keys are absent where there is nothing to say."""
    if judgement.is_acceptable and judgement.standing is not None:
        return _accepted(judgement)
    if level == "none":
        return {"message": "submit another proposal"}
    told: dict[str, Any] = {"accepted": False}
    if level == "bit":
        return told
    if judgement.rules:
        told["rules"] = list(judgement.rules)
    if level == "codes":
        return told
    if judgement.handle is not None:
        told["handle"] = judgement.handle
    told |= _why(judgement)
    findings = [one for one in judgement.violations if one.severity == "error"]
    told |= _findings(findings)
    if judgement.notes:
        told["read_as"] = list(judgement.notes[:_MOST_NOTES])
    told |= _repair(judgement, with_patch=level == "patch")
    return told


def _accepted(judgement: Judgement) -> dict[str, Any]:
    assert judgement.standing is not None
    warnings = [f"{one.rule}: {one.message}" for one in judgement.violations if one.severity == "warning"]
    told: dict[str, Any] = {
        "accepted": True,
        "handle": judgement.standing.handle,
        "plan": describe(judgement.standing.plan.strategy),
    }
    if judgement.fixes:
        told["repaired"] = [f"{one.rule}: {one.description}" for one in judgement.fixes[:_MOST_NOTES]]
    if warnings:
        told["warnings"] = warnings[:MOST_FINDINGS]
    return told


def _why(judgement: Judgement) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if judgement.refusal is not None:
        told["message"] = judgement.refusal
    if judgement.unkept is not None:
        told["asked_for"] = judgement.unkept
    if judgement.contradictions:
        told["put_right"] = list(judgement.contradictions[:_MOST_NOTES])
    if judgement.infeasible is not None:
        told["infeasible"] = f"{judgement.infeasible.rule}: {judgement.infeasible.reason}"
    return told


def _findings(errors: Sequence[Violation]) -> dict[str, Any]:
    if not errors:
        return {}
    shown: list[dict[str, Any]] = []
    for _, group in groupby(errors, key=lambda one: one.rule):
        shown.extend(finding(one) for one in list(group)[:_MOST_OF_A_RULE])
    told: dict[str, Any] = {"findings": shown[:MOST_FINDINGS]}
    left = len(errors) - len(told["findings"])
    if left:
        told["further_findings"] = left
    named = {node for one in errors for node in one.nodes}
    told["leave_alone"] = (
        f"only the nodes named here are faulty ({len(named)}); keep all others as they are"
        if named
        else "no single node is at fault: change what the findings name, keep the rest"
    )
    return told


def finding(violation: Violation) -> dict[str, Any]:
    """One finding in the words of the validator, its places capped, empty fields left out."""
    told = violation.model_dump(mode="json", exclude={"severity", "source", "edges", "nodes"}, exclude_none=True)
    told = {name: value for name, value in told.items() if value not in ("", [], {})}
    if violation.nodes:
        told["nodes"] = _capped(violation.nodes)
    if violation.edges:
        told["edges"] = _capped([list(edge) for edge in violation.edges])
    return told


def _capped(places: Sequence[Any]) -> list[Any]:
    shown = list(places[:_MOST_PLACES])
    return shown if len(places) <= _MOST_PLACES else [*shown, f"and {len(places) - _MOST_PLACES} more"]


def _repair(judgement: Judgement, *, with_patch: bool) -> dict[str, Any]:
    """What auto-fix made of it: the valid document that it led to, and how far that is from what was proposed."""
    if judgement.standing is None:
        return {"not_repaired": list(judgement.unfixed[:_MOST_NOTES])} if judgement.unfixed else {}
    told: dict[str, Any] = {
        "repaired_as": judgement.standing.handle,
        "repaired_plan": describe(judgement.standing.plan.strategy),
        "hint": "submit_dag with this handle takes the repaired plan; or propose another",
    }
    if judgement.replanned is not None:
        told["changed"] = list(judgement.replanned.moves)
    if with_patch and judgement.fixes:
        operations = list(_operations(judgement.fixes))
        told["patch"] = operations[:_MOST_OPERATIONS]
        if len(operations) > _MOST_OPERATIONS:
            told["further_operations"] = len(operations) - _MOST_OPERATIONS
    return told


def _operations(fixes: Sequence[AppliedFix]) -> Iterator[dict[str, Any]]:
    """The operations that say what the repair decides: those on the header; the graph follows from it."""
    for fix in fixes:
        for operation in fix.patch:
            path = str(operation.get("path", ""))
            if operation.get("op") != "test" and not path.startswith(("/nodes", "/edges")):
                yield {"rule": fix.rule, **operation}
