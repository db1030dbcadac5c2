"""A Graphviz digraph as an object with nodes and edges: statements, attributes, chains, groups; nothing else of DOT."""

from __future__ import annotations

import re
from typing import Any

_HEAD = re.compile(r"\b(?:strict\s{1,20})?digraph\b[^\n{]{0,100}\{")
_STATEMENT = re.compile(r"(?:\"[^\"]{0,500}\"|\[[^\]]{0,2000}\]|\{[^{}]{0,2000}\}|[^;\n\"\[{}])+")
_NODE = re.compile(r"\s*\"?([\w.\-]{1,100})\"?\s*\[(.*)\]\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r"([A-Za-z_]\w{0,40})\s{0,4}=\s{0,4}(\"[^\"]{0,300}\"|[^\s,;\]]{1,100})")
_MOST_CHARS = 200_000
_NOT_NODES = frozenset({"node", "edge", "graph"})


def digraph_of(text: str) -> dict[str, Any] | None:
    """The first digraph of `text`, or `None`."""
    head = _HEAD.search(text[:_MOST_CHARS])
    if head is None:
        return None
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[str] = []
    for match in _STATEMENT.finditer(text, head.end(), head.end() + _MOST_CHARS):
        statement = match.group().strip()
        if "->" in statement:
            edges.append(re.sub(r"\[[^\]]{0,2000}\]", "", statement).strip())
        elif (node := _NODE.fullmatch(statement)) and node[1] not in _NOT_NODES:
            nodes[node[1]] = {name: value.strip('"') for name, value in _ATTRIBUTE.findall(node[2])}
    return {"nodes": nodes, "edges": edges} if nodes or edges else None
