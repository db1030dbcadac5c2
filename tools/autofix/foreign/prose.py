"""What the sentences around a proposal, or in place of one, say for certain: model, hardware, degrees, load.

Only what is not said in the proposal itself counts, and only where the sentences name one thing of a kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...catalog.model_mentions import mentions
from ...catalog.names import named_format
from ...plan.document import PHASES
from ...plan.shorthand import read_shorthand
from .degree_words import degrees_in_prose
from .hardware_words import hardware_of
from .lexicon import any_case, folded
from .load_words import limits_in_prose, load_in_prose
from .scope import Scope
from .text import Extract
from .walker import UNPLANNED, Walker

_MAX_CHARS = 20_000
_MOST_LINES = 100
_KEY_LINE = re.compile(
    r"^[ \t-]{0,40}[\w\u4e00-\u9fff\"'][\w .\u4e00-\u9fff/\"'-]{0,60}[:：=][^\n]{0,2000}$", re.MULTILINE
)
_UNPLANNED = {
    "speculative": any_case(r"speculative[ -](?:decoding|sampling)|speculation|投机(?:解码|采样)"),
    "lora": any_case(r"(?<![a-z_-])q?loras?(?![a-z_])"),
}
_LIMITS = ("ttft_ms_max", "tpot_ms_max", "request_rate")
_DENIED = any_case(r"(?:\b(?:no|not|without|never|non)\b|不|无|没)[^.,;\n。，；]{0,20}$")


def read_prose(source: Extract, walker: Walker, *, alone: bool) -> None:
    """Claim what the text of `source` says where nothing was said before; degrees only where it stands `alone`."""
    text = folded(source.prose[:_MAX_CHARS])
    facts, where = walker.facts, "the text" if alone else "the text around"
    if not facts.has("model") and not facts.has("config"):
        named = [(mention.entry.name, mention.words) for mention in mentions(text) if mention.entry is not None]
        names = {name for name, _ in named}
        if len(names) == 1:
            facts.claim("model", names.pop(), where)
            if (suffix := named_format(named[0][1])) is not None and not facts.has("precision.weights"):
                facts.claim("precision.weights", suffix, where)
    _hardware(text, walker, where)
    if alone:
        option = source.recommended
        _degrees(text if option is None else folded(option[:_MAX_CHARS]), walker, where)
    # Lines of a key and a value were read as such where the text is the proposal itself.
    _load(_KEY_LINE.sub("", text) if source.holds_keys else text, walker, where)
    for concept, pattern in _UNPLANNED.items():
        before = [text[max(0, match.start() - 30) : match.start()] for match in pattern.finditer(text)]
        if not all(map(_DENIED.search, before)):
            walker.notes.unclear(UNPLANNED[concept], where)


def _degrees(text: str, walker: Walker, where: str) -> None:
    """Degrees in sentences, or in the shorthand of this package: `2 prefill of TP4 + 1 decode of TP8`."""
    said = _in_shorthand(text) or degrees_in_prose(text)
    if all("replicas" in said.get(phase, ()) for phase in PHASES):
        walker.facts.claim("separate", True, where, weak=True)
    for phase, degrees in said.items():
        for name, value in degrees.items():
            if isinstance(value, int):
                walker.claim_degree(name, value, Scope(where, phase))
            else:
                walker.facts.claim(f"{phase}.{name}", value, where)


def _in_shorthand(text: str) -> Mapping[str | None, Mapping[str, Any]] | None:
    """What the text, or a line of it, says in the shorthand alone: replicas of each phase, layers of stages."""
    for line in [text, *text.splitlines()[:_MOST_LINES]]:
        short = read_shorthand(line.strip(" \t\n.`*-"))
        if short is not None and {"replicas", "stage_layers"} & {*short["prefill"], *short["decode"]}:
            return {None: {"dp": short["dp"]} if "dp" in short else {}, **{phase: short[phase] for phase in PHASES}}
    return None


def _hardware(text: str, walker: Walker, where: str) -> None:
    facts = walker.facts
    words = hardware_of(text)
    if words.accelerator is None or facts.get("accelerator") not in (None, words.accelerator):
        return
    facts.claim("accelerator", words.accelerator, where, weak=True)
    counts = words.counts
    said = (f"hardware: {words.accelerator}", *(f"{name} {number}" for name, number in counts.items()))
    walker.notes.read(", ".join(said), where)
    if all(facts.get(name) in (None, number) for name, number in counts.items()):
        for name, number in counts.items():
            if not facts.has("total"):
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
