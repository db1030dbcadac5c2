"""The operations of a dense FFN operator, or of the shared expert inside a MoE operator."""

from __future__ import annotations

from ...calibration.forms.elementary import Truth
from ...catalog.architecture import FFNSpec
from ..operation import Operation, Owner
from ..operators.elementwise import norm
from ..operators.linear import NO_MATRIX, linear
from ..stage_shape import OperatorSet
from .closing import close_operator, scatter_tokens
from .tensors import weights_by_role
from .writer import ProgramWriter, shape_of


def write_ffn(writer: ProgramWriter, spec: FFNSpec, following: OperatorSet | None) -> None:
    """A dense FFN: norm, gate and up, down, and the collectives that its degrees need."""
    context = writer.context
    vectors = weights_by_role(context.setting, spec.tensors, context.shape.tp_ffn).get(None, NO_MATRIX)
    hidden = shape_of(context.load.sequences, context.load.new_tokens, "hidden", context.hidden)
    work = norm(context.load.tokens, context.hidden, vectors.weight_bytes, context.element_bytes)
    writer.compute(Operation("ffn.norm", "Norm", "ffn", "ffn", hidden, hidden), work)
    write_matrices(writer, spec, "ffn", following)


def write_matrices(
    writer: ProgramWriter, spec: FFNSpec, owner: Owner, following: OperatorSet | None, *, joined: Truth = False
) -> None:
    """The matmuls of a dense FFN or shared expert on normed tokens, and what closes the operator.

    `joined`: a later collective sums its shards as well, so that closing it costs nothing of its own.
    """
    context, shape, load = writer.context, writer.context.shape, writer.context.load
    weights = weights_by_role(context.setting, spec.tensors, shape.tp_ffn)
    # Under attention DP an FFN that runs as TP over several groups sees the tokens of all of them.
    gathers = shape.attention_groups > 1 and shape.ffn_groups == 1 and shape.tp_ffn > 1
    tokens, sequences = load.tokens, load.sequences
    if gathers:
        tokens, sequences = load.all_tokens, load.sequences * load.groups
        writer.transfer(
            Operation(
                f"{owner}.gather", "AllGather", owner, "ffn_all",
                shape_of(load.sequences, load.new_tokens, "hidden", context.hidden),
                shape_of(sequences, load.new_tokens, "hidden", context.hidden),
            ),
            context.links.all_gather(tokens * context.hidden * context.element_bytes, shape.ffn_all_group),
        )  # fmt: skip
    hidden = shape_of(sequences, load.new_tokens, "hidden", context.hidden)
    for role in ("gate_up", "down"):
        part = weights.get(role, NO_MATRIX)
        inner = part.elements / context.hidden
        wide = shape_of(sequences, load.new_tokens, "width", spec.width * (2 if spec.gated else 1) / shape.tp_ffn)
        # Silu and the product with the gate are fused with the up projection; the down projection reads one width.
        work = linear(tokens, part, context.hidden if role == "gate_up" else inner, context.element_bytes)
        source, result = (hidden, wide) if role == "gate_up" else (wide, hidden)
        writer.compute(Operation(f"{owner}.{role}", "Linear", owner, "ffn", source, result, role=role), work)
    if gathers:
        scatter_tokens(writer, owner)
    else:
        close_operator(
            writer, owner, reduces=shape.tp_ffn > 1, following=following, tokens=1.0 * load.tokens, joined=joined
        )
