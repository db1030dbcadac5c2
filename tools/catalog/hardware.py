"""The accelerator catalogue by names as people write them.

A bare family name means the first entry that has it among its `names` (A100: 80 GB SXM); "PCIe", "NVL", "SXM" and a
memory size choose another one and must fit. A name that the catalogue lacks is refused with the nearest names, never
replaced by a cousin (L20 is no L40). How names are cut and matched is in `accelerators.py`, a cluster's facts are in
`cluster.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

from ..errors import InputError, UnknownNameError
from ..input.files import shipped
from .accelerators import MAX_NAME_CHARS, Accelerator, AcceleratorNames, machine_key
from .cluster import HardwareFacts, facts_of

_MAX_TEXT = 1_000_000
_MOST_OF_GROUP = 12  # that an error names

_FORMS = ("sxm", "pcie", "nvl")


class NamedAccelerator(Struct, frozen=True):
    """What a name stands for. `gpus_per_node` is set if it names a machine (DGX, NVL72, p5.48xlarge), not a part."""

    accelerator: Accelerator
    gpus_per_node: int | None


class AcceleratorMention(Struct, frozen=True):
    """An accelerator named in running text: its place, its words, and what it stands for or why it is unknown."""

    start: int
    end: int
    words: str
    accelerator: Accelerator | None = None
    gpus_per_node: int | None = None
    error: str | None = None


@cache
def _data() -> dict[str, Any]:
    return shipped(__name__, "accelerators.json")


@cache
def all_accelerators() -> tuple[Accelerator, ...]:
    """Every entry of the catalogue, in its order."""
    return tuple(Accelerator.model_validate(row) for row in _data()["accelerators"])


@cache
def _by_id() -> dict[str, Accelerator]:
    return {accelerator.id: accelerator for accelerator in all_accelerators()}


@cache
def _names() -> AcceleratorNames:
    return AcceleratorNames(all_accelerators(), _data()["known_elsewhere"], system_sizes(), _data()["machines"])


@cache
def _machines() -> Mapping[str, NamedAccelerator]:
    """Machines that clouds rent, by the key of their names."""
    rows: Mapping[str, tuple[str, int]] = _data()["machines"]
    return {machine_key(name): NamedAccelerator(_by_id()[part], count) for name, (part, count) in rows.items()}


def system_sizes() -> Mapping[str, int]:
    """Names of systems sold as whole nodes (DGX), each with the accelerators of its usual node."""
    return _data()["systems"]


def find_accelerator(name: str) -> Accelerator:
    """The accelerator that `name` stands for.

    Raises UnknownNameError: the catalogue has none of this name, memory and form; it carries the nearest known ids;
    InputError: it is no name at all.
    """
    return read_accelerator_name(name).accelerator


def read_accelerator_name(name: str) -> NamedAccelerator:
    """As `find_accelerator`, with the GPUs per node that a system's name implies (DGX, HGX: 8; GB200: 4 per tray)."""
    written = name.strip()
    if not written or len(name) > MAX_NAME_CHARS:
        raise InputError(f"an accelerator name must have 1 to {MAX_NAME_CHARS} characters")
    if written.lower() in _by_id():
        return NamedAccelerator(_by_id()[written.lower()], None)
    machine = _machines().get(machine_key(written))
    if machine is not None:
        return machine
    words = _names().cut(written)
    family = _names().of_family(words.family)
    match = next((part for part in family if _fits(part, words.memory_gb, words.form)), None)
    if match is None:
        nearest = tuple(part.id for part in family or of_group(written)[:_MOST_OF_GROUP]) or _nearest(words.family)
        raise UnknownNameError("accelerator", written, nearest)
    return NamedAccelerator(match, match.typical_node_accelerators if words.is_system else None)


def of_group(name: str) -> tuple[Accelerator, ...]:
    """The entries of a vendor, a brand or an architecture ("Blackwell", "AMD Instinct"); empty for another name."""
    words = set(singular(name).lower().split())
    groups = (f"{part.vendor} {part.architecture} {' '.join(part.brands)}" for part in all_accelerators())
    parts = zip(all_accelerators(), groups, strict=True)
    return tuple(part for part, group in parts if words and words <= set(group.lower().split()))


def variant_taken(words: str, taken: Accelerator) -> str | None:
    """The note that `words` leave the variant open and are read as `taken`; `None` where they mean that one alone."""
    written = words.strip()
    if written.lower() in _by_id() or machine_key(written) in _machines():
        return None
    cut = _names().cut(written)
    name = next((mention.words for mention in mentions(written) if mention.accelerator is not None), written)
    family = _names().of_family(_names().cut(singular(name)).family)
    form = _form(taken) if cut.is_system else cut.form
    others = [part.id for part in family if part.id != taken.id and _fits(part, cut.memory_gb, form)]
    if taken not in family or not others:
        return None
    alternatives = " or ".join(filter(None, (", ".join(others[:-1]), others[-1])))
    return f"“{written}” leaves the variant open: the usual one, not {alternatives}"


def _fits(accelerator: Accelerator, memory_gb: str | None, form: str | None) -> bool:
    """Whether the qualifiers of a name fit an entry; the memory may be the marketing or the reported figure."""
    if form is not None and _form(accelerator) not in (form, None):
        return False
    if memory_gb is None:
        return True
    figures = [accelerator.memory_gb_marketing, accelerator.memory_gib_reported, accelerator.memory_bytes()[0] / 1e9]
    # A B200 is sold as 180 and as 192 GB; reported sizes are read with the same slack.
    return any(figure is not None and abs(figure - int(memory_gb)) <= 1.0 for figure in figures)


def _form(accelerator: Accelerator) -> str | None:
    if accelerator.id.endswith("-nvl"):
        return "nvl"
    words = f"{accelerator.id} {accelerator.form_factor or ''}".lower()
    return next((form for form in _FORMS if form in words), None)


def _nearest(key: str) -> tuple[str, ...]:
    keys = {re.sub(r"[^a-z0-9]", "", i): i for i in _by_id()}
    keys |= _names().families
    matches = dict.fromkeys(keys[match] for match in get_close_matches(key[:60], list(keys), n=6, cutoff=0.5))
    return tuple(matches)[:3]


def mentions(text: str) -> tuple[AcceleratorMention, ...]:
    """Accelerators named in running text (English or Chinese), left to right; unknown ones have an `error`.

    Counts around a name ("8xH100", "16 张 H100", "A100-80G*4") are left to the reader of the text. Raises InputError:
    the text has more than a million characters.
    """
    if len(text) > _MAX_TEXT:
        raise InputError(f"a text of more than {_MAX_TEXT} characters is not searched for accelerator names")
    return tuple(_mention(text, *match.span()) for match in _names().mention.finditer(text))


def _mention(text: str, start: int, end: int) -> AcceleratorMention:
    words = text[start:end]
    named, error = _outcome(words)
    if named is None:
        return AcceleratorMention(start, end, words, error=error)
    return AcceleratorMention(start, end, words, named.accelerator, named.gpus_per_node)


@lru_cache(maxsize=1024)
def _outcome(words: str) -> tuple[NamedAccelerator | None, str | None]:
    """What the words stand for, or why they are unknown."""
    try:
        return read_accelerator_name(singular(words)), None
    except InputError as error:
        return None, str(error)


def singular(words: str) -> str:
    """An accelerator's name without a plural "s"; an "s" that is part of the name ("L40S") stays."""
    if words[-1:].lower() != "s" or _names().of_family(_names().cut(words).family):
        return words
    return words[:-1]


def hardware_facts(
    accelerator: str | Accelerator,
    nodes: int,
    gpus_per_node: int,
    intra_node_bw_gb_s: float | None = None,
    inter_node_bw_gb_s: float | None = None,
) -> HardwareFacts:
    """The facts of a cluster; stated bandwidths (10^9 bytes/s per accelerator, one way) win over the catalogue's.

    Raises UnknownNameError: no such accelerator; MissingFieldError: the accelerator states no memory; InputError: there
    are no nodes or no accelerators in them.
    """
    entry = find_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
    return facts_of(entry, nodes, gpus_per_node, intra_node_bw_gb_s, inter_node_bw_gb_s)
