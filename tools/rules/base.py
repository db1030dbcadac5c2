"""Rules, and how they report findings.

A rule is one module `tools/rules/<family>/<offence>.py` with one `RULE = Rule(...)`. It names what it `visits`, and
`decide(view, thing)` yields the findings about each visited thing; the engine walks the plan. A rule that needs the
whole plan has `check(view)` instead. Neither prints or changes its input. A rule that cannot read what it needs lets
the `InputError` through: nothing passes because it could not be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InputError
from ..plan.view import EdgeView, NodeView, PlanView
from .findings import MAX_NAMES, MAX_NODES, Change, Finding, FixKind, Severity, Violation
from .legality import DegreeLimit, PairFaults, PipelineFaults
from .sharding import tensor_holders
from .shown_faults import shown_faults
from .tree import is_consequence

__all__ = [
    "MAX_NAMES",
    "MAX_NODES",
    "Edit",
    "Example",
    "Finding",
    "FixKind",
    "Rule",
    "Severity",
    "Violation",
    "plain",
    "printable",
    "served_by",
    "set_top",
]

# What a rule may visit, and how to list it; a tuple names node types. `parts` is a plan without copied parts, for rules
# that find the same in a copy as in the original; only `plan` is for comparing replicas or reading device numbers.
VISITED: Mapping[str, Callable[[PlanView], Iterable[Any]]] = {
    "plan": lambda view: (view,),
    "parts": lambda view: (view,),
    "phase": lambda view: view.phases,
    "stage": lambda view: view.stages,
    "tp_operator": tensor_holders,
    "node": lambda view: view.nodes,
    "link": lambda view: view.links,
}
Visits = Literal["plan", "parts", "phase", "stage", "tp_operator", "node", "link"] | tuple[str, ...]


# A dataclass, since pydantic reads it in datasets of broken plans.
@dataclass(frozen=True, slots=True)
class Edit:
    """One change to a base plan, by node id: `add_node`, `remove_node`, `set`, `add_edge`, `remove_edge`, `set_top`.

    `set` changes `field` of node `id` to `value`; `set_top` changes the document value at JSON Pointer `field`, and
    `scale` multiplies the number there by `value`. `evaluate` writes the plan's estimate into `performance`.
    Removing a node removes what hangs below it and its edges.
    """

    action: Literal["add_node", "remove_node", "set", "add_edge", "remove_edge", "set_top", "evaluate", "scale"]
    id: str = ""
    field: str = ""
    value: Any = None


def set_top(field: str, value: Any) -> Edit:
    """The edit that sets `value` at the JSON Pointer `field`."""
    return Edit("set_top", field=field, value=value)


def served_by(engine: str, **settings: str) -> Edit:
    """The edit that names the engine of a plan."""
    return set_top("/serving", {"engine": engine, **settings})


class Example(Struct, frozen=True):
    """A base plan by name (`tools/rules/examples.py`) and the edits that turn it into the example."""

    base: str = ""
    edits: tuple[Edit, ...] = ()


class Rule(Struct, frozen=True, kw_only=True):
    """One rule: an error makes a plan invalid, a warning does not. `name` is the offence.

    `remedy` is the default remedy line of its findings.

    `bad` breaks the rule and `good` does not; `good` starts from the base plan of `bad` if it names none.

    `visits` is what it looks at: `decide` is called for each such thing, or `check` once for `plan` and `parts`;
    a yielded `None` is no finding.

    A rule that `rests_on_estimate` runs after the others and can ask (`PlanView.is_sound`) whether these found the
    graph in order: figures of a faulty graph would only repeat its fault.

    `mend` gives the changes that mend a finding, if they do not follow from the plan that the author meant.

    A rule on degrees also states which are legal before there is a graph (`legality.py`): `limits` on those of a
    stage, `pipeline_faults` of a number of stages, `pair_faults` of a replica that serves both phases. Without `decide`
    and `check`, its findings are the operators of the graph that break its `limits`.
    """

    id: str
    name: str
    severity: Severity = "error"
    requirement: str
    rationale: str
    source: str
    fix: FixKind = "local"
    remedy: str
    good: Example = Example()
    bad: Example
    visits: Visits = "plan"
    decide: Callable[[PlanView, Any], Iterable[Finding | None]] | None = None
    check: Callable[[PlanView], Iterable[Finding | None]] | None = None
    rests_on_estimate: bool = False
    mend: Callable[[PlanView, Violation], Iterable[Change]] | None = None
    limits: tuple[DegreeLimit, ...] = ()
    pipeline_faults: PipelineFaults | None = None
    pair_faults: PairFaults | None = None

    def __post_init__(self) -> None:
        """Complete the good example, and what limits are applied to."""
        if self.decide is None and self.check is None:
            force_setattr(self, "visits", "parts")
        if not self.good.base:
            force_setattr(self, "good", Example(self.bad.base, self.good.edits))

    @property
    def module(self) -> str:
        """The full name of the module that the rule is written in."""
        return (self.decide or self.check or self.limits[0].faults).__module__

    def run(self, view: PlanView) -> Iterator[Violation]:
        """The violations of this rule in `view`, in the order of its visits, without consequences of other faults.

        If the rule could not read the plan, `view.unjudged` gets the error.
        """
        try:
            for finding in filter(None, self._findings(view)):
                if not is_consequence(view, finding.lacks, finding.unlinked):
                    yield self.violation(finding)
        except InputError as error:
            view.unjudged[self.id] = error

    def _findings(self, view: PlanView) -> Iterable[Finding | None]:
        if self.check is not None:
            return self.check(view)
        decide, visits = self.decide, self.visits
        if decide is None:
            return shown_faults(view, self.limits)
        things = VISITED[visits](view) if isinstance(visits, str) else view.of_type(*visits)
        return chain.from_iterable(decide(view, thing) for thing in things)

    def violation(self, finding: Finding) -> Violation:
        """`finding` completed by the fields of this rule."""
        where = finding.where
        nodes = finding.node_ids
        edges = [(edge.source_id, edge.target_id) for edge in finding.edges]
        if not isinstance(where, NodeView | EdgeView | str):
            nodes = [*(node.id for node in where[:MAX_NODES]), *nodes]
            where = where[0]
        if isinstance(where, NodeView) and where.id not in nodes:
            nodes.insert(0, where.id)
        if isinstance(where, EdgeView) and (where.source_id, where.target_id) not in edges:
            edges.insert(0, (where.source_id, where.target_id))
        return Violation(
            rule=self.id,
            message_id=finding.message_id,
            severity=finding.severity or self.severity,
            message=printable(finding.message),
            nodes=tuple(printable(node) for node in nodes),
            edges=tuple((printable(source), printable(target)) for source, target in edges),
            path=printable(where) if isinstance(where, str) else where.path,
            fix=finding.fix or self.fix,
            source=self.source,
            value=plain(finding.value),
            expected=plain(finding.expected),
            remedy=printable(finding.remedy) or self.remedy,
        )


_MAX_SHOWN_DEPTH = 24


def printable(text: str) -> str:
    """`text` as valid UTF-8: half a surrogate pair, which JSON can contain, becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def plain(value: Any, depth: int = _MAX_SHOWN_DEPTH) -> Any:
    """`value` as JSON: sets sorted, tuples as lists, mappings as dicts; cut off below `depth` levels."""
    if isinstance(value, str):
        return printable(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {printable(str(key)): plain(item, depth - 1) for key, item in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - raw JSON
    if isinstance(value, set | frozenset):
        return sorted((plain(item, depth - 1) for item in value), key=str)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - raw JSON
    if isinstance(value, list | tuple):
        return [plain(item, depth - 1) for item in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - raw JSON
    return printable(repr(value))
