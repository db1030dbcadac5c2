"""TP002: the shards of an operator are ranked 0…tp−1, each once, each on its own device.

Checked for every combination of the other ranks. Ranks that are wrong along the sequence are SP002's; a `LinearNode`
takes no part. Fewer shards than declared, ranked without a hole, are CO002's; more than the stage has devices, GP003's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, label
from ..sharding import misranked_dimension, names, shards_of, tensor_groups, tensor_holders, undefined_ranks

_RELAXED = {"dp": "attention_dp", "kv_sp": "kv_sequence_decode"}
_MAX_SHOWN = 64


def _misranked(view: PlanView, operator: NodeView) -> Finding | None:
    name = misranked_dimension(operator)
    # A dimension that no relaxation allows is not mended by counting it right.
    if name in (None, "sp") or _RELAXED.get(name, name) not in (*view.relaxations, "tp") or undefined_ranks(operator):
        return None
    shards = shards_of(operator)
    ranks: list[Any] = [dict(shard.rank) for shard in shards]
    if name == "tp":
        size = max(len(group) for group in tensor_groups(operator))
        wrong = [group for group in tensor_groups(operator) if _places(group) != list(range(size))]
        shards = [shard for group in wrong for shard in group] or shards
        ranks = [shard.rank.get("tp") for shard in shards]
    else:
        size = len({shard.rank.get(name) for shard in shards})
    return Finding(
        f"the shards {names(shards)} of {label(operator)} have the ranks {ranks[:_MAX_SHOWN]!r:.200}; along {name} "
        f"they run from 0 to {size - 1}, each once",
        where=operator,
        nodes=(operator, *shards),
        value=ranks[:_MAX_SHOWN],
        expected=list(range(min(size, _MAX_SHOWN))),
    )


def _places(group: list[NodeView]) -> list[int]:
    return sorted(shard.rank.get("tp", -1) for shard in group)


def _misplaced(operator: NodeView, width: int | None) -> Iterator[Finding]:
    if width is not None and len(shards_of(operator)) > width:
        return
    for group in tensor_groups(operator):
        first: dict[str, NodeView] = {}
        for shard in group if len(group) > 1 else ():
            if len(set(shard.devices)) != 1:
                yield Finding(
                    f"{label(shard)} stands on {len(set(shard.devices))} devices; a shard is on one",
                    where=shard, nodes=(operator,), value=list(shard.devices), expected=1,
                    remedy="place the shard on one device of its own",
                )  # fmt: skip
                continue
            other = first.setdefault(shard.devices[0], shard)
            if other is not shard:
                yield Finding(
                    f"{label(other)} and {label(shard)} of one TP group of {label(operator)} are both on "
                    f"{shard.devices[0]}",
                    where=shard, nodes=(other, operator), value=shard.devices[0],
                    remedy="place each shard on a device of its own",
                )  # fmt: skip


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every operator whose shards are ranked wrongly, and every shard without a device of its own."""
    widths = {stage.node.position: len(stage.devices) for stage in view.stages}
    stages = Enclosing("PipelineStageNode")
    for operator in tensor_holders(view):
        finding = _misranked(view, operator)
        if finding is not None:
            yield finding
        stage = stages.of(operator)
        yield from _misplaced(operator, None if stage is None else widths.get(stage.position))


_BASE = "dense-tp2"

RULE = Rule(
    id="TP002",
    name="broken tensor ranks",
    severity="error",
    requirement="One logical operator holds the shards; ranks are 0…tp−1, each once, each on its own device.",
    rationale=(
        "A rank says which heads or columns a shard computes. A rank twice computes a part twice and leaves another "
        "out; two shards on one device gain nothing and cost a collective."
    ),
    source="000 §3.1, 002 §3.3",
    fix="local",
    remedy="number the shards of each group from 0, each once",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set", "r0.prefill.s0.b0.attn.tp1", "rank", {"tp": 2}),)),
)
