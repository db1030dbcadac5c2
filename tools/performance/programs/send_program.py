"""The operations that bring the hidden states of a pass from one pipeline stage to the next."""

from __future__ import annotations

from ..collectives import Group
from ..operation import Operation
from .writer import ProgramWriter, shape_of


def write_send(writer: ProgramWriter, slices: int, group: Group, *, between: bool) -> None:
    """A SendRecv of one slice from each device, and the gather of the slices on the other side."""
    context, load = writer.context, writer.context.load
    hidden = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden)
    part = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden / slices)
    writer.transfer(
        Operation("pipeline.send", "SendRecv", "pipeline", "pipeline", hidden, part if slices > 1 else hidden),
        context.links.send(context.token_bytes / slices, between_domains=between),
    )
    if not group.is_trivial:
        received = writer.operations[-1].output_shape
        transfer = (
            context.links.all_gather(context.token_bytes, group)
            if slices > 1
            else context.links.broadcast(context.token_bytes, group)
        )
        writer.transfer(Operation("pipeline.gather", "AllGather", "pipeline", "received", received, hidden), transfer)
