"""The names in a request: which model, which accelerator. Names become marks on the page, so their digits count nothing.

The catalogues find and resolve names; here a name that is said not to be meant is dropped, several different ones are
refused, and so is an unknown one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...tools.catalog import hardware, models
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


_RACK = re.compile(r"nvl\s?(\d{2,3})", re.IGNORECASE)


# A word that looks like a model of some size ("Foo-13B") although no catalogue knows its family.
_MODEL_LIKE = re.compile(
    r"(?<![A-Za-z0-9./\-])(?:[A-Za-z][\w.\-]{0,60}[\-_ ])?[A-Za-z][\w.]{0,30}[\-_ ]?\d{1,4}(?:\.\d{1,3})?[bB](?![A-Za-z0-9])"
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
    if not claims.has("model") and (match := _MODEL_LIKE.search(page.text)):
        raise claims.refusal(_unknown_model(match.group()))
    return named


def _unknown_model(words: str) -> str:
    try:
        return f"{words!r} was not recognised as a model; write its name as {models.find_model(words).name}"
    except InputError as error:
        return str(error)


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
        words = page.take(mention.start, mention.end, mark=mark)
        accelerator = mention.accelerator
        if claims.has("accelerator") and claims.values["accelerator"] != accelerator.id:
            raise claims.refusal(
                f"mixed accelerators are not planned by this tool ({claims.words['accelerator']!r} and {words!r}); "
                "keep one kind"
            )
        claims.claim("accelerator", accelerator.id, words)
        sizes = NodeSizes(
            box=mention.gpus_per_node or sizes.box,
            usual=accelerator.typical_node_accelerators,
            rack=int(rack[1]) if rack else sizes.rack,
        )
    return sizes
