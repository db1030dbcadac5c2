"""A cluster in one word, as flags and programs write it: `NODESxGPUS:ACCELERATOR`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...tools.errors import InputError

_CLUSTER = re.compile(r"\s*([0-9]{1,6})\s*[xX×*]\s*([0-9]{1,6})\s*:\s*(\S.{0,199})")


@dataclass(frozen=True, slots=True)
class Cluster:
    """`NODESxGPUS:ACCELERATOR` as read; `accelerator` is a catalogue id."""

    nodes: int
    gpus_per_node: int
    accelerator: str


def read_cluster(text: str) -> Cluster:
    """`text` with its accelerator found in the catalogue.

    Raises:
        InputError: it has another form, or names an accelerator that the catalogue does not have.
    """
    match = _CLUSTER.fullmatch(text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        raise InputError(f"{text[:300]!r} is not NODESxGPUS:ACCELERATOR, as in 2x8:h100-sxm")
    from ...tools.catalog.hardware import find_accelerator

    try:
        accelerator = find_accelerator(match[3].strip()).id
    except InputError as error:
        raise InputError(f"{error} (`shardwright hardware` lists them)") from None
    return Cluster(int(match[1]), int(match[2]), accelerator)
