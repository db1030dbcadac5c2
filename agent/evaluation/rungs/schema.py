"""Rung: a document came of it, and matches the JSON Schema of plans (rule ST001)."""

from __future__ import annotations

from ..marks import Mark, Subject
from ..posed import PosedCase
from .rung import PlanRung


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan":
        return None
    if subject.document is None:
        return Mark(passed=False, why=subject.refusal or "there is no document")
    broken = "ST001" in subject.rules
    return Mark(passed=not broken, why="ST001: it breaks the schema" if broken else "")


RUNG = PlanRung("schema", "does it match the JSON Schema?", _mark)
