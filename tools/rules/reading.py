"""What several rules read from a plan in the same way: where a node lives, what an operator runs on, who feeds whom.

Everything here is linear in the document and reads the prepared view only; nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.schema import shown
from ..plan.view import NodeView, PhaseView, PlanView, StageView

COMPUTE_TYPES = ("ShardNode", "RouterNode", "ExpertNode")
OPERATOR_ORDER = {"AttentionNode": 0, "FFNNode": 1, "MoENode": 1}
# Layers beyond this are read as absent where the model does not say how many there are: no model has as many.
MAX_LAYERS = 10_000


class Enclosing:
    """Finds the nearest node of one type at or above a node; what it has found it remembers."""

    def __init__(self, node_type: str) -> None:
        self.node_type = node_type
        self._known: dict[int, NodeView | None] = {}

    def of(self, node: NodeView | None) -> NodeView | None:
        """`node` itself where it is of the type, else its nearest ancestor of it; `None` where there is none."""
        walked: list[int] = []
        found: NodeView | None = None
        while node is not None:
            if node.position in self._known:
                found = self._known[node.position]
                break
            # Entered before the answer is known, so that a cycle of parents ends here.
            self._known[node.position] = None
            walked.append(node.position)
            if node.type == self.node_type:
                found = node
                break
            node = node.parent
        for position in walked:
            self._known[position] = found
        return found


def compute_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on: its shards', or the router's and the experts' of a MoE operator.

    A shared expert runs beside the routed ones and is not counted. Embedding and LM head compute on their own list.
    """
    found = {device for child in operator.children_of_type(*COMPUTE_TYPES) for device in child.devices}
    if operator.type in ("EmbeddingNode", "LMHeadNode"):
        found.update(operator.devices)
    return frozenset(found)


def settled_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on and that another of its nodes (KV write, collective) bears out.

    One shard set on a wrong device is one fault of that shard; it must not make every neighbour look wrong too.
    """
    computing = compute_devices(operator)
    others = [child for child in operator.children if child.is_collective or child.type == "KVCacheUpdateNode"]
    named = {device for child in others for device in child.devices}
    return (computing & named) or frozenset(named) or computing


def stage_devices(stage: StageView) -> frozenset[str]:
    """D as the stage's own nodes bear it out: devices that at least two of them name, or all where none is so named."""
    seen: set[str] = set()
    twice: set[str] = set()
    for node in stage.node.descendants():
        own = set(node.devices)
        twice |= own & seen
        seen |= own
    return frozenset(twice or seen)


def operators_in_order(block: NodeView) -> list[NodeView]:
    """The block's operators as they run: by offset, attention before FFN and MoE."""
    return sorted(
        block.children_of_type(*OPERATOR_ORDER),
        key=lambda node: (node.offset, OPERATOR_ORDER[node.type], node.position),
    )


def clipped(layers: tuple[int, int], total: int | None) -> range:
    """`layers` (inclusive) as a range inside the model; empty where they run backwards."""
    bound = MAX_LAYERS if total is None else total
    return range(max(layers[0], 0), min(layers[1] + 1, bound))


def prefill_feeders(view: PlanView) -> Iterator[tuple[PhaseView, list[PhaseView]]]:
    """Every decode phase with the prefill phases that may hand it a KV cache (R14).

    A replica that serves both phases feeds itself; a decode-only replica is fed by every prefill-only one.
    """
    by_replica: dict[int, list[PhaseView]] = {}
    for phase in view.phases:
        if phase.replica is not None:
            by_replica.setdefault(phase.replica.position, []).append(phase)
    alone = [
        phase
        for phases in by_replica.values()
        if not any(other.phase == "decode" for other in phases)
        for phase in phases
        if phase.phase == "prefill"
    ]
    for phases in by_replica.values():
        own = [phase for phase in phases if phase.phase == "prefill"]
        for phase in phases:
            if phase.phase == "decode":
                yield phase, own or alone


def label(node: NodeView) -> str:
    """The node's id as it stands in a message."""
    return shown(node.id)
