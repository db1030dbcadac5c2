"""The accelerator that a text names for its servers, read with the catalogue's names."""

from __future__ import annotations

from msgspec import Struct

from ..catalog.hardware import NamedAccelerator, mentions, read_accelerator_name
from ..errors import InputError
from .launch import Launch


class NamedHardware(Struct, frozen=True):
    """The accelerator that a text names; `None` if unknown or one of several. `words` are the names as written."""

    accelerator: str | None
    gpus_per_node: int | None
    words: str


def named_hardware(launch: Launch) -> NamedHardware | None:
    """The accelerator that node selectors, machine types or a job's head name; `None` if nothing names one."""
    written = list(dict.fromkeys(name for command in launch.commands for name in command.process.runs_on))
    if not written:
        return None
    read = [named for name in written if (named := _accelerator(name.partition(": ")[2])) is not None]
    ids = {named.accelerator.id for named in read}
    size = next((named.gpus_per_node for named in read if named.gpus_per_node), None)
    return NamedHardware(ids.pop() if len(ids) == 1 else None, size, ", ".join(written[:4]))


def _accelerator(name: str) -> NamedAccelerator | None:
    """What a name stands for, as a whole or else by the only accelerator that it mentions."""
    try:
        return read_accelerator_name(name)
    except InputError:
        named = [mention for mention in mentions(name) if mention.accelerator is not None]
        if len(named) != 1 or named[0].accelerator is None:
            return None
        return NamedAccelerator(named[0].accelerator, named[0].gpus_per_node)
