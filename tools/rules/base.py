"""What a rule is and what it reports.

A rule is one module `tools/rules/<family>/<offence>.py` with one `RULE = Rule(...)`. Its check is a generator of
findings over the prepared view of a plan; it never prints, never changes its input, never raises for bad input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ..plan.view import EdgeView, NodeView, PlanView

Severity = Literal["error", "warning"]
FixKind = Literal["local", "re-plan", "report", "none"]


class Violation(BaseModel):
    """One finding: which rule, where, what stands there, what would pass, and how to mend it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    severity: Severity
    message: str
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    path: str = ""
    fix: FixKind = "none"
    source: str = ""
    value: Any = None
    expected: Any = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check yields: a violation less what the rule itself knows. `where` gives the JSON Pointer."""

    message: str
    where: NodeView | EdgeView | str = ""
    nodes: Sequence[NodeView | str] = ()
    edges: Sequence[EdgeView] = ()
    value: Any = None
    expected: Any = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to a base plan, by node id: `add_node`, `remove_node`, `set`, `add_edge`, `remove_edge`, `set_top`.

    `set` changes `field` of node `id` to `value`; `set_top` changes the document value at JSON Pointer `field`.
    Removing a node removes what hangs below it and its edges.
    """

    action: Literal["add_node", "remove_node", "set", "add_edge", "remove_edge", "set_top"]
    id: str = ""
    field: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Example:
    """A base plan by name (`tools/rules/examples.py`) and the edits that make the example out of it."""

    base: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One hard rule (or warning). `name` is the offence; `remedy` the default remedy line of its findings."""

    id: str
    name: str
    severity: Severity
    requirement: str
    rationale: str
    source: str
    fix: FixKind
    remedy: str
    check: Callable[[PlanView], Iterable[Finding]]
    good: Example
    bad: Example

    def run(self, view: PlanView) -> Iterator[Violation]:
        """The violations of this rule in `view`, in the order of the check."""
        for finding in self.check(view):
            yield self.violation(finding)

    def violation(self, finding: Finding) -> Violation:
        """`finding` with what this rule knows."""
        where = finding.where
        nodes = [node if isinstance(node, str) else node.id for node in finding.nodes]
        edges = [(edge.source_id, edge.target_id) for edge in finding.edges]
        if isinstance(where, NodeView) and where.id not in nodes:
            nodes.insert(0, where.id)
        if isinstance(where, EdgeView) and (where.source_id, where.target_id) not in edges:
            edges.insert(0, (where.source_id, where.target_id))
        return Violation(
            rule=self.id,
            severity=self.severity,
            message=finding.message,
            nodes=tuple(nodes),
            edges=tuple(edges),
            path=where if isinstance(where, str) else where.path,
            fix=self.fix,
            source=self.source,
            value=plain(finding.value),
            expected=plain(finding.expected),
            remedy=finding.remedy or self.remedy,
        )


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: sets sorted, tuples as lists, mappings as dicts."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value
