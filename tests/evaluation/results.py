"""Results of cases made without a run."""

from __future__ import annotations

from shardwright.agent.evaluation.marks import Mark
from shardwright.agent.evaluation.results import CaseResult


def result(own_id: str, family: str, passed: bool, epoch: int = 1, digest: str = "") -> CaseResult:
    """A result whose rules rung is passed or not in the final stage."""
    stages = {"final": {"rules": Mark(passed=passed)}}
    return CaseResult(id=own_id, family=family, case=digest or own_id, epoch=epoch, answer="plan", stages=stages)


def run_of(marks: str, of_family: int = 1) -> tuple[CaseResult, ...]:
    """A run with a case for each character, `+` passed or `-` not, `of_family` of them in each family."""
    return tuple(
        result(f"case-{place:03}", f"family-{place // of_family:03}", mark == "+") for place, mark in enumerate(marks)
    )
