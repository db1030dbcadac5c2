"""Whether two plans have the same DAG: isomorphic, with each node's type and labels; ids and order do not count.

Colour refinement comes first: graphs with different colours differ. Graphs with equal colours go to networkx (VF2++),
each node labelled by its colour, up to a size at which that is quick; beyond it the colours decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import networkx as nx

from ...tools.plan.canonical import ColouredGraph, coloured_graph
from ...tools.plan.compact import expand
from ...tools.plan.view import PlanView
from .judged import CacheKey, key_of

# Most nodes and edges of a graph for networkx: some tenths of a second.
MOST_ELEMENTS = 1500


def same_dag(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether the graphs of two documents are equal but for ids and order. Headers are not compared."""
    key, other_key = key_of(a), key_of(b)
    return key == other_key or _same(key, other_key)


@lru_cache(maxsize=128)
def _same(a: CacheKey, b: CacheKey) -> bool:
    first, second = _coloured(a), _coloured(b)
    if first.signature != second.signature:
        return False
    if len(first.colours) + len(first.links) > MOST_ELEMENTS:
        return True
    return nx.vf2pp_is_isomorphic(_graph(first), _graph(second), node_label="colour")


@lru_cache(maxsize=16)
def _coloured(document: CacheKey) -> ColouredGraph:
    return coloured_graph(PlanView(expand(document.value)[0]))


def _graph(coloured: ColouredGraph) -> nx.DiGraph[int]:
    """The graph for networkx; each edge is a node between its ends, so that edges have labels and may be parallel."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    for index, colour in enumerate(coloured.colours):
        graph.add_node(index, colour=colour)
    for place, (source, target, label) in enumerate(coloured.links, start=len(coloured.colours)):
        graph.add_node(place, colour=label)
        graph.add_edge(source, place)
        graph.add_edge(place, target)
    return graph
