"""Rung: a proposal was found in what was said."""

from __future__ import annotations

from ..marks import Mark, Subject
from ..posed import PosedCase
from .rung import PlanRung


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan":
        return None
    return Mark(passed=subject.is_read, why="" if subject.is_read else subject.refusal or "no proposal was found in it")


RUNG = PlanRung("parses", "is there a proposal in it?", _mark)
