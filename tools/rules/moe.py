"""What the rules on experts read alike: a MoE operator with its parts, and what the model has at its layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..catalog.architecture import LayerSpec
from ..plan.view import NodeView, PlanView, StageView
from .reading import covered_layers


@dataclass(frozen=True, slots=True, eq=False)
class MoEOperator:
    """One MoE operator. `specs` are the kinds of layer that it stands for; empty where the model is not known."""

    node: NodeView
    stage: StageView
    routers: tuple[NodeView, ...]
    experts: tuple[NodeView, ...]
    dispatches: tuple[NodeView, ...]
    combines: tuple[NodeView, ...]
    shared: tuple[NodeView, ...]
    specs: frozenset[LayerSpec]

    @property
    def num_experts(self) -> int | None:
        """Routed experts of the model at these layers, where that is one number."""
        counts = {spec.moe.experts for spec in self.specs if spec.moe is not None}
        return counts.pop() if len(counts) == 1 else None

    @property
    def devices(self) -> frozenset[str]:
        """Devices of the expert groups."""
        return frozenset(device for expert in self.experts for device in expert.devices)


def layer_kinds(view: PlanView, block: NodeView, offset: int) -> frozenset[LayerSpec]:
    """The kinds of layer that an operator at `offset` of the block's period stands for."""
    if view.architecture is None:
        return frozenset()
    layers = covered_layers(block, offset, view.architecture.num_layers)
    return frozenset(view.architecture.layers[layer] for layer in layers)


def moe_operators(view: PlanView) -> Iterator[MoEOperator]:
    """Every MoENode of every stage."""
    for stage in view.stages:
        for block in stage.blocks:
            for node in block.children_of_type("MoENode"):
                exchanges = node.children_of_type("AllToAllNode")
                yield MoEOperator(
                    node=node,
                    stage=stage,
                    routers=tuple(node.children_of_type("RouterNode")),
                    experts=tuple(node.children_of_type("ExpertNode")),
                    dispatches=tuple(child for child in exchanges if child.role == "dispatch"),
                    combines=tuple(child for child in exchanges if child.role == "combine"),
                    shared=tuple(node.children_of_type("FFNNode")),
                    specs=layer_kinds(view, block, node.offset),
                )
