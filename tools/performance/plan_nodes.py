"""Finds the plan's node for an operation: the shard, router, expert or collective that it unrolls.

A layout that was made without a graph has none: every answer is `None`.
"""

from __future__ import annotations

from ..plan.view import NodeView, PhaseView, PlanView, StageView
from .operation import Operation

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
        """The id of the node that `operation` on `devices` unrolls; `where` is replica, phase, stage and layer."""
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
    """The child of `operator` that the operation stands for, else the operator itself."""
    wanted = _COLLECTIVE_NODES.get(operation.op)
    if wanted is not None:
        role = operation.name.rpartition(".")[2]
        found = operator.children_of_type(wanted)
        return next((node for node in found if node.role == role), found[0] if found else operator)
    if operation.op == "KVCacheUpdate":
        return next(iter(operator.children_of_type("KVCacheUpdateNode")), operator)
    kinds = {"Expert": "ExpertNode", "Routing": "RouterNode"}
    kind = "RouterNode" if operation.role == "router" else kinds.get(operation.op, "ShardNode")
    for node in operator.children_of_type(kind):
        if len(devices) == 1 and devices[0] in node.devices:
            return node
    return operator
