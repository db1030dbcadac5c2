"""What one pass runs on a stage, for the execution DAG: operations in stream order, their devices and plan nodes.

Plan nodes are `None` in a layout that was made without a graph.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..plan.blocks import fold_sequence
from ..plan.layout import PhaseLayout, StageLayout
from ..plan.view import NodeView, PhaseView, PlanView, StageView
from .operation import PER_DEVICE, Operation, TokenLoad, Where
from .overlap import Turns
from .overlap_halves import HalvedLayer, split_load
from .programs.writer import shape_of
from .stage_shape import GROUPS, union_devices
from .timing import StageTimer


def instance_groups(phase: PhaseLayout, index: int, where: Where, *, folded: bool) -> list[tuple[str, ...]]:
    """The devices of each instance in stage `index`; `folded`: of all instances together."""
    stage = phase.stages[index]
    following = phase.stages[index + 1] if index + 1 < len(phase.stages) else None
    if where in PER_DEVICE:
        devices = _devices_of(stage, where)
        return [devices] if folded else [(device,) for device in devices]
    groups = _collective_groups(phase, stage, following, where)
    if folded and len(groups) > 1:
        return [tuple(dict.fromkeys(device for group in groups for device in group))]
    return groups


def _devices_of(stage: StageLayout, where: Where) -> tuple[str, ...]:
    return {
        "attention": stage.attention_devices,
        "ffn": stage.ffn_devices,
        "stage": stage.devices,
        "embedding": stage.embedding_devices,
        "head": stage.head_devices,
    }[where]


def _collective_groups(
    phase: PhaseLayout, stage: StageLayout, following: StageLayout | None, where: Where
) -> list[tuple[str, ...]]:
    """The device groups that a collective runs on."""
    if where in ("pipeline", "received") and following is not None:
        if where == "pipeline":
            return [(*stage.devices, *following.devices)]
        return GROUPS["tokens"](phase, following)
    if "+" in where:
        operators, _, other = where.partition("+")
        sets = {"attention": stage.attention_devices, "ffn": stage.ffn_devices, "stage": stage.devices}
        return [union_devices(sets[operators], sets[other], stage) or sets[operators]]
    return GROUPS[where](phase, stage)


# The operations that cut a batch in two halves and join them again.
SPLIT, MERGE = "overlap.split", "overlap.merge"


class Site(Struct, frozen=True):
    """Operations that are written together: those of a layer (folded: of `repeat` layers), or one run of a half of it.

    `half` is set under two-batch overlap, where `on_links` says on which of a device's two streams they run.
    """

    layer: int | None
    name: str
    operations: tuple[Operation, ...]
    repeat: int | None = None
    half: int | None = None
    on_links: bool = False


def stage_sites(
    timer: StageTimer, load: TokenLoad, following: StageTimer | None, *, with_head: bool, folded: bool
) -> Iterator[Site]:
    """The sites of one pass of `load`. Overlapping layers are not folded: halves of one reach into the next."""
    if timer.stage.embedding_devices:
        yield Site(None, "embedding", timer.embedding(load).operations)
    halved = timer.halved_layers(load)
    if halved is not None:
        yield from _halved_sites(timer, load, halved)
    else:
        yield from _layer_sites(timer, load, folded=folded)
    if timer.stage.head_devices and with_head:
        yield Site(None, "head", timer.head(load).operations)
    if following is not None:
        yield Site(None, "send", timer.send(load, following).operations)


def _layer_sites(timer: StageTimer, load: TokenLoad, *, folded: bool) -> Iterator[Site]:
    keys = tuple((id(spec), following_set) for spec, following_set in timer.layer_sequence)
    blocks = fold_sequence(keys) if folded else ()
    spans = [(b.first + k, (b.last - b.first + 1) // b.period) for b in blocks for k in range(b.period)]
    for place, repeat in spans or [(place, 1) for place in range(len(keys))]:
        spec, following_set = timer.layer_sequence[place]
        layer = timer.stage.layers[0] + place
        operations = timer.layer(spec, following_set, load).operations
        yield Site(layer, f"l{layer}", operations, repeat if folded else None)


def _halved_sites(timer: StageTimer, load: TokenLoad, halved: tuple[HalvedLayer, ...]) -> Iterator[Site]:
    """The split of the batch, the runs of both halves in turn, and the merge."""
    halves = split_load(load)
    assert halves is not None
    hidden = timer.setting.architecture.hidden_size
    whole = shape_of(load.sequences, load.new_tokens, "hidden", hidden)
    for half, part in enumerate(halves):
        shape = shape_of(part.sequences, part.new_tokens, "hidden", hidden)
        cut = Operation(SPLIT, "Split", "stage", "stage", whole, shape)
        yield Site(None, f"half{half}", (cut,), half=half)
    layers = [halved[number] for number in timer.kind_sequence]
    turns = Turns()
    for place, layer in enumerate(layers):
        for half, items in turns.enter(place, layer):
            yield from _runs(timer, layers, half, items)
    for half, items in turns.close():
        yield from _runs(timer, layers, half, items)
    yield Site(None, "merge", (Operation(MERGE, "Aggregate", "stage", timer.ends_on, whole, whole),))


def _runs(timer: StageTimer, layers: list[HalvedLayer], half: int, items: list[tuple[int, int]]) -> Iterator[Site]:
    for place, number in items:
        run = layers[place].halves[half].runs[number]
        layer = timer.stage.layers[0] + place
        yield Site(layer, f"l{layer}.half{half}", run.operations, half=half, on_links=run.on_links)


_COLLECTIVE_NODES = {
    "AllReduce": "AllReduceNode",
    "AllGather": "AllGatherNode",
    "ReduceScatter": "ReduceScatterNode",
    "AllToAll": "AllToAllNode",
}


class PlanNodes:
    """Looks up plan nodes by replica, phase, stage, layer and operation."""

    def __init__(self, view: PlanView | None) -> None:
        self._phases: dict[tuple[int, str], PhaseView] = {}
        self._operators: dict[tuple[int, str, int, int | None, str], NodeView | None] = {}
        names: dict[str, int] = {}
        for phase in view.phases if view is not None else ():
            if phase.replica is not None and phase.phase is not None:
                index = names.setdefault(phase.replica.id, len(names))
                self._phases.setdefault((index, phase.phase), phase)

    def find(
        self, where: tuple[int, str, int, int | None], operation: Operation, devices: tuple[str, ...]
    ) -> str | None:
        """The id of the plan node that `operation` on `devices` unrolls; `where`: replica, phase, stage, layer."""
        key = (*where, operation.owner)
        if key not in self._operators:
            self._operators[key] = self._operator(where, operation.owner)
        operator = self._operators[key]
        if operator is None:
            return None
        return _part(operator, operation, devices).id

    def _operator(self, where: tuple[int, str, int, int | None], owner: str) -> NodeView | None:
        replica, phase_name, index, layer = where
        phase = self._phases.get((replica, phase_name))
        if phase is None or index >= len(phase.stages):
            return None
        stage = phase.stages[index]
        if owner in ("pipeline", "stage"):
            return stage.node
        if owner in ("embedding", "head"):
            nodes = stage.node.children_of_type("EmbeddingNode" if owner == "embedding" else "LMHeadNode")
            return nodes[0] if nodes else None
        return None if layer is None else _layer_operator(stage, layer, owner)


def _layer_operator(stage: StageView, layer: int, owner: str) -> NodeView | None:
    wanted = {"attention": "AttentionNode", "ffn": "FFNNode"}.get(owner, "MoENode")
    for block in stage.blocks:
        layers = block.layers
        if layers is None or not layers[0] <= layer <= layers[1]:
            continue
        offset = (layer - layers[0]) % block.period
        for operator in block.children_of_type(wanted):
            if operator.offset == offset:
                if owner == "shared":
                    return next(iter(operator.children_of_type("FFNNode")), operator)
                return operator
    return None


def _part(operator: NodeView, operation: Operation, devices: tuple[str, ...]) -> NodeView:
    """The child of `operator` that `operation` unrolls, else the operator itself."""
    wanted = _COLLECTIVE_NODES.get(operation.op)
    if wanted is not None:
        role = operation.name.rpartition(".")[2]
        collectives = operator.children_of_type(wanted)
        return next((node for node in collectives if node.role == role), collectives[0] if collectives else operator)
    if operation.op == "KVCacheUpdate":
        return next(iter(operator.children_of_type("KVCacheUpdateNode")), operator)
    kinds = {"Expert": "ExpertNode", "Routing": "RouterNode"}
    kind = "RouterNode" if operation.role == "router" else kinds.get(operation.op, "ShardNode")
    for node in operator.children_of_type(kind):
        if len(devices) == 1 and devices[0] in node.devices:
            return node
    return operator
