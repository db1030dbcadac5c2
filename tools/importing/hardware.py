"""The accelerator that a text names for its servers, by the catalogue's own reader of names."""

from __future__ import annotations

from msgspec import Struct

from ..catalog.hardware import NamedAccelerator, mentions, read_accelerator_name
from ..errors import InputError
from .launch import Launch


class NamedHardware(Struct, frozen=True):
    """What names in a text stand for, `None` where they stand for nothing or for several; `words` are the names."""

    accelerator: str | None
    gpus_per_node: int | None
    words: str


def named_hardware(launch: Launch) -> NamedHardware | None:
    """The accelerator that selectors of nodes, types of machines or a job's head name; `None` where none does."""
    written = list(dict.fromkeys(name for one in launch.commands for name in one.process.runs_on))
    if not written:
        return None
    read = [named for name in written if (named := _accelerator(name.partition(": ")[2])) is not None]
    ids = {named.accelerator.id for named in read}
    size = next((named.gpus_per_node for named in read if named.gpus_per_node), None)
    return NamedHardware(ids.pop() if len(ids) == 1 else None, size, ", ".join(written[:4]))


def _accelerator(name: str) -> NamedAccelerator | None:
    """What a name stands for, as a whole or, where that is none, by the one that it has in it."""
    try:
        return read_accelerator_name(name)
    except InputError:
        found = [one for one in mentions(name) if one.accelerator is not None]
        if len(found) != 1 or found[0].accelerator is None:
            return None
        return NamedAccelerator(found[0].accelerator, found[0].gpus_per_node)
