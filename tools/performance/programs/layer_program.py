"""A layer: where its operators run, and the operations of those behind its attention."""

from __future__ import annotations

from ...catalog.architecture import LayerSpec
from ..stage_shape import OperatorSet
from .ffn_program import write_ffn
from .moe_program import MoEProgram
from .writer import ProgramWriter


def first_operator(spec: LayerSpec) -> OperatorSet:
    """Where the first operator of a layer runs."""
    if spec.attention is not None:
        return "attention"
    return "ffn" if spec.ffn is not None else "stage"


def last_operator(spec: LayerSpec) -> OperatorSet:
    """Where the last operator of a layer runs."""
    return "stage" if spec.moe is not None else "ffn" if spec.ffn is not None else "attention"


def after_attention(spec: LayerSpec, following: OperatorSet | None) -> OperatorSet | None:
    """Where the operator that follows a layer's attention runs; `following` is where that of the next layer does."""
    return "ffn" if spec.ffn is not None else "stage" if spec.moe is not None else following


def write_behind_attention(writer: ProgramWriter, spec: LayerSpec, following: OperatorSet | None) -> None:
    """The operations of one layer but for those of its attention."""
    if spec.ffn is not None:
        write_ffn(writer, spec.ffn, following)
    if spec.moe is not None:
        MoEProgram(writer, spec.moe).write()
