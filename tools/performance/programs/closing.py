"""How an operator hands its result on: the collective that sums its shards, or brings the result to more devices."""

from __future__ import annotations

from ...calibration.forms.elementary import Number, Truth
from ..collectives import NO_TRANSFER, pick_transfer
from ..operation import Operation, Owner, Where
from ..stage_shape import OperatorSet
from .writer import ProgramWriter, shape_of


def close_operator(
    writer: ProgramWriter, owner: Owner, *, reduces: bool, following: OperatorSet | None, tokens: Number,
    joined: Truth = False,
) -> None:  # fmt: skip
    """Write the collective that closes `owner`, if it needs one.

    `reduces`: its shards hold partial sums. Where the next operator uses devices that this one does not (DE004), the
    same collective spans both; without partial sums a gather brings the result there. `tokens` are those of a device.
    `joined`: the sum is part of a later collective (of arrays of loads: of which loads).
    """
    context, shape = writer.context, writer.context.shape
    own: OperatorSet = "attention" if owner == "attention" else "ffn"
    wider = shape.wider(own, following)
    size = tokens * context.hidden * context.element_bytes
    here = writer.operations[-1].output_shape
    name = f"{owner}.close"
    if reduces:
        group = wider or (shape.tp_group if own == "attention" else shape.ffn_tp_group)
        where: Where = union_where(own, following) if wider else "tp" if own == "attention" else "ffn_tp"
        transfer = pick_transfer(joined, NO_TRANSFER, context.links.all_reduce(size, group))
        writer.transfer(Operation(name, "AllReduce", owner, where, here, here), transfer)
    elif wider is not None:
        writer.transfer(
            Operation(name, "AllGather", owner, union_where(own, following), here, here),
            context.links.broadcast(size, wider),
        )


def union_where(own: OperatorSet, following: OperatorSet | None) -> Where:
    """The devices of both operators."""
    if own == "attention":
        return "attention+ffn" if following == "ffn" else "attention+stage"
    return "ffn+attention" if following == "attention" else "ffn+stage"


def scatter_tokens(writer: ProgramWriter, owner: Owner) -> None:
    """A ReduceScatter that sums the shards of a TP FFN over attention groups and gives each group its tokens back."""
    context, load = writer.context, writer.context.load
    before = writer.operations[-1].output_shape
    after = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden)
    size = load.all_tokens * context.hidden * context.element_bytes
    writer.transfer(
        Operation(f"{owner}.close", "ReduceScatter", owner, "ffn_all", before, after),
        context.links.all_gather(size, context.shape.ffn_all_group),
    )
