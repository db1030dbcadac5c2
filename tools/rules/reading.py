"""What several rules read from a plan in the same way: where a node lives, what an operator runs on, who feeds whom.

Everything here is linear in the document and reads the prepared view only; nothing here judges.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from math import gcd

from msgspec import Struct

from ..catalog.config_fields import MAX_LAYERS
from ..engines.engine import Engine
from ..engines.names import JUDGED, engine_of
from ..plan.schema import shown
from ..plan.view import EdgeView, NodeView, PhaseView, PlanView, StageView, as_str, devices_of

COMPUTE_TYPES = ("ShardNode", "RouterNode", "ExpertNode")
OPERATOR_ORDER = {"AttentionNode": 0, "FFNNode": 1, "MoENode": 1}


# What may hold shards and their collectives under a relaxation, beside attention and FFN.
_RELAXED_HOLDERS = {"tp_in_expert": ("ExpertNode",), "vocab_parallel": ("EmbeddingNode", "LMHeadNode")}


def relaxed_holders(view: PlanView) -> frozenset[str]:
    """Types of node that may hold shards by the relaxations in force."""
    return frozenset(kind for name, kinds in _RELAXED_HOLDERS.items() if name in view.relaxations for kind in kinds)


def unlike_phases(view: PlanView, phases: Iterable[PhaseView]) -> list[PhaseView]:
    """Of `phases` that are copies of one another the first alone."""
    seen: set[Hashable] = set()
    unlike: list[PhaseView] = []
    for phase in phases:
        likeness = view.likeness_of(phase)
        if likeness is None or likeness not in seen:
            seen.add(likeness)
            unlike.append(phase)
    return unlike


def compute_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on: its shards', or the router's and the experts' of a MoE operator.

    A shared expert runs beside the routed ones and is not counted. Embedding and LM head compute on their own list.
    """
    own = operator.devices if operator.type in ("EmbeddingNode", "LMHeadNode") else ()
    return devices_of(operator.children_of_type(*COMPUTE_TYPES)).union(own)


def is_on_too_many(view: PlanView, part: NodeView) -> bool:
    """Whether a shard or an expert group names several devices where it may not (TP002, EP003)."""
    wide = part.type == "ShardNode" or (part.type == "ExpertNode" and "tp_in_expert" not in view.relaxations)
    return wide and len(part.devices) > 1


def settled_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on and that another of its nodes (KV write, collective) names too.

    One shard set on a wrong device is one fault of that shard; it must not make every neighbour look wrong too.
    """
    computing = compute_devices(operator)
    others = [child for child in operator.children if child.is_collective or child.type == "KVCacheUpdateNode"]
    named = devices_of(others)
    return (computing & named) or named or computing


def stage_of(view: PlanView, operator: NodeView) -> StageView | None:
    """The stage that has `operator` in one of its blocks; `None` where it hangs elsewhere."""
    stages = view.once(stage_of, lambda: {node.position: at for at in view.stages for node in at.operators})
    return stages.get(operator.position)


class StrangeDevices(Struct, frozen=True):
    """Devices that a node of a stage names though they are not the stage's; other rules need not say it again.

    `absent` are outside the inventory (GP004) or another replica's (DP002), `elsewhere` another stage's of the phase
    (PP006, TP004).
    """

    absent: frozenset[str]
    elsewhere: frozenset[str]

    @property
    def both(self) -> frozenset[str]:
        """All of them."""
        return self.absent | self.elsewhere


def strange_devices(view: PlanView) -> dict[int, StrangeDevices]:
    """For each stage, by node position, the devices that it names and another stage or replica, or nobody, has."""
    return view.whole.once(strange_devices, lambda: _strange_devices(view.whole))


def _strange_devices(view: PlanView) -> dict[int, StrangeDevices]:
    settled = [(phase, stage, stage.settled_devices) for phase in view.phases for stage in phase.stages]
    owners: dict[str, set[tuple[int, int]]] = {}
    for phase, _, devices in settled:
        for device in devices:
            owners.setdefault(device, set()).add(_branch(phase))
    strange: dict[int, StrangeDevices] = {}
    for phase, stage, devices in settled:
        replica, branch = _branch(phase)
        absent = {device for device in stage.devices if device in view.absent_devices}
        elsewhere: set[str] = set()
        for device in stage.devices - devices - absent:
            homes = owners.get(device, set())
            if any(home != replica for home, _ in homes):
                absent.add(device)
            elif any(other == branch for _, other in homes):
                elsewhere.add(device)
        strange[stage.node.position] = StrangeDevices(frozenset(absent), frozenset(elsewhere))
    return strange


def _branch(phase: PhaseView) -> tuple[int, int]:
    """Positions of the replica and of the phase node."""
    return (-1 if phase.replica is None else phase.replica.position, phase.node.position)


def tiles_layers(stage: StageView) -> bool:
    """Whether the blocks of `stage` hold its layers in order, each once; otherwise PP004 says where they do not.

    Blocks that say alike that they hold the same layers count as one: which of them is wrong is open.
    """
    if stage.layers is None:
        return True
    expected, previous = stage.layers[0], None
    for block in stage.blocks:
        if block.layers is None:
            return True
        if block.layers != previous:
            if block.layers[0] != expected or block.layers[1] < expected:
                return False
            expected = block.layers[1] + 1
        previous = block.layers
    return expected == stage.layers[1] + 1


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


def layers_of(view: PlanView, operator: NodeView | None) -> range:
    """Layers that an operator of a layer block stands for; empty where they cannot be read."""
    block = None if operator is None else operator.parent
    if operator is None or block is None or block.type != "LayerBlockNode" or block.layers is None:
        return range(0)
    first, last = block.layers
    return clipped((first + operator.offset, last), view.num_layers)[:: block.period]


def ranges_meet(one: range, other: range) -> bool:
    """Whether two rising ranges have a number in common: the two congruences solved, without walking either."""
    if not one or not other:
        return False
    common = gcd(one.step, other.step)
    if (other.start - one.start) % common:
        return False
    modulus = other.step // common
    steps = (other.start - one.start) // common * pow(one.step // common, -1, modulus) % modulus
    meeting = one.start + steps * one.step
    both = one.step * modulus
    start = max(one.start, other.start)
    if meeting < start:
        meeting += -(-(start - meeting) // both) * both
    return meeting <= min(one[-1], other[-1])


def is_cache_edge(edge: EdgeView) -> bool:
    """Whether the edge leads from a KVCacheUpdate to an attention operator other than its own."""
    if edge.source is None or edge.target is None or edge.source.parent is edge.target:
        return False
    return edge.source.type == "KVCacheUpdateNode" and edge.target.type == "AttentionNode"


def prefill_feeders(view: PlanView) -> Iterator[tuple[PhaseView, list[PhaseView]]]:
    """Every decode phase with the prefill phases that may hand it a KV cache (R14).

    A replica that serves both phases feeds itself; a decode-only replica is fed by every prefill-only one.
    """
    served = view.served.values()
    alone = [phase for phases in served if "decode" not in phases for phase in phases.get("prefill", ())]
    for phases in served:
        for phase in phases.get("decode", ()):
            yield phase, phases.get("prefill", alone)


def label(node: NodeView) -> str:
    """The node's id as it stands in a message."""
    return shown(node.id)


def named_engine(view: PlanView) -> Engine | None:
    """The engine that the plan is for, of those that the EN rules know: `serving.engine`."""
    name = engine_of(as_str(view.serving.get("engine")))
    return None if name is None else JUDGED[name]
