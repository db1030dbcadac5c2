"""What a model is told of its proposal: the validator's findings, what was repaired, and what is to be left alone.

How much it is told is a switch, so that it can be measured: `none` that another proposal is wanted, `bit` that this one
was wrong, `codes` which rules it broke, `full` every finding with place, value, legal values and remedy, `patch` that
and what the repair changed, as a JSON Patch. Findings come structure first and from the root downwards, and are capped
with a count of the rest. What a proposal holds is quoted shortened: no id or value makes feedback long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from ...tools.autofix.result import AppliedFix
from ...tools.plan.describe import describe
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ...tools.rules.base import Violation
from .judge import Judgement
from .shorten import bounded, rounded, short_text, short_value

_OR = re.compile(r",? or (?=name|use|lift|take|another)")
# What is the person's, as remedies speak of it.
_DECIDED = re.compile(r"policy\.|number format|another engine|lift the limit|a format that")
Level = Literal["none", "bit", "codes", "full", "patch"]

MOST_FINDINGS = 12
# Findings of one rule that are written out: the others are the same fault in other places.
_MOST_OF_A_RULE = 2
_MOST_PLACES = 4
_MOST_OPERATIONS = 40
_MOST_NOTES = 12
_LONGEST_ID = 120
_LONGEST_REPAIR = 200
_LONGEST_VALUE = 160


def feedback(judgement: Judgement, level: Level) -> dict[str, Any]:
    """What `level` tells of `judgement`, as JSON values; keys are absent where there is nothing to say."""
    if judgement.is_acceptable and judgement.standing is not None:
        return bounded(_accepted(judgement))
    if level == "none":
        return {"message": "submit another proposal"}
    told: dict[str, Any] = {"accepted": False}
    if level == "bit":
        return told
    is_right = judgement.verdict in ("valid", "repaired") and judgement.unkept is None and not judgement.is_ambiguous
    if judgement.is_behind and is_right:
        return bounded(told | _behind(judgement))
    told |= _strategy_told(judgement, level) or findings_told(judgement.violations, judgement.right, level)
    if level == "codes":
        return told
    if judgement.handle is not None:
        told["handle"] = judgement.handle
    told |= _why(judgement)
    if judgement.notes:
        told["read_as"] = list(judgement.notes[:_MOST_NOTES])
    told |= _repair(judgement, with_patch=level == "patch")
    return bounded(told)


def _strategy_told(judgement: Judgement, level: Level) -> dict[str, Any]:
    """The faults of a strategy, each once, alike ones of both phases as one; nothing where it has none."""
    faults = judgement.strategy_faults
    if not faults:
        return {}
    told: dict[str, Any] = {"rules": list(judgement.rules)}
    if level == "codes":
        return told
    told["findings"] = [one.told() for one in faults[:MOST_FINDINGS]]
    if len(faults) > MOST_FINDINGS:
        told["further_findings"] = len(faults) - MOST_FINDINGS
    return told


def findings_told(violations: Sequence[Violation], right: str | None, level: Level) -> dict[str, Any]:
    """What `level` tells of findings in the order in which they are to be told; `right` is what to leave alone."""
    errors = [one for one in violations if one.severity == "error"]
    if not errors or level in ("none", "bit"):
        return {}
    told: dict[str, Any] = {"rules": list(dict.fromkeys(one.rule for one in errors))}
    if level == "codes":
        return told
    of_a_rule = min(_MOST_OF_A_RULE, max(1, MOST_FINDINGS // len(told["rules"])))
    groups = [list(group)[:of_a_rule] for _, group in groupby(errors, key=lambda one: one.rule)]
    told["findings"] = [one for group in groups for one in _without_repeats(group)][:MOST_FINDINGS]
    left = len(errors) - len(told["findings"])
    if left:
        told["further_findings"] = left
    if right is not None:
        told["leave_alone"] = right
    return told


def _without_repeats(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    """The findings of one rule; a remedy that is the same as before is said once."""
    told: list[dict[str, Any]] = []
    said: tuple[str, str] | None = None
    for one in violations:
        shown = finding(one)
        if said == (one.remedy, one.fix):
            shown = {name: value for name, value in shown.items() if name not in ("remedy", "fix")}
        said = (one.remedy, one.fix)
        told.append(shown)
    return told


def finding(violation: Violation) -> dict[str, Any]:
    """One finding in the words of the validator, its places capped, empty fields left out."""
    told: dict[str, Any] = {
        "rule": violation.rule,
        "message": short_text(violation.message),
        "path": short_text(violation.path, _LONGEST_ID),
        "nodes": _capped([short_text(name, _LONGEST_ID) for name in violation.nodes[:_MOST_PLACES]], violation.nodes),
        "edges": _capped(
            [[short_text(end, _LONGEST_ID) for end in edge] for edge in violation.edges[:_MOST_PLACES]], violation.edges
        ),
        "value": short_value(violation.value, _LONGEST_VALUE),
        "expected": short_value(violation.expected, _LONGEST_VALUE),
        "remedy": short_text(open_remedy(violation.remedy)),
        "fix": violation.fix,
    }
    return {name: value for name, value in told.items() if value is not None and value not in ("", [], {})}


def open_remedy(remedy: str) -> str:
    """The ways of a remedy that a proposal can go: what the person decided is not offered."""
    return ", or ".join(way for way in _OR.split(remedy) if not _DECIDED.search(way))


def _capped(shown: list[Any], places: Sequence[Any]) -> list[Any]:
    return shown if len(places) <= len(shown) else [*shown, f"and {len(places) - len(shown)} more"]


def _accepted(judgement: Judgement) -> dict[str, Any]:
    assert judgement.standing is not None
    warnings = [f"{one.rule}: {one.message}" for one in judgement.violations if one.severity == "warning"]
    told: dict[str, Any] = {
        "accepted": True,
        "handle": judgement.standing.handle,
        "plan": describe(judgement.standing.plan.strategy),
        "against_reference": judgement.standing.against.words,
    }
    if judgement.fixes:
        told["repaired"] = repairs_told(judgement.fixes)
    if warnings:
        told["warnings"] = warnings[:MOST_FINDINGS]
    return told


def _behind(judgement: Judgement) -> dict[str, Any]:
    """What a valid plan is told that the built-in plan is better than."""
    standing = judgement.standing
    assert standing is not None
    told: dict[str, Any] = {
        "valid": True,
        "handle": standing.handle,
        "plan": describe(standing.plan.strategy),
        "behind_reference": standing.against.words,
        "because": list(standing.against.reasons),
        "hint": "change what costs most, or take the reference: submit_dag with the handle `reference`",
    }
    if judgement.fixes:
        told["repaired"] = repairs_told(judgement.fixes)
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


def _repair(judgement: Judgement, *, with_patch: bool) -> dict[str, Any]:
    """What auto-fix made of it: the valid document that it led to, and how far that is from what was proposed."""
    if judgement.standing is None:
        return {"not_repaired": list(judgement.unfixed[:_MOST_NOTES])} if judgement.unfixed else {}
    told: dict[str, Any] = {
        "repaired_as": judgement.standing.handle,
        "repaired_plan": describe(judgement.standing.plan.strategy),
        "repaired_figures": figures_told(judgement.standing.plan, judgement.standing.estimate),
        "repaired_against_reference": judgement.standing.against.words,
        "repaired_starts_on": list(judgement.starts_on) or "no engine that is known",
        "hint": _hint(judgement),
    }
    if with_patch and judgement.fixes:
        told |= patch_told(judgement.fixes)
    if judgement.strategy_faults:
        return told  # what changed in the graph follows
    if judgement.replanned is not None:
        told["changed"] = list(judgement.replanned.moves[:_MOST_NOTES])
    if with_patch and judgement.fixes:
        told["repaired"] = repairs_told(judgement.fixes)
    return told


def figures_told(plan: Plan, estimate: PerformanceEstimate) -> dict[str, float]:
    """The figures of a plan that an objective or a limit may be about."""
    latency, cost = estimate.latency, estimate.cost
    figures = {
        "ttft_ms": latency.ttft_ms,
        "tpot_ms": latency.tpot_ms,
        "output_tokens_per_s": estimate.throughput.dp_scaled_tokens_per_s,
        "gpus": plan.strategy.gpu_count,
    }
    if cost is not None:
        figures[f"{cost.unit}_per_million_output_tokens"] = cost.per_million_output_tokens
    return rounded(figures)


def _hint(judgement: Judgement) -> str:
    """What to do with a repair: none is offered that would be refused."""
    if judgement.unkept is not None:
        return "the repaired plan would be refused too: it is not what was asked for; propose another"
    if judgement.is_behind:
        return "the reference is better than the repaired plan: propose another, or submit the handle `reference`"
    return "submit_dag with this handle takes the repaired plan; or propose another"


def repairs_told(fixes: Sequence[AppliedFix]) -> list[str]:
    """Each repair in one line, the same ones once, capped with a count of the rest."""
    lines = list(dict.fromkeys(f"{one.rule}: {short_text(one.description, _LONGEST_REPAIR)}" for one in fixes))
    return _capped(lines[:_MOST_NOTES], lines)


def patch_told(fixes: Sequence[AppliedFix]) -> dict[str, Any]:
    """The operations of a repair that say what it decides: those on the header; the graph follows from it."""
    operations = list(_operations(fixes))
    told: dict[str, Any] = {"patch": operations[:_MOST_OPERATIONS]} if operations else {}
    if len(operations) > _MOST_OPERATIONS:
        told["further_operations"] = len(operations) - _MOST_OPERATIONS
    return told


def _operations(fixes: Sequence[AppliedFix]) -> Iterator[dict[str, Any]]:
    for fix in fixes:
        for operation in fix.patch:
            path = str(operation.get("path", ""))
            if operation.get("op") != "test" and not path.startswith(("/nodes", "/edges")):
                value = {"value": short_value(operation["value"])} if "value" in operation else {}
                yield {"rule": fix.rule, "op": operation["op"], "path": short_text(path, _LONGEST_ID), **value}
