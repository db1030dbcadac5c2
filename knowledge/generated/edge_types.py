"""Every kind of edge that a valid plan holds, read off the rules' examples that pass (without relaxed ones)."""

from __future__ import annotations

from typing import Any

from ...tools.rules.base import Example
from ...tools.rules.examples import apply, base_names
from ...tools.rules.registry import all_rules
from .markdown import table


def _kinds() -> dict[tuple[str, str, str], set[tuple[str, str]]]:
    """(container, type, carries) → (source type, target type) of the edges in it; a KV-cache edge has no container."""
    ends_by_kind: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    examples = [*(Example(name) for name in base_names()), *(rule.good for rule in all_rules())]
    for example in examples:
        plan = apply(example)
        if plan["policy"]["relaxations"]:
            continue
        nodes = {node["id"]: node for node in plan["nodes"]}
        for edge in plan["edges"]:
            source, target = nodes[edge["source"]], nodes[edge["target"]]
            key = (_container(nodes, source, target), edge["type"], edge.get("carries", "—"))
            ends_by_kind.setdefault(key, set()).add((_short(source), _short(target)))
    return ends_by_kind


def _container(nodes: dict[str, Any], source: dict[str, Any], target: dict[str, Any]) -> str:
    if source["parent"] != target["parent"]:
        return "prefill → decode"
    return nodes[source["parent"]]["type"].removesuffix("Node")


def _short(node: dict[str, Any]) -> str:
    name = node["type"].removesuffix("Node")
    return f"{name} {node['role']}" if "role" in node else name


def generate() -> str:
    """The table of edges: where they run, what they join, their type and what they carry."""
    rows: list[tuple[str, str, str, str]] = []
    for (container, kind, carries), ends in _kinds().items():
        by_source: dict[str, list[str]] = {}
        for source, target in sorted(ends):
            by_source.setdefault(source, []).append(target)
        joined = "; ".join(f"{source} → {', '.join(targets)}" for source, targets in by_source.items())
        rows.append((container, joined, kind, carries))
    return "\n".join(table(("inside", "joins", "type", "carries"), sorted(rows, key=_place)))


def _place(row: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    order = ("Phase", "PipelineStage", "LayerBlock", "Attention", "FFN", "MoE")
    return order.index(row[0]) if row[0] in order else len(order), row
