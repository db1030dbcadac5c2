"""SP003: no sequence parallelism over query tokens in decode.

Reports sequence shards and exchanges in a decode branch, and a declared decode degree above 1. Shards along the KV
cache (`kv_sp`) are allowed under `kv_sequence_decode` alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, as_int, as_mapping
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import SEQUENCE_ROLES, shards_of

_MAX_NAMED = 64


def _split_nodes(operator: NodeView, name: str) -> list[NodeView]:
    """What splits an attention operator along `name`: nothing where all its shards have one rank there."""
    ranked = [shard for shard in shards_of(operator) if name in shard.rank]
    exchanges = [n for n in operator.children_of_type("AllToAllNode") if name == "sp" and n.role in SEQUENCE_ROLES]
    if len({shard.rank[name] for shard in ranked}) < 2:
        ranked = []
    return [*ranked, *exchanges]


def _declared(view: PlanView, name: str) -> int:
    return as_int(as_mapping(view.strategy.get("decode")).get(name)) or 1


def _finding(view: PlanView, name: str, found: list[tuple[NodeView, list[NodeView]]], remedy: str) -> Finding:
    what = "query tokens" if name == "sp" else "the KV cache (without the relaxation kv_sequence_decode)"
    declared = _declared(view, name)
    if not found:
        return Finding(
            f"strategy.decode.{name} is {declared}: decode does not split {what} along the sequence",
            where=f"/strategy/decode/{name}", value=declared, expected=1, remedy=remedy,
        )  # fmt: skip
    nodes = [node for operator, parts in found for node in (operator, *parts)]
    return Finding(
        f"{label(found[0][0])}{f' and {len(found) - 1} more' if len(found) > 1 else ''}: decode splits {what} along "
        "the sequence",
        where=found[0][0], nodes=nodes[:_MAX_NAMED], value=len(found[0][1]), expected=0, remedy=remedy,
    )  # fmt: skip


def check(view: PlanView) -> Iterator[Finding]:
    """Yield SP in decode, once for the queries and once for the cache."""
    decode = [phase for phase in view.phases if phase.phase == "decode"]
    operators = [
        node
        for phase in decode
        for stage in phase.stages
        for node in stage.operators()
        if node.type == "AttentionNode"
    ]  # fmt: skip
    remedies = {"sp": "give the devices to tp in decode; a step has one query token a request"}
    if "kv_sequence_decode" not in view.relaxations:
        remedies["kv_sp"] = "name kv_sequence_decode in policy.relaxations, or use tp"
    for name, remedy in remedies.items():
        found = [(operator, _split_nodes(operator, name)) for operator in operators]
        found = [(operator, parts) for operator, parts in found if parts]
        if found or _declared(view, name) > 1:
            yield _finding(view, name, found, remedy)


_BASE = "relaxed-kv-sp2"

RULE = Rule(
    id="SP003",
    name="sequence split in decode",
    severity="error",
    requirement="No SP over query tokens in decode; the KV cache is split along the sequence only when relaxed.",
    rationale=(
        "A decode step has one query token for each request: there is no sequence of queries to split, and splitting "
        "the cache instead needs partial results to be merged, which a plan must ask for by name."
    ),
    source="000 §1.2, §6",
    fix="re-plan",
    remedy="use tp in decode",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set_top", field="/policy/relaxations", value=[]),)),
)
