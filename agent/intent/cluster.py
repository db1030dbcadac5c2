"""A cluster as flags and programs write it: `NODESxGPUS:ACCELERATOR`, or in words ("8xH100")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from ...tools.errors import InputError

_CLUSTER = re.compile(r"\s*([0-9]{1,6})\s*[xX×*]\s*([0-9]{1,6})\s*:\s*(\S.{0,199})")
_FORMS = "NODESxGPUS:ACCELERATOR (2x8:h100-sxm), words (8xH100, 2 nodes of 8 H100) or an accelerator (h100-sxm)"
# "h100.yaml" is no word about an accelerator.
_FILE = re.compile(r"\.[A-Za-z]")
_FIELDS = frozenset({"accelerator", "nodes", "gpus_per_node", "gpus"})


class Cluster(Struct, frozen=True):
    """`NODESxGPUS:ACCELERATOR` as read; `accelerator` is a catalogue id, `assumed` why its variant was taken."""

    nodes: int
    gpus_per_node: int
    accelerator: str
    assumed: Mapping[str, str] = field(default_factory=dict[str, str])


def read_cluster(text: str) -> Cluster:
    """`text` with its accelerator found in the catalogue.

    Raises:
        InputError: it has another form, or names an accelerator that the catalogue does not have.
    """
    match = _CLUSTER.fullmatch(text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        raise InputError(f"{text[:300]!r} is not NODESxGPUS:ACCELERATOR, as in 2x8:h100-sxm")
    try:
        fields = named_accelerator(match[3].strip())
    except InputError as error:
        raise InputError(f"{error} (`shardwright hardware` lists them)") from None
    return Cluster(int(match[1]), int(match[2]), **fields)


def named_accelerator(name: str) -> dict[str, Any]:
    """The fields of `Said` that an accelerator's name states.

    Raises:
        InputError: the catalogue has none of this name.
    """
    from ...tools.catalog.hardware import find_accelerator, variant_taken

    accelerator = find_accelerator(name)
    variant = variant_taken(name, accelerator)
    return {"accelerator": accelerator.id, "assumed": {} if variant is None else {"accelerator": variant}}


def said_hardware(text: str) -> dict[str, Any]:
    """The fields of `Said` that the text states: a cluster, words that say nothing else, or an accelerator's name.

    Raises:
        InputError: it is none of them, or names an accelerator that the catalogue does not have.
    """
    if ":" in text:
        cluster = read_cluster(text)
        return {name: getattr(cluster, name) for name in ("nodes", "gpus_per_node", "accelerator", "assumed")}
    from ...tools.catalog.hardware import find_accelerator, variant_taken
    from ...tools.language.merge import stated_fields
    from ...tools.language.request import read_words

    said = read_words(text)
    fields = stated_fields(said)
    if not (_FILE.search(text) or said.unread or said.constraints) and "accelerator" in fields.keys() <= _FIELDS:
        variant = variant_taken(said.words.get("accelerator", ""), find_accelerator(fields["accelerator"]))
        return {**fields, "assumed": {} if variant is None else {"accelerator": variant}}
    try:
        return named_accelerator(text)
    except InputError:
        raise InputError(f"{text[:300]!r} is no hardware; write {_FORMS}") from None
