"""What the rules on shards read alike: operators that hold shards, their ranks, and how the shards come together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..plan.view import NodeView, PhaseView, PlanView, StageView

# Where shards may live without any relaxation.
SHARDED_TYPES = ("AttentionNode", "FFNNode")


@dataclass(frozen=True, slots=True, eq=False)
class ShardedOperator:
    """One operator that holds shards, and where it is."""

    node: NodeView
    phase: PhaseView
    stage: StageView
    shards: tuple[NodeView, ...]

    def places(self, dimension: str) -> frozenset[int]:
        """Ranks that occur along a dimension."""
        return frozenset(shard.rank[dimension] for shard in self.shards if dimension in shard.rank)

    def groups(self, dimension: str = "tp") -> dict[tuple[tuple[str, int], ...], list[NodeView]]:
        """Shards that differ along `dimension` alone, by their rank along all others."""
        found: dict[tuple[tuple[str, int], ...], list[NodeView]] = {}
        for shard in self.shards:
            others = tuple(sorted((name, place) for name, place in shard.rank.items() if name != dimension))
            found.setdefault(others, []).append(shard)
        return found

    @property
    def tp(self) -> int:
        """Tensor-parallel degree that the ranks show; 1 where no shard carries one."""
        return len(self.places("tp")) or 1

    def outputs(self) -> list[NodeView]:
        """Collectives of the operator that come after its shards (the K/V gather and `sequence_in` come before)."""
        ids = {id(shard) for shard in self.shards}
        return [
            child
            for child in self.node.children
            if child.is_collective
            and child.role not in ("sequence_in", "dispatch")
            and not any(edge.target is not None and id(edge.target) in ids for edge in child.edges_out)
        ]


def sharded_operators(view: PlanView, *types: str) -> Iterator[ShardedOperator]:
    """Operators of the given types (attention and FFN, shared experts too, by default) with at least one shard."""
    wanted = types or SHARDED_TYPES
    for phase in view.phases:
        for stage in phase.stages:
            for node in stage.node.descendants():
                if node.type in wanted:
                    shards = node.children_of_type("ShardNode")
                    if shards:
                        yield ShardedOperator(node, phase, stage, tuple(shards))


def sharding_types(view: PlanView) -> tuple[str, ...]:
    """Types of nodes that may hold tensor-parallel shards under the relaxations in force."""
    types = list(SHARDED_TYPES)
    if "tp_in_expert" in view.relaxations:
        types.append("ExpertNode")
    if "vocab_parallel" in view.relaxations:
        types.extend(("EmbeddingNode", "LMHeadNode"))
    return tuple(types)


def joined(source: NodeView, target: NodeView) -> bool:
    """Whether an edge of any type leads from `source` to `target` (its type is another rule's concern)."""
    return any(edge.target is target for edge in source.edges_out)


def names(items: Sequence[str], limit: int = 8) -> str:
    """`items` as one phrase, the rest counted."""
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
