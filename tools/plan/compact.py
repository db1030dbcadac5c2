"""The compact form of a plan document, expanded: `repeat` on nodes and edges, `like` on replicas.

The arithmetic is its own and tiny: `{i}`, `{i*8}`, `{i+1}`, `{i*8+7}` with whole numbers, nothing else; nothing is
evaluated. `{` is literal in what has no `repeat`. What cannot be expanded is reported as a fault (rule ST001) and
kept as it stands. The size of the result is bounded before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from .view import as_int, as_list, as_mapping, as_str, parse_device

MAX_NODES = 500_000
MAX_EDGES = 2_000_000

_PLACE = re.compile(r"\{([^{}]{0,64})\}")
_TERM = re.compile(r"i(?:\*(\d{1,9}))?(?:([+-])(\d{1,9}))?")
# Fields of a repeated node in which `{i}` is a number where it stands alone.
_NUMERIC_FIELDS = frozenset({"index", "rank", "experts", "layers", "device_offset", "offset"})


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """One place at which a document is not of the format: rule ST001 in the making."""

    path: str
    message: str
    value: Any = None
    expected: Any = None


class _ExpansionError(Exception):
    """A template that the arithmetic does not know."""


def _term(text: str, i: int) -> int:
    match = _TERM.fullmatch(text.replace(" ", ""))
    if match is None:
        raise _ExpansionError(f"{{{text}}} is not of the form {{i}}, {{i*8}}, {{i+1}} or {{i*8+7}}")
    value = i * int(match[1] or 1)
    if match[2]:
        value += int(match[3]) if match[2] == "+" else -int(match[3])
    if value < 0:
        raise _ExpansionError(f"{{{text}}} is negative at i = {i}")
    return value


def _fill_text(text: str, i: int) -> str:
    return _PLACE.sub(lambda match: str(_term(match[1], i)), text)


def _fill(value: object, i: int, *, numeric: bool) -> Any:
    """`value` with its templates filled in; a template that stands alone in a numeric field becomes a number."""
    if isinstance(value, str):
        alone = _PLACE.fullmatch(value) if numeric else None
        return _term(alone[1], i) if alone else _fill_text(value, i)
    if isinstance(value, list | tuple):
        return [_fill(item, i, numeric=numeric) for item in as_list(cast("object", value))]
    if isinstance(value, dict):
        return {key: _fill(item, i, numeric=numeric) for key, item in as_mapping(cast("object", value)).items()}
    return value


def _copies(item: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    return [
        {key: _fill(value, i, numeric=key in _NUMERIC_FIELDS) for key, value in item.items() if key != "repeat"}
        for i in range(count)
    ]


class _Expander:
    """One expansion of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.faults: list[SchemaFault] = []
        self.template_counts: dict[str, int] = {}

    def run(self) -> dict[str, Any]:
        nodes, edges = self.document.get("nodes"), self.document.get("edges")
        result = dict(self.document)
        if isinstance(nodes, list | tuple):
            result["nodes"] = self._repeat_nodes(as_list(cast("object", nodes)))
        if isinstance(edges, list | tuple):
            result["edges"] = self._repeat_edges(as_list(cast("object", edges)))
        if isinstance(nodes, list | tuple) and any("like" in as_mapping(node) for node in result["nodes"]):
            self._copy_replicas(result)
        return result

    def _count(self, item: Mapping[str, Any], path: str, room: int) -> int | None:
        """The `repeat` of `item` where it is sound, else a fault and `None`."""
        count = as_int(item["repeat"])
        if count is None or count < 1:
            self.faults.append(
                SchemaFault(
                    f"{path}/repeat", "repeat is not a positive whole number", item["repeat"], "an integer from 1"
                )
            )
            return None
        if count > room:
            self.faults.append(
                SchemaFault(f"{path}/repeat", "repeat makes the document too large", count, f"at most {room}")
            )
            return None
        return count

    def _repeat(self, item: Mapping[str, Any], path: str, room: int) -> list[dict[str, Any]]:
        count = self._count(item, path, room)
        if count is not None:
            try:
                return _copies(item, count)
            except _ExpansionError as error:
                self.faults.append(
                    SchemaFault(path, f"cannot be expanded: {error}", item.get("id"), "{i}, {i*8}, {i+1} or {i*8+7}")
                )
            except RecursionError:
                self.faults.append(SchemaFault(path, "cannot be expanded: nested too deeply"))
        return [{key: value for key, value in item.items() if key != "repeat"}]

    def _repeat_nodes(self, nodes: Iterable[Any]) -> list[Any]:
        expanded: list[Any] = []
        for position, item in enumerate(nodes):
            node = as_mapping(item)
            if "repeat" not in node:
                expanded.append(item)
                continue
            copies = self._repeat(node, f"/nodes/{position}", MAX_NODES - len(expanded))
            name = as_str(node.get("id"))
            if name is not None and "{" in name and len(copies) >= 1:
                self.template_counts[name] = len(copies)
            expanded.extend(copies)
        return expanded

    def _repeat_edges(self, edges: Iterable[Any]) -> list[Any]:
        expanded: list[Any] = []
        for position, item in enumerate(edges):
            edge = as_mapping(item)
            path = f"/edges/{position}"
            if "repeat" not in edge:
                # An edge that names a repeated node by its template stands for one edge a copy.
                counts = {self.template_counts.get(as_str(edge.get(end)) or "") for end in ("source", "target")} - {
                    None
                }
                if not counts:
                    expanded.append(item)
                    continue
                if len(counts) > 1:
                    self.faults.append(
                        SchemaFault(
                            path, "joins two repeated nodes of different repeat", sorted(cast("set[int]", counts))
                        )
                    )
                    expanded.append(item)
                    continue
                edge = {**edge, "repeat": counts.pop()}
            expanded.extend(self._repeat(edge, path, MAX_EDGES - len(expanded)))
        return expanded

    def _copy_replicas(self, result: dict[str, Any]) -> None:
        """Write out every replica that is `like` another: its descendants and the edges among them."""
        gpus_per_node = as_int(as_mapping(self.document.get("hardware")).get("gpus_per_node"))
        children: dict[str, list[Mapping[str, Any]]] = {}
        for item in result["nodes"]:
            node = as_mapping(item)
            parent = as_str(node.get("parent"))
            if parent is not None:
                children.setdefault(parent, []).append(node)
        nodes: list[Any] = []
        edges: list[Any] = list(as_list(result.get("edges")))
        bodies: dict[str, list[Mapping[str, Any]]] = {}
        body_edges: dict[str, list[Mapping[str, Any]]] = {}
        for position, item in enumerate(result["nodes"]):
            node = as_mapping(item)
            if "like" not in node:
                nodes.append(item)
                continue
            nodes.append({key: value for key, value in node.items() if key not in ("like", "device_offset")})
            problem = self._like_problem(node, gpus_per_node, children)
            if problem is not None:
                self.faults.append(SchemaFault(f"/nodes/{position}/{problem[0]}", problem[1], node.get(problem[0])))
                continue
            pattern, name, offset = str(node["like"]), str(node["id"]), as_int(node.get("device_offset")) or 0
            if pattern not in bodies:
                bodies[pattern] = _descendants(pattern, children)
                inside = {body.get("id") for body in bodies[pattern]}
                body_edges[pattern] = [
                    edge for edge in map(as_mapping, as_list(result.get("edges")))
                    if edge.get("source") in inside and edge.get("target") in inside
                ]  # fmt: skip
            if len(nodes) + len(bodies[pattern]) > MAX_NODES or len(edges) + len(body_edges[pattern]) > MAX_EDGES:
                self.faults.append(SchemaFault(f"/nodes/{position}/like", "makes the document too large", pattern))
                continue
            nodes.extend(_shifted(body, pattern, name, offset, gpus_per_node or 1) for body in bodies[pattern])
            edges.extend(
                {**edge, "source": f"{name}/{edge['source']}", "target": f"{name}/{edge['target']}"}
                for edge in body_edges[pattern]
            )
        result["nodes"], result["edges"] = nodes, edges

    @staticmethod
    def _like_problem(
        node: Mapping[str, Any], gpus_per_node: int | None, children: Mapping[str, list[Mapping[str, Any]]]
    ) -> tuple[str, str] | None:
        if node.get("type") != "ReplicaNode":
            return "like", "only a ReplicaNode may be like another"
        if as_str(node.get("id")) is None or as_str(node.get("like")) is None or node["like"] not in children:
            return "like", "names no replica that is written out"
        if any("like" in child for child in children[str(node["like"])]) or node["like"] == node["id"]:
            return "like", "names a replica that is itself written as like another"
        if "device_offset" in node and as_int(node["device_offset"]) is None:
            return "device_offset", "is not a whole number"
        if gpus_per_node is None or gpus_per_node < 1:
            return "device_offset", "needs hardware.gpus_per_node"
        return None


def _descendants(root: str, children: Mapping[str, list[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    seen = {root}
    queue = [root]
    for name in queue:
        for child in children.get(name, ()):
            found.append(child)
            child_id = as_str(child.get("id"))
            if child_id is not None and child_id not in seen:
                seen.add(child_id)
                queue.append(child_id)
    return found


def _shifted(body: Mapping[str, Any], pattern: str, name: str, offset: int, gpus_per_node: int) -> dict[str, Any]:
    copy = dict(body)
    copy["id"] = f"{name}/{body.get('id')}"
    copy["parent"] = name if body.get("parent") == pattern else f"{name}/{body.get('parent')}"
    if "devices" in body:
        copy["devices"] = [_shift_device(device, offset, gpus_per_node) for device in as_list(body["devices"])]
    return copy


def _shift_device(device: object, offset: int, gpus_per_node: int) -> object:
    place = parse_device(device) if isinstance(device, str) else None
    if place is None:
        return device
    flat = place[0] * gpus_per_node + place[1] + offset
    return f"n{flat // gpus_per_node}.g{flat % gpus_per_node}" if flat >= 0 else device


def is_compact(document: Mapping[str, Any]) -> bool:
    """Whether anything in `document` is written in the compact form."""
    return any(
        "repeat" in item or "like" in item
        for key in ("nodes", "edges")
        for item in map(as_mapping, as_list(document.get(key)))
    )


def expand(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[SchemaFault, ...]]:
    """`document` in the full form, and what of it could not be expanded. The input is not changed."""
    if not is_compact(document):
        return dict(document), ()
    expander = _Expander(document)
    return expander.run(), tuple(expander.faults)
