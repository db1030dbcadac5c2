"""Feedback on a model's proposal: the validator's findings, the repairs, and what to leave alone.

The level of detail is a switch, so that its worth can be measured: `none` asks for another proposal, `bit` says that
this one was wrong, `codes` names the broken rules, `full` gives every finding with place, value, legal values and
remedy, `patch` adds the repair as a JSON Patch. Findings come structure first, from the root downwards, and are capped
with a count of the rest. Values of a proposal are shortened: no id or value makes feedback long.
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
# Parts of remedies that only the person can decide.
_DECIDED = re.compile(r"policy\.|number format|another engine|lift the limit|a format that")
Level = Literal["none", "bit", "codes", "full", "patch"]

MOST_FINDINGS = 12
# Most findings of one rule in full: the others are the same fault in other places.
_MOST_OF_A_RULE = 2
_MOST_PLACES = 4
_MOST_OPERATIONS = 40
_MOST_NOTES = 12
_LONGEST_ID = 120
_LONGEST_REPAIR = 200
_LONGEST_VALUE = 160


def feedback(judgement: Judgement, level: Level) -> dict[str, Any]:
    """The feedback of `level` on `judgement`, as JSON values without empty keys."""
    if judgement.is_acceptable and judgement.standing is not None:
        return bounded(_accepted(judgement))
    if level == "none":
        return {"message": "submit another proposal"}
    reported: dict[str, Any] = {"accepted": False}
    if level == "bit":
        return reported
    is_right = judgement.verdict in ("valid", "repaired") and judgement.unkept is None and not judgement.is_ambiguous
    if judgement.is_behind and is_right:
        return bounded(reported | _behind(judgement))
    reported |= _strategy_findings(judgement, level) or findings_told(judgement.violations, judgement.right, level)
    if level == "codes":
        return reported
    if judgement.handle is not None:
        reported["handle"] = judgement.handle
    reported |= _why(judgement)
    if judgement.notes:
        reported["read_as"] = list(judgement.notes[:_MOST_NOTES])
    reported |= _repair(judgement, with_patch=level == "patch")
    return bounded(reported)


def _strategy_findings(judgement: Judgement, level: Level) -> dict[str, Any]:
    """The faults of a strategy, equal ones of both phases merged; empty if it has none."""
    faults = judgement.strategy_faults
    if not faults:
        return {}
    reported: dict[str, Any] = {"rules": list(judgement.rules)}
    if level == "codes":
        return reported
    reported["findings"] = [fault.told() for fault in faults[:MOST_FINDINGS]]
    if len(faults) > MOST_FINDINGS:
        reported["further_findings"] = len(faults) - MOST_FINDINGS
    return reported


def findings_told(violations: Sequence[Violation], right: str | None, level: Level) -> dict[str, Any]:
    """The feedback of `level` on findings in their order; `right` is what to leave alone."""
    errors = [violation for violation in violations if violation.severity == "error"]
    if not errors or level in ("none", "bit"):
        return {}
    reported: dict[str, Any] = {"rules": list(dict.fromkeys(violation.rule for violation in errors))}
    if level == "codes":
        return reported
    of_a_rule = min(_MOST_OF_A_RULE, max(1, MOST_FINDINGS // len(reported["rules"])))
    groups = [list(group)[:of_a_rule] for _, group in groupby(errors, key=lambda violation: violation.rule)]
    reported["findings"] = [entry for group in groups for entry in _without_repeats(group)][:MOST_FINDINGS]
    remaining = len(errors) - len(reported["findings"])
    if remaining:
        reported["further_findings"] = remaining
    if right is not None:
        reported["leave_alone"] = right
    return reported


def _without_repeats(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    """The findings of one rule; a repeated remedy is left out."""
    reported: list[dict[str, Any]] = []
    previous: tuple[str, str] | None = None
    for violation in violations:
        shown = finding(violation)
        if previous == (violation.remedy, violation.fix):
            shown = {name: value for name, value in shown.items() if name not in ("remedy", "fix")}
        previous = (violation.remedy, violation.fix)
        reported.append(shown)
    return reported


def finding(violation: Violation) -> dict[str, Any]:
    """One finding in the validator's words, with capped places and without empty fields."""
    reported: dict[str, Any] = {
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
    return {name: value for name, value in reported.items() if value is not None and value not in ("", [], {})}


def open_remedy(remedy: str) -> str:
    """The ways of a remedy that a proposal can take, without those that the person decided."""
    return ", or ".join(way for way in _OR.split(remedy) if not _DECIDED.search(way))


def _capped(shown: list[Any], places: Sequence[Any]) -> list[Any]:
    return shown if len(places) <= len(shown) else [*shown, f"and {len(places) - len(shown)} more"]


def _accepted(judgement: Judgement) -> dict[str, Any]:
    assert judgement.standing is not None
    warnings = [f"{fault.rule}: {fault.message}" for fault in judgement.violations if fault.severity == "warning"]
    reported: dict[str, Any] = {
        "accepted": True,
        "handle": judgement.standing.handle,
        "plan": describe(judgement.standing.plan.strategy),
        "against_reference": judgement.standing.against.words,
    }
    if judgement.fixes:
        reported["repaired"] = repairs_told(judgement.fixes)
    if warnings:
        reported["warnings"] = warnings[:MOST_FINDINGS]
    return reported


def _behind(judgement: Judgement) -> dict[str, Any]:
    """The feedback on a valid plan that is worse than the built-in one."""
    standing = judgement.standing
    assert standing is not None
    reported: dict[str, Any] = {
        "valid": True,
        "handle": standing.handle,
        "plan": describe(standing.plan.strategy),
        "behind_reference": standing.against.words,
        "because": list(standing.against.reasons),
        "hint": "change what costs most, or take the reference: submit_dag with the handle `reference`",
    }
    if judgement.fixes:
        reported["repaired"] = repairs_told(judgement.fixes)
    return reported


def _why(judgement: Judgement) -> dict[str, Any]:
    reported: dict[str, Any] = {}
    if judgement.refusal is not None:
        reported["message"] = judgement.refusal
    if judgement.unkept is not None:
        reported["asked_for"] = judgement.unkept
    if judgement.contradictions:
        reported["put_right"] = list(judgement.contradictions[:_MOST_NOTES])
    if judgement.infeasible is not None:
        reported["infeasible"] = f"{judgement.infeasible.rule}: {judgement.infeasible.reason}"
    return reported


def _repair(judgement: Judgement, *, with_patch: bool) -> dict[str, Any]:
    """Auto-fix's result: the valid document that it led to, and its distance from the proposal."""
    if judgement.standing is None:
        return {"not_repaired": list(judgement.unfixed[:_MOST_NOTES])} if judgement.unfixed else {}
    reported: dict[str, Any] = {
        "repaired_as": judgement.standing.handle,
        "repaired_plan": describe(judgement.standing.plan.strategy),
        "repaired_figures": figures_told(judgement.standing.plan, judgement.standing.estimate),
        "repaired_against_reference": judgement.standing.against.words,
        "repaired_starts_on": list(judgement.starts_on) or "no engine that is known",
        "hint": _hint(judgement),
    }
    if with_patch and judgement.fixes:
        reported |= patch_told(judgement.fixes)
    if judgement.strategy_faults:
        return reported  # what changed in the graph follows
    if judgement.replanned is not None:
        reported["changed"] = list(judgement.replanned.moves[:_MOST_NOTES])
    if with_patch and judgement.fixes:
        reported["repaired"] = repairs_told(judgement.fixes)
    return reported


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
    """What to do with a repair; offers none that would be refused."""
    if judgement.unkept is not None:
        return "the repaired plan would be refused too: it is not what was asked for; propose another"
    if judgement.is_behind:
        return "the reference is better than the repaired plan: propose another, or submit the handle `reference`"
    return "submit_dag with this handle takes the repaired plan; or propose another"


def repairs_told(fixes: Sequence[AppliedFix]) -> list[str]:
    """Each repair in one line, without repetitions, capped with a count of the rest."""
    lines = list(dict.fromkeys(f"{fix.rule}: {short_text(fix.description, _LONGEST_REPAIR)}" for fix in fixes))
    return _capped(lines[:_MOST_NOTES], lines)


def patch_told(fixes: Sequence[AppliedFix]) -> dict[str, Any]:
    """The operations of a repair on the header, which decide the plan; the graph follows from them."""
    operations = list(_operations(fixes))
    reported: dict[str, Any] = {"patch": operations[:_MOST_OPERATIONS]} if operations else {}
    if len(operations) > _MOST_OPERATIONS:
        reported["further_operations"] = len(operations) - _MOST_OPERATIONS
    return reported


def _operations(fixes: Sequence[AppliedFix]) -> Iterator[dict[str, Any]]:
    for fix in fixes:
        for operation in fix.patch:
            path = str(operation.get("path", ""))
            if operation.get("op") != "test" and not path.startswith(("/nodes", "/edges")):
                value = {"value": short_value(operation["value"])} if "value" in operation else {}
                yield {"rule": fix.rule, "op": operation["op"], "path": short_text(path, _LONGEST_ID), **value}
