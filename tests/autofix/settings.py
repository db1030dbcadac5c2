"""Small settings and proposals for the tests of intent and re-planning."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.rules.examples import base_plan

GRAPH = ("nodes", "edges", "construction", "reasoning", "performance")


def only_strategy(name: str) -> dict[str, Any]:
    """The header of a base plan, without nodes and edges."""
    return {key: value for key, value in base_plan(name).items() if key not in GRAPH}


def below(document: dict[str, Any], root: str) -> set[str]:
    """Ids of a node and of all its descendants."""
    ids = {root}
    while True:
        children = {node["id"] for node in document["nodes"] if node["parent"] in ids} - ids
        if not children:
            return ids
        ids |= children


def without(document: dict[str, Any], ids: set[str]) -> dict[str, Any]:
    """`document` without these nodes and their edges."""
    document["nodes"] = [node for node in document["nodes"] if node["id"] not in ids]
    document["edges"] = [edge for edge in document["edges"] if not {edge["source"], edge["target"]} & ids]
    return document


def without_types(document: dict[str, Any], *types: str) -> dict[str, Any]:
    """`document` without the nodes of these types and their descendants."""
    ids = {node["id"] for node in document["nodes"] if node["type"] in types}
    return without(document, set().union(*(below(document, name) for name in ids)))


_DEGREE = st.sampled_from([1, 2, 3, 4, 8])


@st.composite
def phases(draw: st.DrawFn) -> PhaseStrategy:
    """Any degrees of one phase, legal or not."""
    cut = draw(st.sampled_from([None, None, (3, 5), (2, 3, 3), (1, 7)]))
    return PhaseStrategy(
        pp=len(cut) if cut else draw(_DEGREE),
        sp=draw(_DEGREE),
        ep=draw(_DEGREE),
        tp=draw(_DEGREE),
        tp_ffn=draw(_DEGREE),
        stage_layers=cut,
        sp_kind=draw(st.sampled_from([None, "ulysses", "all_gather"])),
    )


@st.composite
def any_strategies(draw: st.DrawFn) -> Strategy:
    """Any strategy, legal or not: both phases of a replica, or replicas of one phase each."""
    prefill, decode, dp = draw(phases()), draw(phases()), draw(_DEGREE)
    if draw(st.booleans()):
        prefill, decode = (phase.model_copy(update={"replicas": draw(_DEGREE)}) for phase in (prefill, decode))
        dp = (prefill.replicas or 0) + (decode.replicas or 0)
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
