"""Rung: the document breaks no hard rule."""

from __future__ import annotations

from ..marks import Mark, Subject
from ..posed import PosedCase
from .rung import PlanRung


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan":
        return None
    why = subject.refusal or "there is no document" if subject.document is None else ", ".join(subject.rules)
    return Mark(passed=subject.is_valid, value=float(len(subject.rules)), why="" if subject.is_valid else why)


RUNG = PlanRung("rules", "does it keep every hard rule?", _mark)
