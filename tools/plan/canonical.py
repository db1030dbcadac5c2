"""The canonical form of a plan and its content hash: its meaning, not its spelling.

The hash ignores the order of nodes and edges, the spelling of ids, `reasoning`, `construction` and `performance`.
Nodes are told apart by colour refinement (Weisfeiler-Leman): a node's colour is first its own content, then repeatedly
combined with the colours of parent, children and neighbours, until no colour class splits any more. Plans with the same
refined colours count as the same plan: siblings that refinement cannot tell apart are interchangeable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from ..checkpoint import checked
from .compact import expand
from .document import PHASES, UNWRITTEN_DEFAULTS, PhaseStrategy, Plan, PolicyBlock, WorkloadBlock
from .view import PlanView, as_list, as_mapping

_HEADER = ("model", "hardware", "workload", "precision", "policy", "serving", "strategy")
_MAX_ROUNDS = 64
# Values of absent fields: stating a default changes nothing.
_DEFAULTS: dict[str, Any] = {"period": 1, "offset": 0, "rank": {}}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _plain_number(value: Any) -> Any:
    """`value` with whole floats as integers and without null members, so that equal meanings compare equal."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list | tuple):
        return [_plain_number(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key: _plain_number(item) for key, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType]
    return value


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """The values of a block's absent fields."""
    stated = {name: field.default for name, field in model.model_fields.items() if not field.is_required()}
    return _plain_number(stated)


_HEADER_DEFAULTS = {"policy": _defaults(PolicyBlock), "workload": _defaults(WorkloadBlock)}
_PHASE_DEFAULTS = _defaults(PhaseStrategy)


def _header(raw: Mapping[str, Any]) -> dict[str, Any]:
    header: dict[str, Any] = {}
    for key in _HEADER:
        value = _plain_number(raw.get(key))
        if isinstance(value, dict):
            block: dict[str, Any] = {**_HEADER_DEFAULTS.get(key, {}), **value}
            if key == "policy" and isinstance(block.get("relaxations"), list):
                block["relaxations"] = sorted(block["relaxations"], key=str)
            if key == "hardware" and isinstance(block.get("accelerator"), dict):
                # All its lists are empty by default.
                block["accelerator"] = {name: part for name, part in block["accelerator"].items() if part != []}
            if key == "strategy":
                for phase in PHASES:
                    if isinstance(block.get(phase), dict):
                        block[phase] = {**_PHASE_DEFAULTS, **block[phase]}
            if key == "workload":
                block = {name: part for name, part in block.items() if UNWRITTEN_DEFAULTS.get(name, ...) != part}
            header[key] = block
        elif value is not None or key != "serving":
            header[key] = value
    if header.get("serving") == {}:
        del header["serving"]
    if "policy" not in raw:
        header["policy"] = _HEADER_DEFAULTS["policy"]
    return header


def _node_text(node: Mapping[str, Any], experts: tuple[int, ...] | None) -> str:
    content: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("id", "parent") or value is None or _DEFAULTS.get(key, ...) == value:
            continue
        content[key] = value
    if experts is not None:
        content["experts"] = sorted(experts)
    if isinstance(content.get("devices"), list | tuple):
        content["devices"] = sorted(content["devices"], key=str)
    return _text(_plain_number(content))


class ColouredGraph(Struct, frozen=True):
    """The graph of a plan: the refined colour of each node, and labelled links between nodes by place.

    Links are the edges, and `parent` from each node to its parent. `dangling` are edges without both ends.
    """

    colours: tuple[str, ...]
    links: tuple[tuple[int, int, str], ...]
    dangling: tuple[str, ...]

    @property
    def signature(self) -> tuple[str, ...]:
        """The sorted colours of nodes, then of edges, which equal graphs share."""
        edges = (f"{self.colours[s]} {label} {self.colours[t]}" for s, t, label in self.links if label != "parent")
        return (*sorted(self.colours), *sorted(edges), *sorted(self.dangling))


def coloured_graph(view: PlanView) -> ColouredGraph:
    """The graph of an expanded document, coloured."""
    count = len(view.nodes)
    place = {id(node): index for index, node in enumerate(view.nodes)}
    colours = [
        _digest(_node_text(node.raw, node.experts if "experts" in node.raw else None)) for node in checked(view.nodes)
    ]
    for index, node in enumerate(view.nodes):
        if node.parent is None and node.parent_id is not None:
            colours[index] = _digest(f"orphan {colours[index].hex()}")
    around: list[list[tuple[bytes, int]]] = [[] for _ in range(count)]
    dangling: list[str] = []
    links: list[tuple[int, int, str]] = []
    for edge in checked(view.edges):
        content = {
            key: value for key, value in edge.raw.items() if key not in ("source", "target") and value is not None
        }
        label = _digest(_text(_plain_number(content)))
        if edge.source is None or edge.target is None:
            dangling.append(f"dangling {label.hex()}")
            continue
        source, target = place[id(edge.source)], place[id(edge.target)]
        links.append((source, target, label.hex()))
        around[source].append((b">" + label, target))
        around[target].append((b"<" + label, source))
    for index, node in enumerate(view.nodes):
        if node.parent is not None:
            parent = place[id(node.parent)]
            links.append((index, parent, "parent"))
            around[parent].append((b"child", index))
            around[index].append((b"parent", parent))
    refined = _refine(colours, around)
    return ColouredGraph(tuple(colour.hex() for colour in refined), tuple(links), tuple(dangling))


def _refine(colours: list[bytes], links: list[list[tuple[bytes, int]]]) -> list[bytes]:
    classes = len(set(colours))
    for _ in range(_MAX_ROUNDS):
        refined = [
            hashlib.blake2b(
                colours[index] + b"".join(sorted(label + colours[other] for label, other in around)), digest_size=16
            ).digest()
            for index, around in enumerate(checked(links))
        ]
        now = len(set(refined))
        colours = refined
        if now == classes:
            return colours
        classes = now
    return colours


def canonical_text(document: Mapping[str, Any]) -> str:
    """The canonical form of `document` as text, equal for plans of equal meaning."""
    raw, _ = expand(document)
    view = PlanView(raw)
    unread = [_text(_plain_number(item)) for item in _unread(view)]
    return _text([_header(view.raw), list(coloured_graph(view).signature), sorted(unread)])


def _unread(view: PlanView) -> Iterable[Any]:
    """Entries of `nodes` and `edges` that the view could not read; they count as sorted JSON."""
    taken = {node.position for node in view.nodes}
    yield from (item for at, item in enumerate(as_list(view.raw.get("nodes"))) if at not in taken)
    seen = {edge.position for edge in view.edges}
    yield from (item for at, item in enumerate(as_list(view.raw.get("edges"))) if at not in seen)


def content_hash(document: Mapping[str, Any] | Plan | object) -> str:
    """SHA-256 (hex) of the canonical form; of the sorted JSON if `document` is no readable object."""
    if isinstance(document, Plan):
        document = document.model_dump(mode="json")
    if isinstance(document, Mapping):
        try:
            return hashlib.sha256(canonical_text(as_mapping(dict(document))).encode()).hexdigest()  # pyright: ignore[reportUnknownArgumentType]
        except RecursionError:
            return hashlib.sha256(b"nested too deeply").hexdigest()
    return hashlib.sha256(_text(document).encode()).hexdigest()
