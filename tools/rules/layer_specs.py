"""The layers of the model that each operator of a phase stands for.

Each layer is read once: PP004 reports blocks over layers that another block holds already, and PP005 blocks that are no
whole number of their periods.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.architecture import LayerSpec
from ..plan.branches import once_per_phase
from ..plan.view import OPERATOR_TYPES, NodeView, PhaseView, PlanView
from .reading import clipped


@once_per_phase
def placed_blocks(view: PlanView, phase: PhaseView) -> tuple[tuple[NodeView, range], ...]:
    """The blocks of `phase` with their layers of the model; empty if the model cannot be read."""
    return tuple(_placed_blocks(view, phase))


def _placed_blocks(view: PlanView, phase: PhaseView) -> Iterator[tuple[NodeView, range]]:
    if view.structure is None:
        return
    seen = bytearray(view.structure.num_layers)
    for stage in phase.stages:
        for block in stage.distinct_blocks:
            if block.layers is None or (block.layers[1] - block.layers[0] + 1) % block.period:
                continue
            layers = clipped(block.layers, len(seen))
            if not layers or seen[layers[0]] or seen[layers[-1]]:
                continue
            seen[layers.start : layers.stop] = b"\x01" * len(layers)
            yield block, layers


def specs_by_offset(view: PlanView, block: NodeView, layers: range) -> dict[int, list[tuple[int, LayerSpec]]]:
    """The layers and specs that each offset in the block's period stands for, one of each kind."""
    start = block.layers[0] if block.layers is not None else 0
    period = block.period
    kinds_by_offset: dict[int, dict[int, tuple[int, LayerSpec]]] = {}
    for layer in layers:
        spec = view.layer_spec(layer)
        if spec is not None:
            kinds_by_offset.setdefault((layer - start) % period, {}).setdefault(id(spec), (layer, spec))
    return {offset: list(kinds.values()) for offset, kinds in kinds_by_offset.items()}


def has_all_operators(view: PlanView, block: NodeView, layers: range) -> bool:
    """Whether `block` has every operator that the model has in its period, and none beyond the period."""
    operators = block.children_of_type(*OPERATOR_TYPES)
    written = {(node.offset, node.type == "AttentionNode") for node in operators}
    wanted: set[tuple[int, bool]] = set()
    for offset, covered in specs_by_offset(view, block, layers).items():
        _, spec = covered[0]
        if spec.attention is not None:
            wanted.add((offset, True))
        if spec.ffn is not None or spec.moe is not None:
            wanted.add((offset, False))
    return written >= wanted and all(offset < block.period for offset, _ in written)


def specs_of(view: PlanView, operator: NodeView) -> list[tuple[int, LayerSpec]]:
    """The layers that `operator` stands for, one of each kind; empty if unknown."""
    known = view.once(
        specs_of,
        lambda: {node.position: specs for phase in view.phases for node, specs in operator_specs(view, phase)},
    )
    return known.get(operator.position, [])


@once_per_phase
def operator_specs(view: PlanView, phase: PhaseView) -> tuple[tuple[NodeView, list[tuple[int, LayerSpec]]], ...]:
    """Every operator of the blocks of `phase` with the layers that it stands for, one of each kind."""
    return tuple(_operator_specs(view, phase))


def _operator_specs(view: PlanView, phase: PhaseView) -> Iterator[tuple[NodeView, list[tuple[int, LayerSpec]]]]:
    for block, layers in placed_blocks(view, phase):
        specs = specs_by_offset(view, block, layers)
        for operator in block.children_of_type(*OPERATOR_TYPES):
            if operator.offset in specs:
                yield operator, specs[operator.offset]
