"""TP002: the shards of an operator are ranked 0…tp−1, each once, each on its own device.

Checked for every combination of the other ranks. A `LinearNode` takes no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...plan.degrees import ATTENTION_DEGREES, missing_rank
from ...plan.view import NodeView, PlanView, devices_of
from ..base import Edit, Example, Finding, Rule
from ..legality import RELAXATION_OF
from ..reading import label
from ..sharding import dimension_at_fault, lent_shards, names, rank_groups, undefined_ranks

_MAX_SHOWN = 64


def _misranked(view: PlanView, operator: NodeView) -> Finding | None:
    if lent_shards(operator):
        # One shard is below another operator, which TP004 reports.
        return None
    missing = missing_rank(view, operator) or {}
    name = dimension_at_fault(view, operator)
    if name == "kv_sp" and operator.type != "AttentionNode":
        # No such split belongs there (SP001).
        return None
    if name in (None, "sp") or undefined_ranks(operator):
        return None
    relaxation = RELAXATION_OF.get(ATTENTION_DEGREES[name])
    if relaxation is not None and relaxation not in view.relaxations:
        # Right ranks would not mend a dimension that no relaxation allows.
        return None
    phase = operator.ancestor("PhaseNode")
    if name == "kv_sp" and phase is not None and phase.raw.get("phase") == "prefill":
        # No such split belongs there (SP003).
        return None
    shards = operator.children_of_type("ShardNode")
    ranks: list[Any] = [dict(shard.rank) for shard in shards]
    if name in missing:
        size = len({missing[name], *[shard.rank.get(name) for shard in shards]})
    elif name == "tp":
        size = max(len(group) for group in rank_groups(operator, "tp"))
        wrong = [group for group in rank_groups(operator, "tp") if _places(group) != list(range(size))]
        shards = [shard for group in wrong for shard in group] or shards
        ranks = [shard.rank.get("tp") for shard in shards]
    else:
        size = len({shard.rank.get(name) for shard in shards})
    lacking = f"no shard has the rank {missing}, and " if missing else ""
    return Finding(
        "wrong-ranks",
        f"{lacking}the shards {names(shards)} of {label(operator)} have the ranks {ranks[:_MAX_SHOWN]!r:.200}; along "
        f"{name} they run from 0 to {size - 1}, each once",
        where=operator,
        nodes=shards,
        value=ranks[:_MAX_SHOWN],
        expected=list(range(min(size, _MAX_SHOWN))),
        lacks=("ShardNode",),
    )


def _places(group: list[NodeView]) -> list[int]:
    return sorted(shard.rank.get("tp", -1) for shard in group)


def _misplaced(operator: NodeView) -> Iterator[Finding]:
    for group in rank_groups(operator, "tp"):
        for shard in group if len(group) > 1 else ():
            if len(set(shard.devices)) != 1:
                yield Finding(
                    "not-one-device", f"{label(shard)} stands on {len(set(shard.devices))} devices; a shard is on one",
                    where=shard, nodes=(operator,), value=list(shard.devices), expected=1,
                    remedy="place the shard on one device of its own",
                )  # fmt: skip


def _uncovered(vocabulary: NodeView) -> Iterator[Finding]:
    """A split embedding or LM head whose shards are not on the devices that it names."""
    shards = vocabulary.children_of_type("ShardNode")
    homes = devices_of(shards)
    if shards and homes != frozenset(vocabulary.devices):
        yield Finding(
            "not-on-each-device",
            f"the shards {names(shards)} of {label(vocabulary)} are not one on each of its devices",
            where=vocabulary,
            nodes=shards,
            value=sorted(homes),
            expected=sorted(set(vocabulary.devices)),
            remedy="place one shard on each device of the embedding or LM head",
            lacks=("ShardNode",),
        )


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding | None]:
    """Yield an operator with wrong ranks, and every shard that is not on exactly one device."""
    misranked = _misranked(view, operator)
    yield misranked
    yield from _misplaced(operator)
    if misranked is None and operator.type in ("EmbeddingNode", "LMHeadNode"):
        yield from _uncovered(operator)


RULE = Rule(
    id="TP002",
    name="broken tensor ranks",
    requirement=(
        "One logical operator holds the shards; ranks are 0…tp−1, each once, each on one device"
        " (two on the same: GP004)."
    ),
    rationale=(
        "A rank says which heads or columns a shard computes. A rank twice computes a part twice and leaves another "
        "out; two shards on one device gain nothing and cost a collective."
    ),
    source="000 §3.1, 002 §3.3",
    remedy="number the shards of each group from 0, each once",
    visits="tp_operator",
    decide=decide,
    bad=Example("dense-tp2", (Edit("set", "r0.prefill.s0.b0.attn.tp1", "rank", {"tp": 2}),)),
)
