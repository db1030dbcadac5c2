"""A report of a plan that has to survive the loss of a node says what stops until servers run on the free one."""

from __future__ import annotations

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan

WORDS = "Llama-3.1-70B on 4 nodes of 8 H100, 3000 in, 500 out, 48 users, {}"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("demands", "said"),
    [
        ("prefill and decode apart, must survive the loss of one node", "stops all service where a phase has no other"),
        ("no disaggregation, must survive the loss of one node", "the others go on serving"),
        ("one node must stay free", None),
    ],
)
def test_what_the_loss_of_a_node_stops_is_said(demands: str, said: str | None) -> None:
    report = " ".join(render_plan(plan(WORDS.format(demands)), width=120).split())
    assert (said or "Valid plan") in report and ("have to be started on what stays free" in report) is (
        said is not None
    )
