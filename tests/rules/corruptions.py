"""Tables of corrupted plans, plans in other styles, and damaged documents, for the tests of the rules."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example
from shardwright.tools.rules.examples import base_names, base_plan
from shardwright.tools.rules.registry import all_rules

_TABLES = Path(__file__).parents[1] / "cases" / "rules"


class Corruption(Struct, frozen=True):
    """A base plan, the edits that corrupt it (or do not), and the rules that must fire.

    `fix` is the kind of fix of the findings if it differs from the rule's.
    """

    rule: str
    name: str
    example: Example
    expected: frozenset[str]
    fix: str | None = None

    def __str__(self) -> str:
        return f"{self.rule} {self.name}, {self.example.base}"


def corruptions(family: str) -> list[Corruption]:
    """The rows of the tables of `family`."""
    return [
        Corruption(
            path.stem,
            row["name"],
            Example(row["base"], tuple(Edit(**edit) for edit in row["edits"])),
            frozenset(row["expected"]),
            row.get("fix"),
        )
        for path in sorted(_TABLES.glob(f"{family}*.json"))
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]


def fired(document: Any, family: str) -> list[str]:
    """Messages of the rules of `family` on `document`; each rule runs by itself, so that a crash shows."""
    view = PlanView(document)
    rules = [rule for rule in all_rules() if rule.id.startswith(family)]
    assert rules, f"no rule of family {family}"
    return [f"{finding.rule} {finding.message}" for rule in rules for finding in rule.run(view)]


def _subtree(document: dict[str, Any], root: str) -> list[dict[str, Any]]:
    inside = {root}
    nodes = [node for node in document["nodes"] if node["id"] == root]
    while True:
        more = [node for node in document["nodes"] if node["parent"] in inside and node["id"] not in inside]
        if not more:
            return nodes
        nodes += more
        inside |= {node["id"] for node in more}


def renamed_and_shuffled(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The plan with random ids, nodes and edges in any order."""
    names = {node["id"]: f"{rng.randrange(1 << 60)}/{place}" for place, node in enumerate(document["nodes"])}
    for node in document["nodes"]:
        node["id"], node["parent"] = names[node["id"]], names.get(node["parent"])
    for edge in document["edges"]:
        edge["source"], edge["target"] = names[edge["source"]], names[edge["target"]]
    rng.shuffle(document["nodes"])
    rng.shuffle(document["edges"])
    return document


def scattered(document: dict[str, Any], _: random.Random) -> dict[str, Any]:
    """The plan with ReduceScatter → AllGather in place of every AllReduce."""
    for node in [node for node in document["nodes"] if node["type"] == "AllReduceNode"]:
        node["type"] = "ReduceScatterNode"
        gather = f"{node['id']}/gather"
        document["nodes"].append({**node, "id": gather, "type": "AllGatherNode"})
        for edge in document["edges"]:
            if edge["source"] == node["id"]:
                edge["source"] = gather
        document["edges"].append({"source": node["id"], "target": gather, "type": "synchronization"})
    return document


def halved_blocks(document: dict[str, Any], _: random.Random) -> dict[str, Any]:
    """The plan with each decode block of several periods written as two: the phases then divide differently."""
    decodes = {node["id"] for node in document["nodes"] if node.get("phase") == "decode"}
    for phase in decodes:
        for block in [node for node in _subtree(document, phase) if node["type"] == "LayerBlockNode"]:
            first, last = block["layers"]
            period = block.get("period") or 1
            if last - first + 1 >= 2 * period:
                _halve(document, block, first + period - 1)
    return document


def unrolled(document: dict[str, Any], _: random.Random) -> dict[str, Any]:
    """The plan with every period of every block written as a separate block, in both phases."""
    waiting = [node for node in document["nodes"] if node["type"] == "LayerBlockNode"]
    for block in waiting:
        period = block.get("period") or 1
        if block["layers"][1] - block["layers"][0] + 1 > period:
            _halve(document, block, block["layers"][0] + period - 1)
            waiting.append(next(node for node in document["nodes"] if node["id"] == f"{block['id']}/2"))
    return document


def _halve(document: dict[str, Any], block: dict[str, Any], middle: int) -> None:
    inside = _subtree(document, block["id"])
    names = {node["id"]: f"{node['id']}/2" for node in inside}
    second = [
        {**copy.deepcopy(node), "id": names[node["id"]], "parent": names.get(node["parent"], node["parent"])}
        for node in inside
    ]
    second[0]["layers"], block["layers"] = [middle + 1, block["layers"][1]], [block["layers"][0], middle]
    document["nodes"] += second
    copies: list[dict[str, Any]] = []
    for edge in document["edges"]:
        if edge["source"] == block["id"]:
            edge["source"] = names[block["id"]]
        elif {edge["source"], edge["target"]} & names.keys() and edge["target"] != block["id"]:
            ends = {end: names.get(edge[end], edge[end]) for end in ("source", "target")}
            copies.append({**edge, **ends})
    document["edges"] += [*copies, {"source": block["id"], "target": names[block["id"]], "type": "data"}]
    drop_strange_caches(document)


def drop_strange_caches(document: dict[str, Any]) -> None:
    """Remove edges from caches to parts of a block that hold other layers."""
    by_id = {node["id"]: node for node in document["nodes"]}
    document["edges"] = [
        edge
        for edge in document["edges"]
        if by_id[edge["source"]]["type"] != "KVCacheUpdateNode"
        or _layers_of(by_id, edge["source"]) & _layers_of(by_id, edge["target"])
    ]


def _layers_of(by_id: dict[str, dict[str, Any]], name: str) -> set[int]:
    """The layers of an attention operator, or of the one that contains the node."""
    node = by_id[name]
    operator = node if node["type"] == "AttentionNode" else by_id[node["parent"]]
    block = by_id[operator["parent"]]
    first, last = block["layers"]
    return set(range(first + operator.get("offset", 0), last + 1, block.get("period") or 1))


def spelled_out(document: dict[str, Any], _: random.Random) -> dict[str, Any]:
    """The plan with optional fields left out or stated, experts one by one, LinearNodes, edges without `carries`."""
    for node in list(document["nodes"]):
        if node["type"] == "AttentionNode":
            node.pop("kind", None)
        if node["type"] == "LayerBlockNode":
            node.setdefault("period", 1)
        if node["type"] in ("AttentionNode", "FFNNode", "MoENode"):
            node.setdefault("offset", 0)
        if node["type"] == "ExpertNode":
            node["experts"] = [
                expert
                for entry in node["experts"]
                for expert in (range(entry[0], entry[1] + 1) if isinstance(entry, list) else [entry])
            ]
        if node["type"] == "ShardNode" and node["parent"].endswith("ffn"):
            linear = {"id": f"{node['id']}/up", "type": "LinearNode", "parent": node["parent"]}
            document["nodes"].append({**linear, "rank": node.get("rank", {}), "devices": node["devices"]})
    for edge in document["edges"]:
        edge.pop("carries", None)
    return document


@st.composite
def foreign_plans(draw: st.DrawFn) -> dict[str, Any]:
    """A valid base plan in another style: any combination of the styles."""
    document = base_plan(draw(st.sampled_from(base_names())))
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    for style in (scattered, halved_blocks, spelled_out, renamed_and_shuffled):
        if draw(st.booleans()):
            document = style(document, rng)
    return document


_JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-3, 10**9), max_size=3),
    st.dictionaries(st.sampled_from(["tp", "sp", "x"]), st.integers(), max_size=2),
    st.sampled_from(["ShardNode", "PhaseNode", "PipelineStageNode", "LayerBlockNode", "MoENode", "decode", "request"]),
)


@st.composite
def damaged_plans(draw: st.DrawFn) -> dict[str, Any]:
    """A base plan with values replaced by junk, and nodes and edges dropped, doubled or moved."""
    document = base_plan(draw(st.sampled_from(base_names())))
    for _ in range(draw(st.integers(1, 6))):
        part = draw(st.sampled_from(["nodes", "edges", "top"]))
        if part == "top":
            key = draw(st.sampled_from(sorted(document)))
            inner = document[key]
            if isinstance(inner, dict) and inner and draw(st.booleans()):
                inner[draw(st.sampled_from(sorted(inner)))] = draw(_JUNK)
            elif key not in ("nodes", "edges"):
                document[key] = draw(_JUNK)
            continue
        items = document[part]
        if not items:
            continue
        place = draw(st.integers(0, len(items) - 1))
        action = draw(st.sampled_from(["set", "drop", "double", "junk", "hang"]))
        if action == "drop":
            del items[place]
        elif action == "double":
            items.append(copy.deepcopy(items[place]))
        elif action == "junk":
            items[place] = draw(_JUNK)
        elif isinstance(items[place], dict) and items[place]:
            key = draw(st.sampled_from(sorted(items[place])))
            other = items[draw(st.integers(0, len(items) - 1))]
            borrowed = other.get("id" if part == "nodes" else key) if isinstance(other, dict) else None
            items[place]["parent" if action == "hang" and part == "nodes" else key] = (
                borrowed if action == "hang" else draw(_JUNK)
            )
    return document
