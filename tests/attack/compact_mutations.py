"""Hostile compact forms: `repeat`, `like` and templates that expand hugely, or to nothing valid."""

from __future__ import annotations

import random
from typing import Any

_COUNTS = (0, 1, 2, 8, 1000, 20_000, 100_000, 10**6, 10**9, 10**18, -1, 1.5, "3", True, None, [])
_TEMPLATES = (
    "{i}",
    "{i*8+7}",
    "{i*999999999}",
    "{i-1}",
    "{i+i}",
    "{j}",
    "{",
    "}{",
    "{i}{i}{i}{i}",
    "{ i * 2 }",
    "{i*0}",
)


def _small_or_any(rng: random.Random) -> Any:
    return rng.choice(_COUNTS) if rng.random() < 0.6 else rng.choice((1000, 20_000, 100_000))


def _repeat_nodes(document: dict[str, Any], rng: random.Random) -> str:
    count, template = _small_or_any(rng), rng.choice(_TEMPLATES)
    for row in rng.sample(document["nodes"], min(len(document["nodes"]), rng.choice((1, 3)))):
        row["repeat"] = count
        row["id"] = f"{row['id']}{template}" * rng.choice((1, 1, 200))
        if "devices" in row:
            row["devices"] = [f"n0.g{template}"] * rng.choice((1, 1, 100))
        if "rank" in row:
            row["rank"] = {"tp": template}
    return f"nodes repeated {count} times, {template}"


def _repeat_edges(document: dict[str, Any], rng: random.Random) -> str:
    count = _small_or_any(rng)
    for row in rng.sample(document["edges"], min(len(document["edges"]), rng.choice((1, 2, 20)))):
        row["repeat"] = count
        if rng.random() < 0.5:
            row["source"] = row["source"] + rng.choice(_TEMPLATES)
    return f"edges repeated {count} times"


def _both(document: dict[str, Any], rng: random.Random) -> str:
    """Repeat a shard and its edges: valid in form, but more than there are devices."""
    shards = [row for row in document["nodes"] if row.get("type") in ("ShardNode", "ExpertNode", "LayerBlockNode")]
    if not shards:
        return _repeat_nodes(document, rng)
    count, row = rng.choice((8, 1000, 20_000, 100_000, 400_000)), rng.choice(shards)
    old = row["id"]
    row["id"], row["repeat"] = old + ".{i}", count
    if "devices" in row:
        row["devices"] = ["n{i}.g0"]
    for edge in document["edges"]:
        for end in ("source", "target"):
            if edge[end] == old:
                edge[end] = row["id"]
    return f"{row['type']} {count} times with its edges"


def _like(document: dict[str, Any], rng: random.Random) -> str:
    """Add replicas that copy others: many, far away, copies of themselves, of non-replicas, in long chains."""
    nodes = document["nodes"]
    replicas = [row for row in nodes if row.get("type") == "ReplicaNode"]
    if not replicas:
        return _repeat_nodes(document, rng)
    first, kind = replicas[0], rng.choice(("many", "chain", "self", "stranger", "repeat"))
    count = rng.choice((1, 7, 300, 5000, 40_000))
    base = {"type": "ReplicaNode", "parent": first["parent"]}
    step = rng.choice((1, 2, 8, 10**9, -1, "8", 1.5))

    def copy(index: int, like: Any) -> dict[str, Any]:
        offset = step * index if isinstance(step, int) else step
        return {**base, "id": f"L{index}", "index": index, "like": like, "device_offset": offset}

    if kind == "many":
        nodes.extend(copy(index, first["id"]) for index in range(1, count + 1))
    elif kind == "chain":
        nodes.extend(copy(index, first["id"] if index == 1 else f"L{index - 1}") for index in range(1, count + 1))
    elif kind == "self":
        nodes.extend((copy(1, "L2"), copy(2, "L1"), copy(3, "L3")))
    elif kind == "stranger":
        nodes.append(copy(1, rng.choice((nodes[0]["id"], nodes[-1]["id"], "nobody", "", None, 3, ["L1"]))))
    else:
        nodes.append(
            {**copy(1, first["id"]), "id": "L{i}", "index": "{i+1}", "repeat": count, "device_offset": "{i*8+8}"}
        )
    if rng.random() < 0.5:
        document["strategy"]["dp"] = len(replicas) + count
        document["hardware"]["nodes"] = rng.choice((count + 1, 10**6))
    return f"like: {kind} × {count}, step {step}"


def compact(document: dict[str, Any], rng: random.Random) -> str:
    """Write a part of `document` in the compact form; returns what was written, in words."""
    return rng.choice((_repeat_nodes, _repeat_edges, _both, _like, _like))(document, rng)
