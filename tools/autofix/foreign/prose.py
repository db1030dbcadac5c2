"""What the sentences around a proposal, or in place of one, say for certain: model, hardware, degrees, load.

Only what is not said in the proposal itself counts, and only where the sentences name one thing of a kind.
"""

from __future__ import annotations

import re

from ...catalog.models import mentions
from ...catalog.names import named_format
from .degree_words import degrees_in_prose
from .hardware_words import hardware_of
from .lexicon import folded
from .load_words import limits_in_prose, load_in_prose
from .scope import Scope
from .walker import UNPLANNED, Walker

_MAX_CHARS = 20_000
_KEY_LINE = re.compile(
    r"^[ \t-]{0,40}[\w\u4e00-\u9fff\"'][\w .\u4e00-\u9fff/\"'-]{0,60}[:：=][^\n]{0,2000}$", re.MULTILINE
)
_UNPLANNED = {
    "speculative": re.compile(r"speculative[ -](?:decoding|sampling)|speculation|投机(?:解码|采样)", re.IGNORECASE),
    "lora": re.compile(r"(?<![a-z_-])q?loras?(?![a-z_])", re.IGNORECASE),
}
_LIMITS = ("ttft_ms_max", "tpot_ms_max", "request_rate")
_DENIED = re.compile(r"(?:\b(?:no|not|without|never|non)\b|不|无|没)[^.,;\n。，；]{0,20}$", re.IGNORECASE)


def read_prose(text: str, walker: Walker, *, alone: bool, holds_keys: bool = False) -> None:
    """Take down what `text` says where nothing was said before; degrees only where it stands `alone`.

    A text that `holds_keys` is the proposal itself: its lines of a key and a value were read as such.
    """
    text = folded(text[:_MAX_CHARS])
    facts, where = walker.facts, "the text around" if not alone else "the text"
    if not facts.has("model") and not facts.has("config"):
        found = [mention for mention in mentions(text) if mention.entry is not None]
        names = {mention.entry.name for mention in found if mention.entry is not None}
        if len(names) == 1:
            facts.claim("model", names.pop(), where)
            if (suffix := named_format(found[0].words)) is not None and not facts.has("precision.weights"):
                facts.claim("precision.weights", suffix, where)
    _hardware(text, walker, where)
    if alone:
        for phase, degrees in degrees_in_prose(text).items():
            for name, number in degrees.items():
                walker.claim_degree(name, number, Scope(where, phase))
    _load(_KEY_LINE.sub("", text) if holds_keys else text, walker, where)
    for concept, pattern in _UNPLANNED.items():
        if any(
            not _DENIED.search(text[max(0, match.start() - 30) : match.start()]) for match in pattern.finditer(text)
        ):
            walker.notes.unclear(UNPLANNED[concept], where)


def _hardware(text: str, walker: Walker, where: str) -> None:
    facts = walker.facts
    words = hardware_of(text)
    if words.accelerator is None or facts.get("accelerator") not in (None, words.accelerator):
        return
    facts.claim("accelerator", words.accelerator, where, weak=True)
    sizes = {name: getattr(words, name) for name in ("nodes", "gpus_per_node", "total")}
    counts = [f"{name} {number}" for name, number in sizes.items() if number is not None]
    walker.notes.read(", ".join((f"hardware: {words.accelerator}", *counts)), where)
    if all(facts.get(name) in (None, number) or number is None for name, number in sizes.items()):
        for name, number in sizes.items():
            if number is not None and not facts.has("total"):
                facts.claim(name, number, where)


def _load(text: str, walker: Walker, where: str) -> None:
    """Load and number formats, each where it was not said before and the text states one of a kind."""
    facts, notes = walker.facts, walker.notes
    for field, values in load_in_prose(text).items():
        name = field.partition(".")[2]
        if len(values) > 1:
            notes.unclear(f"{name} is {' and '.join(map(str, values))}: none was taken", where)
        elif not facts.has(field):
            facts.claim(field, values[0], where)
            notes.read(f"{name} {values[0]}", where)
        elif facts.get(field) not in (None, values[0]):
            notes.unclear(f"{name} {values[0]} here, {facts.get(field)} in the proposal, which counts", where)
    for words in () if any(facts.has(f"workload.{name}") for name in _LIMITS) else limits_in_prose(text):
        notes.unclear(f"{words!r}: a limit is read only from a key", where)
