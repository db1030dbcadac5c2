"""Harmless variants of one plan: an author may write it in other ways with the same meaning.

Each takes a plan as a JSON object, which it may change, and a source of randomness; it returns the same plan written
in another way, or `None` if there is nothing to rewrite.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, get_args

from shardwright.tools.plan.document import Relaxation

Document = dict[str, Any]
Node = dict[str, Any]
Variant = Callable[[Document, random.Random], Document | None]

_CHARACTERS = "aZ09 .,:;/~\\'\"{}[]()<>&%$#@!?*+-=_|^`äßΩЖעه字符日한𝔘🤖\u202e\u0301\u200b\t\n"
_OPERATORS = ("AttentionNode", "FFNNode", "MoENode")


def of_type(document: Document, *types: str) -> list[Node]:
    """Nodes of these types."""
    return [node for node in document["nodes"] if node["type"] in types]


def children(document: Document) -> dict[str, list[Node]]:
    """Nodes by their parent."""
    by_parent: dict[str, list[Node]] = defaultdict(list)
    for node in document["nodes"]:
        by_parent[node["parent"]].append(node)
    return by_parent


def shuffled(document: Document, rng: random.Random) -> Document:
    """The plan with nodes, edges and the keys of every object in any order."""
    rng.shuffle(document["nodes"])
    rng.shuffle(document["edges"])
    return _shuffled_keys(document, rng)


def _shuffled_keys(value: Any, rng: random.Random) -> Any:
    if isinstance(value, list):
        return [_shuffled_keys(inner, rng) for inner in value]
    if not isinstance(value, dict):
        return value
    members = list(value.items())
    rng.shuffle(members)
    return {key: _shuffled_keys(inner, rng) for key, inner in members}


def renamed(document: Document, rng: random.Random) -> Document:
    """The plan with ids of any characters and length; one is empty."""
    names: dict[str | None, str | None] = {None: None}
    used = {""}
    empty = rng.choice(document["nodes"])["id"]
    for node in document["nodes"]:
        name = ""
        while name in used and node["id"] != empty:
            name = "".join(rng.choices(_CHARACTERS, k=rng.randint(1, 12)))
        used.add(name)
        names[node["id"]] = name
    for node in document["nodes"]:
        node["id"], node["parent"] = names[node["id"]], names[node["parent"]]
    for edge in document["edges"]:
        edge["source"], edge["target"] = names[edge["source"]], names[edge["target"]]
    return document


def permuted_devices(document: Document, rng: random.Random) -> Document:
    """The plan with the GPUs of each node permuted."""
    gpus = range(document["hardware"]["gpus_per_node"])
    moved: dict[str, str] = {}
    for node in range(document["hardware"]["nodes"]):
        order = list(gpus)
        rng.shuffle(order)
        moved.update({f"n{node}.g{gpu}": f"n{node}.g{order[gpu]}" for gpu in gpus})
    for element in document["nodes"]:
        if "devices" in element:
            element["devices"] = [moved[device] for device in element["devices"]]
    return document


def permuted_ranks(document: Document, rng: random.Random) -> Document | None:
    """The plan with the devices of each operator's shards and expert groups permuted, device lists in any order."""
    changed = False
    for parts in children(document).values():
        for kind in ("ShardNode", "ExpertNode"):
            group = [node for node in parts if node["type"] == kind and len(node["devices"]) == 1]
            homes = [node["devices"] for node in group]
            rng.shuffle(homes)
            for node, home in zip(group, homes, strict=True):
                changed = changed or node["devices"] != home
                node["devices"] = home
    for node in document["nodes"]:
        rng.shuffle(node.get("devices", []))
    return document if changed else None


def _ids(experts: list[Any]) -> list[int]:
    return [
        expert
        for entry in experts
        for expert in (range(entry[0], entry[1] + 1) if isinstance(entry, list) else [entry])
    ]  # fmt: skip


def experts_one_by_one(document: Document, rng: random.Random) -> Document | None:
    """The plan with every expert of a group listed singly, in any order."""
    groups = of_type(document, "ExpertNode")
    for node in groups:
        node["experts"] = _ids(node["experts"])
        rng.shuffle(node["experts"])
    return document if groups else None


def experts_as_ranges(document: Document, _: random.Random) -> Document | None:
    """The plan with every expert of a group as a range of one, except the first two as one range."""
    groups = of_type(document, "ExpertNode")
    for node in groups:
        ids = _ids(node["experts"])
        joined = len(ids) > 1 and ids[1] == ids[0] + 1
        first = [ids[0], ids[1]] if joined else [ids[0], ids[0]]
        node["experts"] = [first, *([expert, expert] for expert in ids[2 if joined else 1 :])]
    return document if groups else None


def experts_dealt_out(document: Document, _: random.Random) -> Document | None:
    """The plan with experts dealt to the groups in turn instead of in runs."""
    dealt = False
    for parts in children(document).values():
        groups = [node for node in parts if node["type"] == "ExpertNode"]
        ids = [expert for node in groups for expert in _ids(node["experts"])]
        for place, node in enumerate(groups):
            node["experts"] = ids[place :: len(groups)]
        dealt = dealt or len(groups) > 1
    return document if dealt and "redundant_experts" not in document["policy"]["relaxations"] else None


def with_bytes(document: Document, rng: random.Random) -> Document:
    """The plan with the bytes of hidden states on their edges: of a token, a prompt, or all requests in flight."""
    width = 2 * document["model"]["config"]["hidden_size"]
    workload = document["workload"]
    phases = {node["id"]: phase for phase in of_type(document, "PhaseNode") for node in _below(document, phase["id"])}
    for edge in document["edges"]:
        ends = {node["type"] for node in document["nodes"] if node["id"] in (edge["source"], edge["target"])}
        if edge["type"] == "synchronization" or ends & {"ShardNode", "KVCacheUpdateNode", "RouterNode", "AllToAllNode"}:
            continue
        prompt = workload["input_tokens"] if phases[edge["source"]]["phase"] == "prefill" else 1
        edge["bytes"] = width * rng.choice([1, prompt, prompt * workload["concurrency"]])
    return document


def _below(document: Document, root: str) -> list[Node]:
    """All descendants of a node."""
    parts = children(document)
    descendants = list(parts[root])
    for node in descendants:
        descendants.extend(parts[node["id"]])
    return descendants


def without_carries(document: Document, _: random.Random) -> Document:
    """The plan with no `carries` on its edges."""
    for edge in document["edges"]:
        edge.pop("carries", None)
    return document


def without_defaults(document: Document, _: random.Random) -> Document:
    """The plan with optional fields and degrees of 1 left out."""
    for element in (*document["nodes"], *document["edges"]):
        for key in ("kind", "rank", "carries", "bytes"):
            if element.get(key) in (None, {}):
                element.pop(key, None)
        for key, default in (("period", 1), ("offset", 0)):
            if element.get(key) == default:
                del element[key]
    for phase in ("prefill", "decode"):
        stated = {key: value for key, value in document["strategy"][phase].items() if value not in (1, None)}
        document["strategy"][phase] = stated
    for block in ("hardware", "workload", "policy"):
        document[block] = {key: value for key, value in document[block].items() if value not in (None, [], ())}
    return document


def with_defaults(document: Document, _: random.Random) -> Document:
    """The plan with optional fields stated with their default, or as null."""
    for node in document["nodes"]:
        if node["type"] == "LayerBlockNode":
            node.setdefault("period", 1)
        if node["type"] in _OPERATORS:
            node.setdefault("offset", 0)
        if node["type"] == "AttentionNode":
            node.setdefault("kind", None)
        if node["type"] in ("ShardNode", "LinearNode"):
            node["rank"] = {"tp": None, "sp": None, "dp": None, "kv_sp": None, **node.get("rank", {})}
        if node["type"] == "PhaseNode":
            node.setdefault("tokens_per_step", None)
            node.setdefault("recurrence", None)
    for edge in document["edges"]:
        edge.setdefault("carries", None)
        edge.setdefault("bytes", None)
    for phase in ("prefill", "decode"):
        degrees = document["strategy"][phase]
        for name in ("attention_dp", "tp_expert", "kv_sp"):
            degrees.setdefault(name, 1)
        for name in ("stage_layers", "sp_kind", "replicas"):
            degrees.setdefault(name, None)
    document["policy"].setdefault("memory_utilization", 0.9)
    return document


def with_ranks_of_one(document: Document, _: random.Random) -> Document:
    """The plan with ranks of 0 along the dimensions that do not split an operator."""
    parts = children(document)
    for operator in of_type(document, "AttentionNode", "FFNNode"):
        names = ("tp", "sp") if operator["type"] == "AttentionNode" else ("tp",)
        for node in parts[operator["id"]]:
            if node["type"] == "ShardNode":
                node["rank"] = {**dict.fromkeys(names, 0), **{k: v for k, v in node["rank"].items() if v is not None}}
    return document


def with_kinds_in_other_words(document: Document, rng: random.Random) -> Document | None:
    """The plan with common spellings of the kinds of attention."""
    words = {
        "full": ("full_attention", "Full", "GQA", "grouped-query", "global", "MHA"),
        "sliding": ("sliding_attention", "sliding_window", "SWA", "local"),
        "mla": ("MLA", "mla_attention", "multi-head latent"),
        "linear": ("linear_attention", "gated_deltanet", "mamba"),
    }
    operators = [node for node in of_type(document, "AttentionNode") if node.get("kind") in words]
    for node in operators:
        node["kind"] = rng.choice(words[node["kind"]])
    return document if operators else None


def with_all_relaxations(document: Document, _: random.Random) -> Document:
    """The plan with every relaxation named, needed or not."""
    document["policy"]["relaxations"] = list(get_args(Relaxation))
    return document


def with_unknown_config_fields(document: Document, _: random.Random) -> Document:
    """The plan with fields of the model's config that do not affect its shape."""
    config = document["model"]["config"]
    document["model"]["config"] = {**config, "transformers_version": "4.51.0", "_name": None, "auto_map": {"x": [1]}}
    return document
