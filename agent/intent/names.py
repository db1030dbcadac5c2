"""The names in a request: which model, which accelerator.

Names become marks on the page, so that their digits count nothing. The catalogues find and resolve names; here a name
that is said not to be meant is dropped, several different ones are refused, and so is an unknown one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...tools.catalog import hardware, models
from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.dtypes import DType
from ...tools.errors import InputError
from .claims import Claims
from .page import BOX, CARD, MODEL, RACK, Page


@dataclass(frozen=True, slots=True)
class NodeSizes:
    """Accelerators of the node ("DGX H100") or rack ("NVL72") that was named, and of a usual node; `None`: unknown."""

    box: int | None = None
    usual: int | None = None
    rack: int | None = None


_MEMORY_AFTER = re.compile(r"\s?[(\[]\s?(\d{2,3})\s?gi?b?\s?(?:hbm\w{0,2}|vram|memory)?\s?[)\]]", re.IGNORECASE)
_MEMORY_BEFORE = re.compile(r"(?<![A-Za-z0-9.])(\d{2,3})\s?-?gi?b\s$", re.IGNORECASE)
_RACK = re.compile(r"nvl\s?(\d{2,3})", re.IGNORECASE)


# A word that looks like a model of some size ("Foo-13B") although no catalogue knows its family.
_MODEL_LIKE = re.compile(
    r"(?<![A-Za-z0-9./\-])(?:[A-Za-z][\w.\-]{0,60}[\-_ ])?"
    r"[A-Za-z][\w.]{0,30}[\-_ ]?\d{1,4}(?:\.\d{1,3})?[bB](?![A-Za-z0-9])"
)


@dataclass(frozen=True, slots=True)
class NamedModel:
    """How the model was written, and the number format that a suffix of its name states ("-FP8")."""

    words: str = ""
    weights: DType | None = None


def read_model(page: Page, claims: Claims) -> NamedModel:
    """Take the model's name off the page.

    Raises:
        RequestError: several different models, or one that the catalogue does not know.
    """
    named = NamedModel()
    failed: str | None = None
    for mention in models.mentions(page.text):
        negated = page.is_negated(mention.start, mention.end)
        words = page.take(mention.start, mention.end, mark=MODEL)
        if negated:
            continue
        if mention.entry is None:
            failed = failed or mention.error
            continue
        if claims.has("model") and claims.values["model"] != mention.entry.name:
            raise claims.refusal(f"several models: {claims.words['model']!r} and {words!r}; plan one at a time")
        claims.claim("model", mention.entry.name, words)
        named = NamedModel(words, mention.weights or named.weights)
    if failed is not None:
        raise claims.refusal(failed)
    return named


def refuse_unknown_model(page: Page, claims: Claims) -> None:
    """Where no model was found: refuse a word that looks like one by its size ("Foo-13B"), by its name.

    Raises:
        RequestError: there is such a word; the message has the nearest known names.
    """
    if not claims.has("model") and (match := _MODEL_LIKE.search(page.text)):
        raise claims.refusal(_unknown_model(match.group()))


def _unknown_model(words: str) -> str:
    try:
        return f"{words!r} was not recognised as a model; write its name as {models.find_model(words).name}"
    except InputError as error:
        return str(error)


def _with_memory(
    page: Page, claims: Claims, mention: hardware.AcceleratorMention, accelerator: Accelerator
) -> tuple[int, int, Accelerator]:
    """The mention with a memory size that stands apart from the name: "A100 (40GB)", "40 GB A100s"."""
    after = _MEMORY_AFTER.match(page.text, mention.end)
    before = None if after else _MEMORY_BEFORE.search(page.text[max(0, mention.start - 10) : mention.start])
    size = after or before
    if size is None:
        return mention.start, mention.end, accelerator
    start = mention.start - (len(before.group()) if before else 0)
    end = after.end() if after else mention.end
    name = re.sub(r"(?<=[0-9])s$", "", mention.words)
    try:
        return start, end, hardware.find_accelerator(f"{name} {size[1]}GB")
    except InputError as error:
        raise claims.refusal(str(error)) from None


def read_accelerator(page: Page, claims: Claims) -> NodeSizes:
    """Take the accelerators' names off the page.

    Raises:
        RequestError: several different accelerators (a plan is for one kind), or an unknown one.
    """
    sizes = NodeSizes()
    for mention in hardware.mentions(page.text):
        if mention.accelerator is None:
            raise claims.refusal(str(mention.error))
        if page.is_negated(mention.start, mention.end):
            page.take(mention.start, mention.end)
            continue
        rack = _RACK.search(mention.words)
        mark = RACK if rack else BOX if mention.gpus_per_node else CARD
        start, end, accelerator = _with_memory(page, claims, mention, mention.accelerator)
        words = page.take(start, end, mark=mark)
        if claims.has("accelerator") and claims.values["accelerator"] != accelerator.id:
            raise claims.refusal(
                f"not planned by this tool: mixed accelerators ({claims.words['accelerator']!r} and {words!r}); "
                "keep one kind"
            )
        claims.claim("accelerator", accelerator.id, words)
        sizes = NodeSizes(
            box=mention.gpus_per_node or sizes.box,
            usual=accelerator.typical_node_accelerators,
            rack=int(rack[1]) if rack else sizes.rack,
        )
    return sizes
