"""The places of findings in a document: their order in feedback, and the parts that are right already.

The document may be anything. Nothing is judged here: the validator found the faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...tools.plan.document import PHASES
from ...tools.plan.view import as_list, as_mapping, as_str
from ...tools.rules.base import Violation, printable
from ...tools.rules.registry import rule_order

# No plan is as deep; a deeper chain is a cycle.
_DEEPEST = 16


class Places:
    """The nodes of a document by id, as findings name them."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        nodes = [as_mapping(node) for node in as_list(document.get("nodes"))]
        named = ((as_str(node.get("id")), node) for node in nodes)
        self._nodes = {printable(name): node for name, node in reversed(list(named)) if name is not None}
        self.count = len(nodes)

    def has(self, node_id: str) -> bool:
        """Whether there is a node of that id."""
        return node_id in self._nodes

    def _line(self, node_id: str) -> list[Mapping[str, Any]]:
        """The node and its ancestors, upwards."""
        line: list[Mapping[str, Any]] = []
        name: str | None = node_id
        while name is not None and len(line) < _DEEPEST and (node := self._nodes.get(printable(name))) is not None:
            line.append(node)
            name = as_str(node.get("parent"))
        return line

    def depth(self, node_id: str) -> int:
        """How many nodes lie above a node; 0 for an unknown one."""
        return max(0, len(self._line(node_id)) - 1)

    def phase(self, node_id: str) -> str | None:
        """The phase in whose branch a node lies."""
        return next((as_str(node.get("phase")) for node in self._line(node_id) if node.get("phase") is not None), None)

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that the document has."""
        present = {as_str(node.get("phase")) for node in self._nodes.values()}
        return tuple(phase for phase in PHASES if phase in present)


def _named(violation: Violation) -> Iterable[str]:
    return (*violation.nodes, *(end for edge in violation.edges for end in edge))


def parents_first(violations: Iterable[Violation], document: Mapping[str, Any]) -> tuple[Violation, ...]:
    """The findings of each rule from the root downwards; rules in the report's order, structure before meaning."""
    places = Places(document)

    def key(violation: Violation) -> tuple[Any, ...]:
        depths = [places.depth(name) for name in _named(violation) if places.has(name)]
        return rule_order(violation.rule), min(depths, default=0)

    return tuple(sorted(violations, key=key))


def right_already(violations: Iterable[Violation], document: Mapping[str, Any]) -> str | None:
    """The parts to leave alone, in one line; `None` if nothing is faulty, or there is no graph."""
    errors = [violation for violation in violations if violation.severity == "error"]
    places = Places(document)
    if not errors or not places.count:
        return None
    faulty = {name for violation in errors for name in _named(violation) if places.has(name)}
    if not faulty:
        return f"no finding is about any of the {places.count} nodes alone: change what the findings name, no more"
    hit = {places.phase(name) for name in faulty}
    text = f"{places.count - len(faulty)} of {places.count} nodes have no finding: keep them as they are"
    clean = [phase for phase in places.phases if phase not in hit] if None not in hit else []
    return f"{text}; nothing in {' or '.join(clean)} is faulty" if clean else text
