"""Damage to sound plans: one small change each, with the rungs that must notice it and those that must not.

A rung that a change does not touch must keep its mark: a ladder that loses too much is as wrong as one that loses too
little. Each mutator changes its own copy and returns `None` if the plan has nothing to change.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from ...tools.input.bounds import REQUESTS

Document = dict[str, Any]
Item = dict[str, Any]

# A wrong graph is not the golden's, and is no plan whose speed could be compared.
_GRAPH = frozenset({"rules", "equivalent", "regret"})
# The graph is sound and belongs to another strategy.
_DECISION = frozenset({"rules", "strategy", "regret"})
_COMMUNICATION = ("AllReduceNode", "AllToAllNode", "AllGatherNode", "ReduceScatterNode")
_OPERATOR = ("ShardNode", "RouterNode", "ExpertNode", "KVCacheUpdateNode", "EmbeddingNode", "LMHeadNode")


class Mutator(Struct, frozen=True):
    """A way to change a plan. It must lose exactly the rungs in `loses`."""

    name: str
    loses: frozenset[str]
    make: Callable[[Document, random.Random], Document | None]


def _nodes(document: Document, types: Iterable[str]) -> list[Item]:
    return [node for node in document["nodes"] if node["type"] in types]


def _without(document: Document, removed: Item) -> Document:
    ids = {removed["id"]}
    for node in document["nodes"]:  # parents come before what hangs below them
        if node.get("parent") in ids:
            ids.add(node["id"])
    document["nodes"] = [node for node in document["nodes"] if node["id"] not in ids]
    document["edges"] = [edge for edge in document["edges"] if not {edge["source"], edge["target"]} & ids]
    return document


def _removed(types: tuple[str, ...]) -> Callable[[Document, random.Random], Document | None]:
    def make(document: Document, rng: random.Random) -> Document | None:
        nodes = _nodes(document, types)
        return _without(document, rng.choice(nodes)) if nodes else None

    return make


def _one_device_less(document: Document, rng: random.Random) -> Document | None:
    # Embedding, head and router may be on fewer devices, which is another legal plan.
    nodes = [node for node in _nodes(document, (*_COMMUNICATION, "KVCacheUpdateNode")) if len(node["devices"]) > 1]
    if not nodes:
        return None
    devices = rng.choice(nodes)["devices"]
    devices.pop(rng.randrange(len(devices)))
    return document


def _device_that_is_not(document: Document, rng: random.Random) -> Document | None:
    nodes = [node for node in document["nodes"] if node.get("devices")]
    if not nodes:
        return None
    rng.choice(nodes)["devices"][0] = f"n{document['hardware']['nodes']}.g0"
    return document


def _edge_removed(document: Document, rng: random.Random) -> Document | None:
    if not document["edges"]:
        return None
    document["edges"].pop(rng.randrange(len(document["edges"])))
    return document


def _edge_reversed(document: Document, rng: random.Random) -> Document | None:
    if not document["edges"]:
        return None
    edge = rng.choice(document["edges"])
    edge["source"], edge["target"] = edge["target"], edge["source"]
    return document


def _edge_into_nothing(document: Document, rng: random.Random) -> Document | None:
    if not document["edges"]:
        return None
    rng.choice(document["edges"])["target"] = "nowhere"
    return document


def _node_twice(document: Document, rng: random.Random) -> Document | None:
    node = rng.choice(_nodes(document, (*_OPERATOR, *_COMMUNICATION)))
    document["nodes"].append({**node, "id": f"{node['id']}.again"})
    return document


def _below_another_parent(document: Document, rng: random.Random) -> Document | None:
    """Move a rank of attention below another block's operator."""
    shards = _nodes(document, ("ShardNode",))
    parents = sorted({node["parent"] for node in shards})
    if len(parents) < 2:
        return None
    node = rng.choice(shards)
    node["parent"] = rng.choice([parent for parent in parents if parent != node["parent"]])
    return document


def _expert_lost(document: Document, rng: random.Random) -> Document | None:
    nodes = _nodes(document, ("ExpertNode",))
    if not nodes:
        return None
    spans = rng.choice(nodes)["experts"]
    first, last = spans[0]
    if first < last:
        spans[0] = [first, last - 1]
    else:
        spans.pop(0)
    return document


def _layer_lost(document: Document, rng: random.Random) -> Document | None:
    blocks = [node for node in _nodes(document, ("LayerBlockNode",)) if node["layers"][0] < node["layers"][1]]
    if not blocks:
        return None
    node = rng.choice(blocks)
    node["layers"] = [node["layers"][0], node["layers"][1] - 1]
    return document


def _degree(name: str) -> Callable[[Document, random.Random], Document | None]:
    def make(document: Document, rng: random.Random) -> Document | None:
        phase = document["strategy"][rng.choice(("prefill", "decode"))]
        phase[name] = (phase.get(name) or 1) * 2
        return document

    return make


def _gpu_more(document: Document, rng: random.Random) -> Document | None:
    document["strategy"]["gpu_count"] += 1
    return document


def _text_for_a_number(document: Document, rng: random.Random) -> Document | None:
    document["strategy"]["dp"] = "as many as there are"
    return document


def _unknown_type(document: Document, rng: random.Random) -> Document | None:
    rng.choice(_nodes(document, _OPERATOR))["type"] = "MagicNode"
    return document


def _too_many_requests(document: Document, rng: random.Random) -> Document | None:
    document["workload"]["concurrency"] = int(REQUESTS.most)
    return document


def _in_another_order(document: Document, rng: random.Random) -> Document | None:
    rng.shuffle(document["nodes"])
    rng.shuffle(document["edges"])
    return document


def _under_other_names(document: Document, rng: random.Random) -> Document | None:
    names: dict[Any, Any] = {None: None}
    for place, node in enumerate(document["nodes"]):
        names[node["id"]] = f"{rng.randrange(1 << 30):x}-{place}"
    for node in document["nodes"]:
        node["id"], node["parent"] = names[node["id"]], names[node.get("parent")]
    for edge in document["edges"]:
        edge["source"], edge["target"] = names[edge["source"]], names[edge["target"]]
    return document


def _with_reasons(document: Document, rng: random.Random) -> Document | None:
    document["reasoning"] = [{"step": "operator_parallelism", "decision": "TP inside the node"}]
    return document


MUTATORS: tuple[Mutator, ...] = (
    Mutator("a communication is left out", _GRAPH, _removed(_COMMUNICATION)),
    Mutator("an operator is left out", _GRAPH, _removed(_OPERATOR)),
    Mutator("a block is left out", _GRAPH, _removed(("LayerBlockNode",))),
    Mutator("a device is left out", _GRAPH, _one_device_less),
    Mutator("a device is not there", _GRAPH, _device_that_is_not),
    Mutator("an edge is left out", _GRAPH, _edge_removed),
    Mutator("an edge is turned round", _GRAPH, _edge_reversed),
    Mutator("an edge leads nowhere", _GRAPH, _edge_into_nothing),
    Mutator("a node is there twice", _GRAPH, _node_twice),
    Mutator("a rank hangs elsewhere", _GRAPH, _below_another_parent),
    Mutator("an expert is left out", _GRAPH, _expert_lost),
    Mutator("a layer is left out", _GRAPH, _layer_lost),
    Mutator("TP is doubled in words", _DECISION, _degree("tp")),
    Mutator("PP is doubled in words", _DECISION, _degree("pp")),
    Mutator("EP is doubled in words", _DECISION, _degree("ep")),
    Mutator("a GPU too many is counted", _DECISION, _gpu_more),
    Mutator("a text stands for a number", _DECISION | {"schema"}, _text_for_a_number),
    Mutator("a type is unknown", _GRAPH | {"schema"}, _unknown_type),
    Mutator("more requests than memory holds", frozenset({"rules", "regret"}), _too_many_requests),
    Mutator("in another order", frozenset(), _in_another_order),
    Mutator("under other names", frozenset(), _under_other_names),
    Mutator("with reasons", frozenset(), _with_reasons),
)
