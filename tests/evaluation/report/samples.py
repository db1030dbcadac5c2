"""A small marked run, on which the reports of an evaluation are tested."""

from __future__ import annotations

from functools import cache

from shardwright.agent.evaluation.case import Broken, Case, Golden
from shardwright.agent.evaluation.detail import detail_of
from shardwright.agent.evaluation.report.summary import Summary, summed_up
from shardwright.agent.evaluation.results import CaseResult, Header, Kept
from shardwright.agent.evaluation.score import score_case
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.tools.rules.base import Edit

HEADER = Header(
    shardwright="0.1.0", dataset="a <small> one", dataset_hash="ab" * 32, solver="builtin", is_deterministic=True
)
HOSTILE = '<script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">&\x07\u202e'
_CASES = (
    Case(
        id="count-of-seven",
        family="moe",
        proposal=Broken(
            base="moe-ep2", edits=(Edit("set_top", field="strategy/gpu_count", value=7),)
        ),
        goldens=(Golden(base="moe-ep2", by="builder"),),
        rules=("GP001",),
        why="Two devices are used.",
    ),
    Case(id="hostile", family="odd", request=HOSTILE, expect="refused", refusal=("words that it has not",)),
    Case(id="not-understood", family="odd", request="Fly me to the moon", expect="refused"),
    Case(id="no-such-base", family="broken", proposal=Broken(base="no-plan", edits=(Edit("remove_node", id="x"),))),
)  # fmt: skip


@cache
def kept_cases() -> tuple[Kept, ...]:
    """A repaired case, one refused for the wrong reason, one rightly refused, and one with a fault of the dataset."""
    cases: list[Kept] = []
    for case in _CASES:
        scored = score_case(case, BuiltIn())
        cases.append(Kept(key=case.id, result=scored.result, detail=detail_of(scored), seconds=0.25))
    return tuple(cases)


def results() -> tuple[CaseResult, ...]:
    """The results of these cases."""
    return tuple(case.result for case in kept_cases())


def summary() -> Summary:
    """The summary of the small run."""
    return summed_up(HEADER, kept_cases())
