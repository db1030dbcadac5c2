"""Reads a node of a foreign proposal (type, name, layers, devices, experts, rank), and edges as proposals write them.

Other members of a node are walked. Edges join names only; which nodes these are, and whether the format allows such an
edge, is decided once nodes are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from msgspec import Struct

from ...input.shapes import is_list, is_nested, is_object
from .figures import Place, PlacesOf, experts_of, span_of, whole_number
from .lexicon import any_case, concept_of, node_type_of, phase_of, words_of
from .notes import Notes, shortened
from .scope import Item, Scope

OUTER = ("RequestNode", "ReplicaNode", "PhaseNode")
OPERATORS = ("AttentionNode", "FFNNode", "MoENode")
_HOLD_LAYERS = ("PipelineStageNode", "LayerBlockNode")
_NUMBER_AT_END = re.compile(r"(\d{1,6})$")
_RANK_IN_NAME = any_case(r"(?<![a-z])(tp|sp)[ _\-.]?(?:rank[ _\-.]?)?(\d{1,5})$")
# Preferred keys of a concept: "id" before "name", "type" before "op".
_PLAINEST = ("id", "name", "type", "kind", "op")
# Fields with the same name and meaning in our format.
_SAME_NUMBERS = ("offset", "period", "tokens_per_step")
_SAME_WORDS = ("recurrence",)


def members_of(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str | None, Any]]:
    """The members of an object by name, or of a list without names."""
    if is_object(value):
        yield from ((str(key), member) for key, member in value.items())
    else:
        yield from ((None, member) for member in value)


def holds_objects(value: object) -> bool:
    """Whether `value` is a list with objects, or an object of objects."""
    if is_object(value):
        return bool(value) and all(map(is_object, value.values()))
    return is_nested(value) and any(map(is_object, value))


def new_item(name: str | None, members: dict[str, Any], default: str | None, scope: Scope) -> tuple[Item, str | None]:
    """The node at `scope` with its name, type and phase, and the words of an unknown type, if any.

    `default` is the type of nodes in its place that state none.
    """
    identity = next((text for text in _values(members, "id") if isinstance(text, str | int)), None)
    label = str(identity)[:120] if isinstance(identity, str) else name
    item = Item(None, label, scope.where, scope.phase)
    if type(identity) is int:
        item.index = identity
    words = [text[:80] for text in _values(members, "type") if isinstance(text, str)]
    named = _type_of(re.sub(r"[\d_\-. ]+$", "", label or ""))
    item.type = next(filter(None, map(_type_of, words)), None)
    item.type = item.type or ((named or default) if words else (default or named))
    phases = [text for text in _values(members, "phase") if isinstance(text, str) and len(text) < 80]
    spoken = (*words, *phases, label or "")
    phase = next(filter(None, (phase_of(text.rstrip("0123456789_")) for text in spoken)), None)
    if item.type == "AllToAllNode":
        joined = " ".join((*words, label or "")).lower()
        item.role = next((role for role in ("dispatch", "combine") if role in joined), None)
    if phase is not None and default == "PipelineStageNode" and not words:
        item.type = "PhaseNode"  # "stages" that are called prefill and decode
    if phase is not None and item.type in (None, "PhaseNode", "ReplicaNode"):
        item.type = item.type or "PhaseNode"
        item.phase = phase
    return item, words[0] if words and item.type is None else None


def _values(members: dict[str, Any], concept: str) -> list[Any]:
    """The values of the keys of a concept, preferred keys first."""
    keys = [key for key in members if concept_of(key) == concept]
    keys.sort(key=lambda key: _PLAINEST.index(key) if key in _PLAINEST else len(_PLAINEST))
    return [members[key] for key in keys]


def _type_of(words: str) -> str | None:
    return "PhaseNode" if phase_of(words) else node_type_of(words)


def set_field(item: Item, key: str, concept: str | None, value: Any, places_of: PlacesOf) -> bool:
    """Set a field of the node itself; return whether it was one and could be read."""
    number, words = whole_number(value), words_of(key)
    is_shard, holds_layers = item.type == "ShardNode", item.type in _HOLD_LAYERS
    if (key in _SAME_NUMBERS and type(value) is int) or (key in _SAME_WORDS and isinstance(value, str)):
        item.fields[key] = value[:200] if isinstance(value, str) else value
    elif concept == "layers" and type(value) is int and holds_layers:
        item.layer_count = value
    elif concept == "layers":
        span = span_of(value)
        item.layers = span or item.layers
        return span is not None
    elif concept in ("layers_first", "layers_last") and number is not None:
        item.fields[concept] = number
    elif concept == "layer_count" and holds_layers:
        item.layer_count = number
    elif concept == "gpu_total" and type(value) is int:
        return item.type not in ("RequestNode", None)  # a count of devices that are not named
    elif concept in ("devices", "accelerator", "gpu_total", "hardware"):
        devices = places_of(value)
        item.devices = devices or item.devices
        return devices is not None
    elif concept == "experts" and not holds_objects(value):
        item.experts = experts_of(value)
        return item.experts is not None
    elif number is not None and (words in ("tp rank", "sp rank") or (is_shard and words in ("tp", "sp"))):
        item.rank = {**(item.rank if is_object(item.rank) else {}), words[:2]: number}
    elif concept == "rank" and is_object(value):
        ranks = {str(name).lower(): rank for name, rank in value.items()}
        item.rank = {name: rank for name, rank in ranks.items() if type(rank) is int and len(name) <= 5}
    elif concept == "rank" and is_shard and number is not None:
        item.rank = number if item.rank is None else item.rank
    elif concept == "index" and number is not None:
        item.index = number
    elif concept == "role" and isinstance(value, str):
        item.role = value[:60]
    else:
        return False
    return True


def complete(item: Item) -> None:
    """Set fields that follow from two others together, or from the name."""
    first, last = item.fields.pop("layers_first", None), item.fields.pop("layers_last", None)
    if item.layers is None and first is not None and last is not None and first <= last:
        item.layers = (first, last)
    if item.index is None and item.type in ("PipelineStageNode", "ReplicaNode") and item.name:
        match = _NUMBER_AT_END.search(item.name)
        item.index = int(match[1]) if match and item.parent_name is not None else None
    if item.rank is None and item.type == "ShardNode" and item.name and (match := _RANK_IN_NAME.search(item.name)):
        item.rank = {match[1].lower(): int(match[2])}


def states_degree(item: Item, concept: str | None) -> bool:
    """Whether a figure of this concept in the node is a degree: not a rank, nor a figure of the whole plan."""
    if item.type in _HOLD_LAYERS:
        return concept not in ("pp", "dp", "replicas")
    return item.type is None or item.type in OPERATORS or item.type in OUTER


def are_stages(value: Any, places_of: PlacesOf) -> bool:
    """Whether every member is an object that states its layers and its devices."""
    if not is_nested(value) or not value:
        return False
    for _, member in members_of(value):
        if not is_object(member):
            return False
        fields = {concept_of(str(key)): content for key, content in list(member.items())[:40]}
        has_devices = any(places_of(fields.get(name)) for name in ("devices", "accelerator", "gpu_total"))
        if not has_devices or span_of(fields.get("layers")) is None or "type" in fields:
            return False
    return True


def stages_of_ranks(rows: list[Any], scope: Scope, places_of: PlacesOf) -> list[Item]:
    """A table of ranks ("rank 2 is tp_rank 0 of pp_rank 1 on cuda:2") as stages with their devices in TP order.

    Empty if a row lacks its device or its ranks, or the rows make no full grid.
    """
    grid: dict[tuple[int, int], tuple[Place, tuple[int, int] | None]] = {}
    for place, row in enumerate(rows):
        fields = {words_of(str(key)): value for key, value in list(row.items())[:40]} if is_object(row) else {}
        tp, pp = (whole_number(fields.get(f"{name} rank", 0)) for name in ("tp", "pp"))
        if tp is None or pp is None or (fields.get("tp rank") is None and fields.get("pp rank") is None):
            return []
        hosts = [value for key, value in fields.items() if concept_of(key) in ("devices", "accelerator")]
        devices = places_of(hosts[0] if hosts and hosts[0] is not None else fields.get("rank", place))
        if devices is None or len(devices) != 1:
            return []
        layers = next((span_of(value) for key, value in fields.items() if concept_of(key) == "layers"), None)
        grid[pp, tp] = (devices[0], layers)
    depth, width = (1 + max((ranks[axis] for ranks in grid), default=-1) for axis in (0, 1))
    if len(grid) != len(rows) or len(grid) != depth * width:
        return []
    stages: list[Item] = []
    for index in range(depth):
        ranks = [grid[index, tp] for tp in range(width)]
        layers = {span for _, span in ranks}
        item = Item(
            "PipelineStageNode", None, scope.where, scope.phase, index=index, devices=[device for device, _ in ranks]
        )
        item.layers = layers.pop() if len(layers) == 1 else None
        stages.append(item)
    return stages


MOST_EDGES = 200_000
_ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|>>)\s*")
_STATEMENTS = re.compile(r"[;\n]")
_NAMES = re.compile(r"[^\s,|{}\[\]]+")
_SOURCE = ("source", "from", "src", "tail", "start", "u", "producer", "起点", "源")
_TARGET = ("target", "to", "dst", "dest", "destination", "head", "end", "v", "consumer", "终点", "目标")


class NamedEdge(Struct, frozen=True):
    """An edge by the names of its ends, with the phase that it was written in."""

    source: str
    target: str
    phase: str | None
    where: str
    carries: str | None = None


def edges_of(value: object, scope: Scope, notes: Notes) -> list[NamedEdge]:
    """The edges that `value` states; parts that state none are noted."""
    edges: list[NamedEdge] = []
    if isinstance(value, str):
        parts: list[Any] = [part for part in _STATEMENTS.split(value) if part.strip()]
    elif is_object(value):
        parts = [[source, targets] for source, targets in value.items()]
    else:
        parts = value if is_list(value) else []
    for place, part in enumerate(parts):
        where = scope.inside(place).where
        pairs = _pairs(part)
        if not pairs or len(edges) + len(pairs) > MOST_EDGES:
            notes.unclear(f"{shortened(part)!r} is no edge that can be read", where)
            if len(edges) >= MOST_EDGES - 1:
                break
            continue
        carries = part.get("carries") if is_object(part) else None
        carries = carries if isinstance(carries, str) else None
        edges.extend(NamedEdge(source, target, scope.phase, where, carries) for source, target in pairs)
    return edges


def _pairs(part: Any) -> list[tuple[str, str]]:
    """Every edge of a chain of names or groups of names; empty if it is none, or has too many edges."""
    groups: list[list[str]] = []
    if isinstance(part, str):
        groups = [_names_in(words) for words in _ARROW.split(part[:20_000])]
    elif is_list(part) and len(part) in (2, 3):
        groups = [_names(item) for item in part[:2]]
    elif is_object(part):
        ends = [next((part[name] for name in names if name in part), None) for names in (_SOURCE, _TARGET)]
        groups = [_names(end) for end in ends]
    if not all(groups) or sum(len(a) * len(b) for a, b in pairwise(groups)) > MOST_EDGES:
        return []
    return [(a, b) for sources, targets in pairwise(groups) for a in sources for b in targets]


def _names(value: Any) -> list[str]:
    """A node's name, or several."""
    names = value if is_list(value) else [] if isinstance(value, bool) else [value]
    return [str(name).strip() for name in names if isinstance(name, str | int)]


def _names_in(words: str) -> list[str]:
    """ "{c d}", "[c, d]" or "c, d" as names; without brackets or commas the words are one name."""
    words = words.strip().strip('"')
    if words[:1] in ("{", "[", "(") or "," in words:
        return [name.strip("\"'()") for name in _NAMES.findall(words)]
    return [words] if words else []
