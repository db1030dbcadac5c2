"""The degrees of a phase are read once: rules, estimator and repair use the same."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.autofix.intent import read_intent
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.plan.degrees import DEGREE_NAMES, phase_degrees
from shardwright.tools.plan.layout_reader import read_layout
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_names, base_plan, edited


def usual(document: dict[str, Any], name: str) -> list[int | None]:
    """The degree `name` of every phase branch, as rules read it."""
    view = PlanView(document)
    return [phase_degrees(view, phase).usual(name) for phase in view.phases]


def timed(document: dict[str, Any], name: str) -> list[int]:
    """The degree `name` of every phase branch, as the estimator reads it."""
    layout = read_layout(PlanView(document), read_architecture(document["model"]["config"]))
    return [getattr(phase.degrees, name) or 1 for replica in layout.replicas for phase in replica.phases]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", base_names())
def test_what_rules_read_is_timed_and_repaired_toward(name: str) -> None:
    document = base_plan(name)
    strategy = read_intent(PlanView(document)).strategy
    assert strategy is not None
    for degree in DEGREE_NAMES:
        shown = usual(document, degree)
        assert timed(document, degree) == [value or 1 for value in shown]
        by_phase = {phase.phase: value for phase, value in zip(PlanView(document).phases, shown, strict=True)}
        for phase, value in by_phase.items():
            assert (getattr(getattr(strategy, phase or ""), degree) or 1) == (value or 1)


# An expert group that names two devices; a rank that stands twice.
_WIDE_GROUP = ("hybrid-tp2-ep2-pp2", "ep", Edit("set", "r0.decode.s0.b0.moe.e0", "devices", ["n0.g0", "n0.g1"]))
_RANK_TWICE = ("dense-pp2-tp2", "tp", Edit("set", "r0.prefill.s0.b0.attn.tp1", "rank", {"tp": 0}))


@pytest.mark.parametrize(("base", "degree", "edit"), [_WIDE_GROUP, _RANK_TWICE], ids=["wide group", "rank twice"])
def test_one_broken_operator_changes_nothing_of_what_its_phase_is_timed_by(base: str, degree: str, edit: Edit) -> None:
    broken = edited(base_plan(base), (edit,))
    assert timed(broken, degree) == timed(base_plan(base), degree)


def test_a_phase_without_a_whole_operator_shows_nothing_and_is_timed_by_what_is_left() -> None:
    broken = edited(base_plan("dense-tp4"), (Edit("set", "r0.prefill.s0.b0.attn.tp3", "rank", {"tp": 2}),))
    assert usual(broken, "tp") == [None, 4]
    assert timed(broken, "tp") == [3, 4]
