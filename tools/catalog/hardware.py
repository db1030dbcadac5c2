"""The accelerator catalogue by names as people write them.

A name's rule: a bare family name means its usual data-centre variant (A100: 80 GB SXM; H100, H200, B200: SXM);
"PCIe", "NVL", "SXM" and a memory size choose another one and must fit. What the catalogue does not have is refused with
the nearest names, never replaced by a cousin (L40 is no L40S, A800 no A100). A cluster's facts are in `cluster.py`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files

from ..errors import InputError, UnknownNameError
from .accelerators import MAX_NAME_CHARS, Accelerator
from .cluster import HardwareFacts, facts_of

__all__ = [
    "AcceleratorMention",
    "HardwareFacts",
    "NamedAccelerator",
    "all_accelerators",
    "find_accelerator",
    "hardware_facts",
    "mentions",
    "read_accelerator_name",
]

_DATA_PACKAGE = __name__.rpartition(".")[0]
_MAX_TEXT = 1_000_000

# The family of each entry and its place in the order of preference: the first that fits the qualifiers is meant.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "a100": ("a100-80gb-sxm", "a100-40gb-sxm", "a100-80gb-pcie", "a100-40gb-pcie"),
    "h100": ("h100-sxm", "h100-pcie", "h100-nvl"),
    "h200": ("h200-sxm",),
    "b200": ("b200-sxm",),
    "b300": ("b300-sxm",),
    "v100": ("v100-32gb-sxm",),
    "4090": ("rtx-4090",),
    "5090": ("rtx-5090",),
    "6000ada": ("rtx-6000-ada",),
    "pro6000": ("rtx-pro-6000-blackwell-server",),
    "v5e": ("tpu-v5e",),
    "v5p": ("tpu-v5p",),
    "v6e": ("tpu-v6e",),
    "v7x": ("tpu-v7x",),
}
_SPELLINGS: dict[str, str] = {
    "pro6000blackwell": "pro6000", "v5litepod": "v5e", "trillium": "v6e", "ironwood": "v7x", "v7": "v7x",
    "mi300": "mi300x", "mi325": "mi325x", "mi355": "mi355x",
}  # fmt: skip
_FORMS = ("sxm", "pcie", "nvl")
# Words that may stand around a name and say nothing of the variant.
_NOISE = re.compile(
    r"\b(?:nvidia|tesla|geforce|rtx|quadro|amd|instinct|radeon|intel|habana|google|tpu|tensor core|gpus?|cards?|"
    r"accelerators?|hbm[23]e?|oam|server edition|server|workstation edition|superchip)\b"
)
_GLUED = re.compile(r"^(?:nvidia|geforce|rtx|tesla|instinct|tpu)+(?=.*\d)")
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d{1,4})\s?(?:gib|gb|g)(?![a-z0-9])")
_SYSTEM = re.compile(r"\b(?:dgx|hgx)\b")
_RACK = re.compile(r"\bnvl\s?\d{2,3}\b")
_FORM = re.compile(r"(sxm|pcie|pci-e|nvl)\d?(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class NamedAccelerator:
    """What a name stands for. `gpus_per_node` is set where it names a system (DGX, HGX, NVL72), not only a part."""

    accelerator: Accelerator
    gpus_per_node: int | None


@dataclass(frozen=True, slots=True)
class AcceleratorMention:
    """An accelerator named in running text: its place, its words, and what it stands for or why for nothing."""

    start: int
    end: int
    words: str
    accelerator: Accelerator | None = None
    gpus_per_node: int | None = None
    error: str | None = None


@cache
def all_accelerators() -> tuple[Accelerator, ...]:
    """Every entry of the catalogue, in its order."""
    text = files(_DATA_PACKAGE).joinpath("data/accelerators.json").read_text(encoding="utf-8")
    return tuple(Accelerator.model_validate(row) for row in json.loads(text)["accelerators"])


@cache
def _by_id() -> dict[str, Accelerator]:
    return {accelerator.id: accelerator for accelerator in all_accelerators()}


def find_accelerator(name: str) -> Accelerator:
    """The accelerator that `name` stands for.

    Raises:
        UnknownNameError: the catalogue has none of this name, memory and form; it carries the nearest known ids.
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
    words = _NOISE.sub(" ", re.sub(r"[_()\-,]", " ", written.lower().replace("pci-e", "pcie")))
    is_system = _SYSTEM.search(words) is not None or _RACK.search(words) is not None
    words = _RACK.sub(" ", _SYSTEM.sub(" ", words))
    memory, form = _MEMORY.search(words), _FORM.search(words)
    key = re.sub(r"[^a-z0-9]", "", _FORM.sub(" ", _MEMORY.sub(" ", words)))
    key = _GLUED.sub("", key)
    key = _SPELLINGS.get(key, key)
    ids = _FAMILIES.get(key, (key,))
    if ids[0] not in _by_id():
        raise UnknownNameError("accelerator", written, _nearest(key))
    fitting = [_by_id()[i] for i in ids if _fits(_by_id()[i], memory[1] if memory else None, form[1] if form else None)]
    if not fitting:
        raise UnknownNameError("accelerator", written, ids)
    return NamedAccelerator(fitting[0], fitting[0].typical_node_accelerators if is_system else None)


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
    keys |= {family: ids[0] for family, ids in _FAMILIES.items()}
    found = dict.fromkeys(keys[match] for match in get_close_matches(key[:60], list(keys), n=6, cutoff=0.5))
    return tuple(found)[:3]


# In running text: known names and kinds of names in any case; unknown ones of a form that only accelerators have.
_QUALIFIER = (
    r"(?:[ \t-]?(?:sxm\d?|pci-?e|nvl(?:[ \t]?\d{2,3})?)(?![A-Za-z0-9])|[ \t-]?\d{2,3}[ \t]?g(?:i?b)?(?![A-Za-z0-9]))"
)
_MENTION = re.compile(
    r"(?:(?<![A-Za-z0-9.])|(?<=\d[x×*]))"
    r"(?:(?:nvidia|amd|intel|google|dgx|hgx|geforce|tesla|instinct)[ \t-]{1,2}){0,3}"
    r"(?:"
    r"(?:rtx[ \t-]?)(?:pro[ \t-]?)?a?\d{4}(?:[ \t-]?ti)?(?:[ \t]?ada)?(?:[ \t]blackwell)?(?:[ \t]server)?"
    r"|(?:30|40|50)[789]0(?:[ \t]?ti)?"
    r"|mi\d{3}[a-z]?|gaudi[ \t-]?\d|tpu[ \t-]?v\d[a-z]{0,2}|trillium|ironwood"
    r"|gb[23]00|gh200|a100|a800|h100|h200|h20|h800|b100|b200|b300|v100|p100|p40|l40s?|l20|l4|a10g?|a16|a30|a40|t4"
    r"|(?:ascend|昇腾)[ \t-]?\d{3}[a-d]?\d?|910[a-d]\d?"
    r")"
    rf"{_QUALIFIER}{{0,3}}(?:s\b)?(?![A-Za-z0-9]|\.\d)(?![ \t]*(?:tokens?|个?词))",
    re.IGNORECASE | re.ASCII,
)
_UNKNOWN = re.compile(r"(?:(?<![A-Za-z0-9.-])|(?<=\d[x×*]))[ABHV][1-9]\d{2}[A-Z]?(?![A-Za-z0-9]|\.\d)", re.ASCII)


def mentions(text: str) -> tuple[AcceleratorMention, ...]:
    """Accelerators named in running text (English or Chinese), left to right; unknown ones have an `error`.

    Counts around a name ("8xH100", "16 张 H100", "A100-80G*4") are left to the reader of the text.

    Raises:
        InputError: the text has more than a million characters.
    """
    if len(text) > _MAX_TEXT:
        raise InputError(f"a text of more than {_MAX_TEXT} characters is not searched for accelerator names")
    known = [match.span() for match in _MENTION.finditer(text)]
    rest = _MENTION.sub(lambda match: " " * len(match[0]), text)
    unknown = [match.span() for match in _UNKNOWN.finditer(rest)]
    return tuple(_mention(text, start, end) for start, end in sorted(known + unknown))


def _mention(text: str, start: int, end: int) -> AcceleratorMention:
    words = text[start:end]
    named, error = _outcome(words)
    if named is None:
        return AcceleratorMention(start, end, words, error=error)
    return AcceleratorMention(start, end, words, named.accelerator, named.gpus_per_node)


@lru_cache(maxsize=1024)
def _outcome(words: str) -> tuple[NamedAccelerator | None, str | None]:
    """What the words stand for, or why for nothing. A plural "s" is no part of a name; the S of L40S is."""
    is_plural = words.endswith("s") and words.lower() != "l40s"
    try:
        return read_accelerator_name(words.removesuffix("s") if is_plural else words), None
    except InputError as error:
        return None, str(error)


def hardware_facts(
    accelerator: str | Accelerator,
    nodes: int,
    gpus_per_node: int,
    intra_node_bw_gb_s: float | None = None,
    inter_node_bw_gb_s: float | None = None,
) -> HardwareFacts:
    """The facts of a cluster; stated bandwidths (10^9 bytes/s per accelerator, one way) win over the catalogue's.

    Raises:
        UnknownNameError: no such accelerator.
        MissingFieldError: the accelerator states no memory.
        InputError: there are no nodes or no accelerators in them.
    """
    part = find_accelerator(accelerator) if isinstance(accelerator, str) else accelerator
    return facts_of(part, nodes, gpus_per_node, intra_node_bw_gb_s, inter_node_bw_gb_s)
