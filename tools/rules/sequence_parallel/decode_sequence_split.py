"""SP003: no sequence parallelism over query tokens in decode.

Reports sequence shards and exchanges in a decode branch, and a declared decode degree above 1. Shards along the KV
cache (`kv_sp`) are allowed in decode under `kv_sequence_decode` alone, and never in prefill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from ...plan.view import NodeView, PlanView, as_int, as_mapping
from ..base import MAX_NODES, Example, Finding, Rule, set_top
from ..legality import Case, DegreeLimit, Fault
from ..reading import label
from ..sharding import SEQUENCE_ROLES


def _split_nodes(operator: NodeView, name: str) -> list[NodeView]:
    """The nodes that split an attention operator along `name`; empty if all its shards have the same rank there."""
    ranked = [shard for shard in operator.children_of_type("ShardNode") if name in shard.rank]
    exchanges = [n for n in operator.children_of_type("AllToAllNode") if name == "sp" and n.role in SEQUENCE_ROLES]
    if {shard.rank.get(name) for shard in operator.children_of_type("ShardNode")} == {0}:
        ranked = []
    return [*ranked, *exchanges]


class _Split(Struct, frozen=True):
    """A split along the sequence that a phase must not have, and what to do instead."""

    message_id: str
    phase: str
    name: str
    what: str
    remedy: str


def _forbidden(view: PlanView) -> Iterator[_Split]:
    remedy = "give the devices to tp in decode; a step has one query token a request"
    yield _Split("queries-in-decode", "decode", "sp", "query tokens", remedy)
    if "kv_sequence_decode" not in view.relaxations:
        what = "the KV cache (without the relaxation kv_sequence_decode)"
        yield _Split(
            "cache-unrelaxed", "decode", "kv_sp", what, "name kv_sequence_decode in policy.relaxations, or use tp"
        )
    # Prefill splits its sequence by `sp`; shards of the cache belong to decode.
    yield _Split(
        "cache-in-prefill",
        "prefill",
        "kv_sp",
        "the KV cache, as decode alone may,",
        "split the sequence of prefill by the degree sp",
    )


def _finding(split: _Split, declared: int, places: list[tuple[NodeView, list[NodeView]]]) -> Finding:
    if not places:
        return Finding(
            split.message_id,
            f"strategy.{split.phase}.{split.name} is {declared}: {split.phase} does not split {split.what} along the "
            "sequence",
            where=f"/strategy/{split.phase}/{split.name}", value=declared, expected=1, remedy=split.remedy,
        )  # fmt: skip
    nodes = [node for operator, parts in places for node in (operator, *parts)]
    return Finding(
        split.message_id,
        f"{label(places[0][0])}{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {split.phase} splits "
        f"{split.what} along the sequence",
        where=places[0][0], nodes=nodes[:MAX_NODES], value=len(places[0][1]), expected=0, remedy=split.remedy,
    )  # fmt: skip


def check(view: PlanView) -> Iterator[Finding]:
    """Yield SP in decode, once for the queries and once for the cache, and a split of the cache in prefill."""
    operators: dict[str | None, list[NodeView]] = {}
    named = Counter((phase.replica, phase.phase) for phase in view.phases)
    for phase in view.phases:
        # Of two branches with the same name, one is misnamed (PH001) or surplus (DE005).
        if named[phase.replica, phase.phase] > 1:
            continue
        attention = (node for stage in phase.stages for node in stage.operators if node.type == "AttentionNode")
        operators.setdefault(phase.phase, []).extend(attention)
    for split in _forbidden(view):
        parts_of = ((operator, _split_nodes(operator, split.name)) for operator in operators.get(split.phase, ()))
        places = [(operator, parts) for operator, parts in parts_of if parts]
        declared = as_int(as_mapping(view.strategy.get(split.phase)).get(split.name)) or 1
        if places or declared > 1:
            yield _finding(split, declared, places)


def _queries(case: Case) -> Iterator[Fault]:
    if case.degrees.phase == "decode" and case.degrees.sp > 1:
        yield Fault(
            "queries-in-decode",
            f"sp {case.degrees.sp} in decode, which has one query token a request",
            case.degrees.sp,
            1,
        )


def _cache(case: Case) -> Iterator[Fault]:
    kv_sp = case.degrees.kv_sp
    if kv_sp > 1 and case.degrees.phase == "prefill":
        yield Fault("cache-in-prefill", f"kv_sp {kv_sp} in prefill, which splits its sequence by sp", kv_sp, 1)
    elif kv_sp > 1 and "kv_sequence_decode" not in case.conditions.relaxations:
        yield Fault("cache-unrelaxed", f"kv_sp {kv_sp} without the relaxation kv_sequence_decode", kv_sp, 1)


RULE = Rule(
    id="SP003",
    name="sequence split in decode",
    requirement="No SP over query tokens in decode; the KV cache is split along the sequence only when relaxed.",
    rationale=(
        "A decode step has one query token for each request: there is no sequence of queries to split, and splitting "
        "the cache instead needs partial results to be merged, which a plan must ask for by name."
    ),
    source="000 §1.2, §6",
    fix="re-plan",
    remedy="use tp in decode",
    visits="parts",
    check=check,
    limits=(DegreeLimit(("sp", "phase"), _queries), DegreeLimit(("kv_sp", "phase"), _cache)),
    bad=Example("relaxed-kv-sp2", (set_top("/policy/relaxations", []),)),
)
