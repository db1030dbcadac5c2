"""Harmless ways to draw the graph of one plan: other nodes and edges with the same meaning.

As in `variants`, each takes a plan as a JSON object, which it may change, and a source of randomness.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from .corruptions import drop_strange_caches
from .variants import Document, Node, children, of_type


def scattered(document: Document, _: random.Random) -> Document | None:
    """The plan with ReduceScatter → AllGather in place of every AllReduce."""
    reductions = of_type(document, "AllReduceNode")
    for node in reductions:
        node["type"] = "ReduceScatterNode"
        gather = f"{node['id']}/gather"
        document["nodes"].append({**node, "id": gather, "type": "AllGatherNode"})
        for edge in document["edges"]:
            if edge["source"] == node["id"]:
                edge["source"] = gather
        document["edges"].append({"source": node["id"], "target": gather, "type": "synchronization"})
    return document if reductions else None


def with_linear_nodes(document: Document, _: random.Random) -> Document:
    """The plan with LinearNodes inside every shard and expert, with the rank and the device of their shard."""
    types = {node["id"]: node["type"] for node in document["nodes"]}
    for part in of_type(document, "ShardNode", "ExpertNode"):
        parent = part["parent"] if part["type"] == "ShardNode" else part["id"]
        if types[parent] in ("EmbeddingNode", "LMHeadNode"):
            continue
        rank = {} if types[parent] == "ExpertNode" else part.get("rank", {})
        for name in ("qkv", "out"):
            node = {"id": f"{part['id']}/{name}", "type": "LinearNode", "parent": parent}
            document["nodes"].append({**node, "rank": rank, "devices": list(part["devices"])})
    return document


def with_a_cache_write_for_each_shard(document: Document, _: random.Random) -> Document:
    """The plan with a KVCacheUpdate on each device of the attention shards, each of which passes its part on."""
    parts = children(document)
    for operator in of_type(document, "AttentionNode"):
        shards = [node for node in parts[operator["id"]] if node["type"] == "ShardNode"]
        update = next(node for node in parts[operator["id"]] if node["type"] == "KVCacheUpdateNode")
        document["nodes"].remove(update)
        fed = [edge for edge in document["edges"] if edge["source"] == update["id"]]
        document["edges"] = [
            edge for edge in document["edges"] if update["id"] not in (edge["source"], edge["target"])
        ]  # fmt: skip
        for place, shard in enumerate(shards):
            shard_update = {**update, "id": f"{update['id']}/{place}", "devices": shard["devices"]}
            document["nodes"].append(shard_update)
            document["edges"].append({"source": shard["id"], "target": shard_update["id"], "type": "data"})
            document["edges"] += [{**edge, "source": shard_update["id"]} for edge in fed]
    return document


def with_exchanges_on_one_device(document: Document, _: random.Random) -> Document | None:
    """The plan with dispatch and combine written out for MoE operators of one expert group."""
    parts = children(document)
    lone = [node for node in of_type(document, "MoENode") if _is_lone(parts[node["id"]])]
    for operator in lone:
        router = next(node for node in parts[operator["id"]] if node["type"] == "RouterNode")
        expert = next(node for node in parts[operator["id"]] if node["type"] == "ExpertNode")
        document["edges"] = [edge for edge in document["edges"] if edge["target"] != expert["id"]]
        names = {role: f"{operator['id']}/{role}" for role in ("dispatch", "combine")}
        for role, name in names.items():
            exchange = {"id": name, "type": "AllToAllNode", "parent": operator["id"], "role": role}
            document["nodes"].append({**exchange, "devices": list(expert["devices"])})
        document["edges"] += [
            {"source": router["id"], "target": names["dispatch"], "type": "data"},
            {"source": names["dispatch"], "target": expert["id"], "type": "synchronization"},
            {"source": expert["id"], "target": names["combine"], "type": "synchronization"},
        ]
    return document if lone else None


def _is_lone(parts: list[Node]) -> bool:
    return sum(node["type"] == "ExpertNode" for node in parts) == 1


def replicas_as_copies(document: Document, _: random.Random) -> Document | None:
    """The plan with every replica that is like the first written as a copy of it."""
    first, *others = sorted(of_type(document, "ReplicaNode"), key=lambda node: node["index"])
    phases = {
        replica["id"]: sorted(node["phase"] for node in children(document)[replica["id"]])
        for replica in (first, *others)
    }  # fmt: skip
    # A copy has no edges to other replicas: one that passes its cache to another replica is written out.
    serves_both = phases[first["id"]] == ["decode", "prefill"]
    alike = [replica for replica in others if serves_both and phases[replica["id"]] == phases[first["id"]]]
    places = {replica["id"]: min(_devices_below(document, replica["id"])) for replica in (first, *alike)}
    for replica in alike:
        removed = set(_below(document, replica["id"]))
        document["nodes"] = [node for node in document["nodes"] if node["id"] not in removed]
        document["edges"] = [edge for edge in document["edges"] if not removed & {edge["source"], edge["target"]}]
        replica.update({"like": first["id"], "device_offset": places[replica["id"]] - places[first["id"]]})
    return document if alike else None


def _below(document: Document, root: str) -> Iterator[str]:
    parts = children(document)
    waiting = [root]
    while waiting:
        for node in parts[waiting.pop()]:
            yield node["id"]
            waiting.append(node["id"])


def _devices_below(document: Document, root: str) -> list[int]:
    inside = set(_below(document, root))
    gpus = document["hardware"]["gpus_per_node"]
    devices = {device for node in document["nodes"] if node["id"] in inside for device in node.get("devices", ())}
    return [int(device[1:].split(".g")[0]) * gpus + int(device.split(".g")[1]) for device in devices]


def phases_on_devices_of_their_own(document: Document, _: random.Random) -> Document | None:
    """The plan with every decode phase on devices that the prefill of its replica does not use."""
    parts = children(document)
    replicas = [replica for replica in of_type(document, "ReplicaNode") if len(parts[replica["id"]]) > 1]
    if not replicas:
        return None
    # The decode phases move to the same devices of as many additional nodes.
    nodes = document["hardware"]["nodes"]
    document["hardware"]["nodes"] = 2 * nodes
    for replica in replicas:
        decode = next(phase["id"] for phase in parts[replica["id"]] if phase["phase"] == "decode")
        inside = set(_below(document, decode))
        for node in document["nodes"]:
            if node["id"] in inside and "devices" in node:
                node["devices"] = [_moved(device, nodes) for device in node["devices"]]
    used = {device for node in document["nodes"] for device in node.get("devices", ())}
    document["strategy"]["gpu_count"] = len(used)
    return document


def _moved(device: str, nodes: int) -> str:
    node, gpu = device[1:].split(".g")
    return f"n{int(node) + nodes}.g{gpu}"


def layers_side_by_side(document: Document, _: random.Random) -> Document:
    """The plan with one period for each block: separate operators for each of its layers."""
    for block in of_type(document, "LayerBlockNode"):
        first, last = block["layers"]
        period = block.get("period") or 1
        _unfold(document, block, (last - first + 1) // period)
        block["period"] = last - first + 1
    drop_strange_caches(document)
    return document


def _unfold(document: Document, block: Node, times: int) -> None:
    period = block.get("period") or 1
    order = {"AttentionNode": 0, "FFNNode": 1, "MoENode": 1}
    operators = [node for node in children(document)[block["id"]] if node["type"] in order]
    operators.sort(key=lambda node: (node.get("offset", 0), order[node["type"]]))
    inside = [*operators, *(node for node in document["nodes"] if node["id"] in set(_below(document, block["id"])))]
    inside = list({node["id"]: node for node in inside}.values())
    names = {node["id"] for node in inside}
    within = [edge for edge in document["edges"] if names >= {edge["source"], edge["target"]}]
    across = [edge for edge in document["edges"] if len(names & {edge["source"], edge["target"]}) == 1]
    for turn in range(1, times):
        for node in inside:
            copied = {**node, "id": f"{node['id']}/{turn}"}
            if node in operators:
                copied["offset"] = node.get("offset", 0) + turn * period
            else:
                copied["parent"] = f"{node['parent']}/{turn}"
            document["nodes"].append(copied)
        for edge in (*within, *across):
            ends = {end: f"{edge[end]}/{turn}" if edge[end] in names else edge[end] for end in ("source", "target")}
            document["edges"].append({**edge, **ends})
        before, after = f"{operators[-1]['id']}/{turn - 1}".removesuffix("/0"), f"{operators[0]['id']}/{turn}"
        document["edges"].append({"source": before, "target": after, "type": "data"})
