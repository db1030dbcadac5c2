"""ST001: the document matches the published JSON Schema.

The reader finds these faults while it reads (it alone sees what was not expanded, what stands twice and what the
schema refuses), so the check over the view has nothing to add. Every other rule still runs on what was read.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.faults import SchemaFault
from ...plan.view import PlanView
from ..base import Example, Finding, Rule, Violation, set_top
from ..edits import Change
from .coercion import coercions


def check(view: PlanView) -> tuple[Finding, ...]:
    """Nothing: what breaks the schema is not in the view."""
    del view
    return ()


def finding_of(fault: SchemaFault, nodes: tuple[str, ...]) -> Finding:
    """A fault that the reader found, at the nodes that its place names."""
    return Finding("breaks-schema", fault.message, fault.path, nodes, (), fault.value, fault.expected)


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """All values of the document that can only mean one thing, written as the format writes it."""
    del violation
    yield from view.once(mend, lambda: tuple(coercions(view.raw)))


RULE = Rule(
    id="ST001",
    name="document that breaks the schema",
    requirement=(
        "The document matches the published JSON Schema: types, required fields, closed sets of node and edge types, "
        "no unknown field outside `model.config`."
    ),
    rationale="What a program cannot read as the format says, two programs will read in two ways.",
    source="000 §7, 002 §7",
    remedy="write it as `shardwright schema` says",
    check=check,
    bad=Example("dense-1", (set_top("/workload/concurrency", "four"),)),
    mend=mend,
)
