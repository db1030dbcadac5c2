"""The detail of a case for the page is bounded, whatever was proposed."""

from __future__ import annotations

import json

from shardwright.agent.evaluation.case import Broken, Case, Golden
from shardwright.agent.evaluation.detail import detail_of
from shardwright.agent.evaluation.score import Scored, score_case
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.tools.rules.base import Edit


def test_a_long_proposal_is_shortened() -> None:
    text = f"TP 2 please. {'blah ' * 3_000}"
    case = Case(id="long", family="long", proposal=Broken(text=text), goldens=(Golden(base="dense-tp2"),))
    (first, *_) = detail_of(score_case(case, BuiltIn())).proposals
    assert first.text.startswith("TP 2 please.")
    assert len(first.text) < 5000


def test_many_faults_are_capped_and_counted() -> None:
    names = ("attn", "ffn")
    edits = [Edit("set", id=f"r0.prefill.s0.b0.{name}", field=f"odd{'y' * 9000}", value=1) for name in names]
    edits += [Edit("add_edge", value={"source": f"nobody{i}", "target": "r0", "type": "data"}) for i in range(40)]
    golden = Golden(base="dense-tp2")
    case = Case(id="many", family="many", proposal=Broken(base="dense-tp2", edits=tuple(edits)), goldens=(golden,))
    detail = detail_of(score_case(case, BuiltIn()))
    first = detail.proposals[0]
    assert "more" in first.findings[-1]
    assert all(len(finding) < 600 for finding in (*first.findings, *first.fixes))
    assert len(first.patch) <= 41
    assert first.patch[-1].keys() == {"further_operations"} or len(first.patch) <= 40
    assert len(json.dumps(detail.model_dump(mode="json"))) < 80_000


def test_what_broke_in_the_harness_has_no_detail() -> None:
    case = Case(id="gone", family="gone", proposal=Broken(base="no-plan", edits=(Edit("remove_node", id="x"),)))
    scored = score_case(case, BuiltIn())
    assert isinstance(scored, Scored)
    assert scored.result.fault is not None
    assert detail_of(scored).proposals == ()
