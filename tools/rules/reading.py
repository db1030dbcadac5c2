"""Readings of a plan that several rules share: where a node belongs, what an operator runs on, which phases feed which.

Everything here is linear in the document and reads only the prepared view; nothing is judged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from math import gcd

from msgspec import Struct

from ..catalog.config_fields import MAX_LAYERS
from ..engines.engine import Engine
from ..engines.names import JUDGED, engine_of
from ..plan.schema import shown
from ..plan.view import EdgeView, NodeView, PhaseView, PlanView, StageView, as_str, devices_of, once_for_whole

COMPUTE_TYPES = ("ShardNode", "RouterNode", "ExpertNode")
OPERATOR_ORDER = {"AttentionNode": 0, "FFNNode": 1, "MoENode": 1}


# Node types that may hold shards and their collectives under a relaxation, beside attention and FFN.
_RELAXED_HOLDERS = {"tp_in_expert": ("ExpertNode",), "vocab_parallel": ("EmbeddingNode", "LMHeadNode")}


def relaxed_holders(view: PlanView) -> frozenset[str]:
    """Node types that may hold shards by the relaxations in force."""
    return frozenset(kind for name, kinds in _RELAXED_HOLDERS.items() if name in view.relaxations for kind in kinds)


def unlike_phases(view: PlanView, phases: Iterable[PhaseView]) -> list[PhaseView]:
    """`phases` without those that are copies of an earlier one."""
    seen: set[Hashable] = set()
    unlike: list[PhaseView] = []
    for phase in phases:
        likeness = view.likeness_of(phase)
        if likeness is None or likeness not in seen:
            seen.add(likeness)
            unlike.append(phase)
    return unlike


def compute_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on: those of its shards, or of router and experts of a MoE operator.

    A shared expert does not count. Embedding and LM head also compute on the devices that they list.
    """
    listed = operator.devices if operator.type in ("EmbeddingNode", "LMHeadNode") else ()
    return devices_of(operator.children_of_type(*COMPUTE_TYPES)).union(listed)


def is_on_too_many(view: PlanView, part: NodeView) -> bool:
    """Whether a shard or an expert group illegally names several devices (TP002, EP003)."""
    wide = part.type == "ShardNode" or (part.type == "ExpertNode" and "tp_in_expert" not in view.relaxations)
    return wide and len(part.devices) > 1


def settled_devices(operator: NodeView) -> frozenset[str]:
    """Devices that the operator computes on and that another of its nodes (KV write, collective) names too.

    A shard on a wrong device is one fault; it must not make every neighbour look wrong.
    """
    computing = compute_devices(operator)
    others = [child for child in operator.children if child.is_collective or child.type == "KVCacheUpdateNode"]
    named = devices_of(others)
    return (computing & named) or named or computing


def stage_of(view: PlanView, operator: NodeView) -> StageView | None:
    """The stage that has `operator` in one of its blocks; `None` if none has."""
    stages = view.once(stage_of, lambda: {node.position: stage for stage in view.stages for node in stage.operators})
    return stages.get(operator.position)


class StrangeDevices(Struct, frozen=True):
    """Devices that nodes of a stage name although they are not the stage's, and the rules that report them.

    `absent` are outside the inventory (GP004) or another replica's (DP002), `elsewhere` another stage's of the phase
    (PP006, TP004).
    """

    absent: frozenset[str]
    elsewhere: frozenset[str]

    @property
    def both(self) -> frozenset[str]:
        """Both kinds of devices."""
        return self.absent | self.elsewhere


@once_for_whole
def strange_devices(view: PlanView) -> dict[int, StrangeDevices]:
    """The strange devices of each stage, by node position."""
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
            elif any(home_branch == branch for _, home_branch in homes):
                elsewhere.add(device)
        strange[stage.node.position] = StrangeDevices(frozenset(absent), frozenset(elsewhere))
    return strange


def _branch(phase: PhaseView) -> tuple[int, int]:
    """Positions of the replica and of the phase node."""
    return (-1 if phase.replica is None else phase.replica.position, phase.node.position)


def tiles_layers(stage: StageView) -> bool:
    """Whether the blocks of `stage` hold its layers in order, each once; otherwise PP004 reports where they do not.

    Consecutive blocks with the same layers count as one, since it is open which is wrong.
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
    """`layers` (inclusive) as a range inside the model; empty if they run backwards."""
    bound = MAX_LAYERS if total is None else total
    return range(max(layers[0], 0), min(layers[1] + 1, bound))


def layers_of(view: PlanView, operator: NodeView | None) -> range:
    """Layers that an operator of a layer block stands for; empty if they cannot be read or part a period (PP005)."""
    block = None if operator is None else operator.parent
    if operator is None or block is None or block.type != "LayerBlockNode" or block.layers is None:
        return range(0)
    first, last = block.layers
    if (last - first + 1) % block.period:
        return range(0)
    return clipped((first + operator.offset, last), view.num_layers)[:: block.period]


def ranges_meet(first: range, second: range) -> bool:
    """Whether two rising ranges share a number, by solving their congruences instead of iterating."""
    first = first[bisect_left(first, second.start) :]
    common = gcd(first.step, second.step)
    if not first or (second.start - first.start) % common:
        return False
    modulus = second.step // common
    steps = (second.start - first.start) // common * pow(first.step // common, -1, modulus) % modulus
    return steps < len(first) and first[steps] in second


def is_cache_edge(edge: EdgeView) -> bool:
    """Whether the edge leads from a KVCacheUpdate to an attention operator other than its own."""
    if edge.source is None or edge.target is None or edge.source.parent is edge.target:
        return False
    return edge.source.type == "KVCacheUpdateNode" and edge.target.type == "AttentionNode"


def prefill_feeders(view: PlanView) -> Iterator[tuple[PhaseView, list[PhaseView]]]:
    """Every decode phase with the prefill phases that may send it a KV cache (R14).

    A replica that serves both phases feeds itself; a decode-only replica is fed by every prefill-only one.
    """
    served = view.served.values()
    alone = [phase for phases in served if "decode" not in phases for phase in phases.get("prefill", ())]
    for phases in served:
        for phase in phases.get("decode", ()):
            yield phase, phases.get("prefill", alone)


def label(node: NodeView) -> str:
    """The node's id for a message."""
    return shown(node.id)


def named_engine(view: PlanView) -> Engine | None:
    """The plan's engine (`serving.engine`), if the EN rules know it."""
    name = engine_of(as_str(view.serving.get("engine")))
    return None if name is None else JUDGED[name]
