"""The small part of a plan's DAG that a rule's example is about, as an indented tree of bounded size.

Drawn are the nodes that findings or edits name, the path from the root to them, and what edges join them to; the rest
is counted. A marked line is what a finding names. It draws what the document holds, broken or not, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ...tools.plan.view import EdgeView, NodeView, PlanView, as_str
from .text import value_text

if TYPE_CHECKING:
    from ...tools.rules.base import Example, Violation

MAX_LINES = 40
_MAX_FOCUS = 6
_MAX_EDGES = 4
_MAX_PLACES = 4
_MAX_ID = 44
# Fields that distinguish nodes of one type, in the order of reading.
_DETAILS = ("phase", "index", "layers", "period", "offset", "kind", "role", "rank", "experts", "tokens_per_step")


class Focus(Struct, frozen=True):
    """What to draw: ids of nodes, ends of edges and places in the document; marks carry the rule's id."""

    nodes: tuple[str, ...]
    places: tuple[str, ...]
    marked_nodes: frozenset[str] = frozenset()
    marked_edges: frozenset[tuple[str, str]] = frozenset()
    marked_places: frozenset[str] = frozenset()
    mark: str = ""


def focus_of(example: Example, violations: Iterable[Violation], rule_id: str) -> Focus:
    """What `example` is about: what findings of the rule name, then what its edits touch."""
    findings = [violation for violation in violations if violation.rule == rule_id]
    edges = [edge for violation in findings for edge in violation.edges]
    nodes = [end for edge in edges for end in edge]
    nodes += [node for violation in findings for node in violation.nodes[:_MAX_FOCUS]]
    touched = [name for edit in example.edits for name in _touched(edit.id, edit.value)]
    places = [edit.field for edit in example.edits if edit.action == "set_top"]
    named = [violation.path for violation in findings if not violation.path.startswith(("/nodes/", "/edges/"))]
    first = findings[0].nodes if findings else ()
    # The first of each kind of place before the others: a rule may name many nodes and its edits only one.
    ordered = dict.fromkeys([*(first[:1] if first else ()), *touched, *nodes])
    return Focus(
        nodes=tuple(ordered),
        places=tuple(dict.fromkeys(place for place in (*named, *places) if place)),
        marked_nodes=frozenset(node for violation in findings if not violation.edges for node in violation.nodes),
        marked_edges=frozenset(edges),
        marked_places=frozenset(named),
        mark=rule_id,
    )


def _touched(node: str, value: Any) -> Iterator[str]:
    """Ids of the nodes that an edit names: its own, or those of the node (and where it hangs) or edge that it adds."""
    if node:
        yield node
    elif isinstance(value, Mapping):
        named = (as_str(value.get(key)) for key in ("source", "target", "id", "parent"))
        yield from (name for name in named if name is not None)


def draw(document: Mapping[str, Any], focus: Focus) -> tuple[str, ...]:
    """The part of `document` that `focus` names, at most `MAX_LINES` lines."""
    view = PlanView(document)
    lines = [
        _place_line(view, place) + (f" ◄ {focus.mark}" if place in focus.marked_places else "")
        for place in focus.places[:_MAX_PLACES]
    ]
    lines += _Tree(view, focus).lines()
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… {len(lines) - MAX_LINES + 1} more lines"]
    return tuple(lines)


def _place_line(view: PlanView, place: str) -> str:
    value: Any = view.raw
    for key in place.removeprefix("/").split("/"):
        if isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            return f"{place} is absent"
    return f"{place} = {value_text(value, 80)}"


class _Tree(Struct):
    """The drawn nodes of one view: focus, ancestors and what edges join to the focus."""

    view: PlanView
    focus: Focus
    chosen: dict[int, NodeView] = field(default_factory=dict[int, NodeView])
    shown: dict[int, NodeView] = field(default_factory=dict[int, NodeView])

    def __post_init__(self) -> None:
        present = [self.view.by_id[name] for name in self.focus.nodes if name in self.view.by_id]
        self.chosen = {node.position: node for node in present[:_MAX_FOCUS]}
        for node in self.chosen.values():
            joined = [edge.target for edge in node.edges_out[:_MAX_EDGES]]
            joined += [edge.source for edge in node.edges_in[:_MAX_EDGES]]
            for other in (node, *(end for end in joined if end is not None)):
                self.shown[other.position] = other
        for node in list(self.shown.values()):
            self.shown.update({parent.position: parent for parent in node.ancestors()})

    def lines(self) -> list[str]:
        roots = [node for node in self._in_order(self.shown.values()) if not self._is_below(node)]
        lines: list[str] = []
        for root in roots:
            lines += [self._line(root, ""), *self._edges(root, "  "), *self._below(root, "", set())]
        return lines

    def _is_below(self, node: NodeView) -> bool:
        """Whether another line leads to this node; on a cycle of parents the first of it in the document does."""
        above = [parent.position for parent in node.ancestors()]
        is_cycle = bool(above) and node.parent is not None and self._ends_in_cycle(node)
        return bool(above) and not (is_cycle and node.position <= min(above))

    @staticmethod
    def _ends_in_cycle(node: NodeView) -> bool:
        *_, last = node.ancestors()
        return last.parent is not None

    @staticmethod
    def _in_order(nodes: Iterable[NodeView]) -> list[NodeView]:
        return sorted(nodes, key=lambda node: node.position)

    def _below(self, node: NodeView, indent: str, seen: set[int]) -> Iterator[str]:
        seen.add(node.position)
        drawn = [child for child in node.children if child.position in self.shown and child.position not in seen]
        hidden = len(node.children) - len(drawn)
        for place, child in enumerate(drawn):
            is_last = place == len(drawn) - 1 and not hidden
            inner = indent + ("   " if is_last else "│  ")
            yield self._line(child, indent + ("└─ " if is_last else "├─ "))
            yield from self._edges(child, inner)
            yield from self._below(child, inner, seen)
        if hidden and (drawn or node.position in self.chosen):
            yield f"{indent}└─ … {hidden} more {'child' if hidden == 1 else 'children'}"

    def _line(self, node: NodeView, indent: str) -> str:
        details = [f"{key} {value_text(node.raw[key], 30)}" for key in _DETAILS if _is_said(node.raw.get(key))]
        devices = [f"[{' '.join(node.devices[:8])}{' …' if len(node.devices) > 8 else ''}]"] if node.devices else []
        mark = [f"◄ {self.focus.mark}"] if node.id in self.focus.marked_nodes else []
        return f"{indent}{' '.join([_short(node.id), node.type or '(no type)', *details, *devices, *mark])}"

    def _edges(self, node: NodeView, indent: str) -> Iterator[str]:
        """Edges of a node in focus; those of the others would say the same from the other end."""
        if node.position not in self.chosen:
            return
        yield from self._some(node.edges_out, indent, "→")
        inwards = [edge for edge in node.edges_in if edge.source is None or edge.source.position not in self.chosen]
        yield from self._some(inwards, indent, "←")

    def _some(self, edges: Sequence[EdgeView], indent: str, arrow: str) -> Iterator[str]:
        marked = [edge for edge in edges if (edge.source_id, edge.target_id) in self.focus.marked_edges]
        ordered = [*marked, *(edge for edge in edges if edge not in marked)]
        for edge in ordered[:_MAX_EDGES]:
            end, other = (edge.target_id, edge.target) if arrow == "→" else (edge.source_id, edge.source)
            words = [arrow, _short(end), edge.type, *(["(no such node)"] if other is None else [])]
            yield f"{indent}   {' '.join([*words, *([f'◄ {self.focus.mark}'] if edge in marked else [])])}"
        if len(ordered) > _MAX_EDGES:
            yield f"{indent}   {arrow} … {len(ordered) - _MAX_EDGES} more"


def _is_said(value: object) -> bool:
    return value is not None and value != {} and value != []


def _short(name: str) -> str:
    return value_text(name, _MAX_ID)
