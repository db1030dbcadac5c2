"""Rung: the DAG is that of a golden: isomorphic with every node's type and labels, whatever the ids."""

from __future__ import annotations

from ..isomorphism import same_dag
from ..marks import Mark, Subject
from ..posed import PosedCase, right_documents
from .rung import PlanRung


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan" or not asked.case.goldens:
        return None
    if not asked.right:
        return Mark(passed=False, why="there is no answer that could be compared")
    right = list(right_documents(asked))
    if not right:
        return Mark(passed=False, why=f"no golden is a valid plan: {asked.right[0].fault}")
    if subject.document is None:
        return Mark(passed=False, why="there is no document")
    for place, one in enumerate(right):
        assert one.document is not None
        if same_dag(subject.document, one.document):
            return Mark(passed=True, why="" if place == 0 else f"variant {place}")
    return Mark(passed=False, why="its DAG is none of the goldens'")


RUNG = PlanRung("equivalent", "is its DAG isomorphic to a golden's?", _mark)
