"""Expands the compact form of a plan document: `repeat` on nodes and edges, `like` on replicas.

Templates are `{i}`, `{i*8}`, `{i+1}` and `{i*8+7}` with whole numbers, and nothing is evaluated. `{` is literal without
`repeat`. What cannot be expanded is reported as a fault (rule ST001) and kept as it is. The size of the result is
bounded (`plan_size.py`) before anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..checkpoint import checked
from .element_reader import SchemaFault
from .elements import as_int, as_list, as_mapping, as_str
from .plan_size import Room, size_of
from .replica_copies import ReplicaCopier

_PLACE = re.compile(r"\{([^{}]{0,64})\}")
_TERM = re.compile(r"i(?:\*(\d{1,9}))?(?:([+-])(\d{1,9}))?")
# Fields of a repeated node in which a template alone becomes a number.
_NUMERIC_FIELDS = frozenset({"index", "rank", "experts", "layers", "device_offset", "offset"})


class _ExpansionError(Exception):
    """A template that cannot be expanded."""


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


def _fill(value: object, i: int, *, numeric: bool) -> Any:
    """`value` with its templates filled in; a template alone in a numeric field becomes a number."""
    if isinstance(value, str):
        alone = _PLACE.fullmatch(value) if numeric else None
        return _term(alone[1], i) if alone else _PLACE.sub(lambda match: str(_term(match[1], i)), value)
    if isinstance(value, list | tuple):
        return [_fill(item, i, numeric=numeric) for item in as_list(cast("object", value))]
    if isinstance(value, dict):
        return {key: _fill(item, i, numeric=numeric) for key, item in as_mapping(cast("object", value)).items()}
    return value


def _copies(item: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    return [
        {key: _fill(value, i, numeric=key in _NUMERIC_FIELDS) for key, value in item.items() if key != "repeat"}
        for i in checked(range(count))
    ]


class _Expander:
    """One expansion of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.faults: list[SchemaFault] = []
        self.template_counts: dict[str, int] = {}
        self.room = Room(document)

    def run(self) -> dict[str, Any]:
        nodes, edges = self.document.get("nodes"), self.document.get("edges")
        result = dict(self.document)
        if isinstance(nodes, list | tuple):
            result["nodes"] = self._repeat_nodes(as_list(cast("object", nodes)))
        if isinstance(edges, list | tuple):
            result["edges"] = self._repeat_edges(as_list(cast("object", edges)))
        if isinstance(nodes, list | tuple) and any("like" in as_mapping(node) for node in result["nodes"]):
            copier = ReplicaCopier(result, self.room)
            result["nodes"], result["edges"] = copier.run()
            self.faults.extend(copier.faults)
        return result

    def _count(self, item: Mapping[str, Any], path: str, *, is_node: bool) -> int | None:
        """The `repeat` of `item` if it is valid, else `None` and a fault."""
        stated = item["repeat"]
        count = as_int(stated)
        if count is None or count < 1:
            message, expected = "repeat is not a positive whole number", "an integer from 1"
        elif not self.room.take(**{"nodes" if is_node else "edges": count}, values=count * size_of(item)):
            message, expected = "repeat makes the document too large", str(self.room)
        else:
            return count
        self.faults.append(SchemaFault(f"{path}/repeat", message, stated, expected))
        return None

    def _repeat(self, item: Mapping[str, Any], path: str, *, is_node: bool) -> list[dict[str, Any]]:
        count = self._count(item, path, is_node=is_node)
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
            copies = self._repeat(node, f"/nodes/{position}", is_node=True)
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
                # An edge that names a repeated node by its template stands for one edge per copy.
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
            expanded.extend(self._repeat(edge, path, is_node=False))
        return expanded


def is_compact(document: Mapping[str, Any]) -> bool:
    """Whether anything in `document` uses the compact form."""
    for key in ("nodes", "edges"):
        for item in as_list(document.get(key)):
            if isinstance(item, dict) and ("repeat" in item or "like" in item):
                return True
    return False


def expand(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[SchemaFault, ...]]:
    """`document` in the full form, and faults for what could not be expanded. The input is not changed."""
    if not is_compact(document):
        return dict(document), ()
    expander = _Expander(document)
    return expander.run(), tuple(expander.faults)
