"""Parallel degrees in words: "TP8 PP2", "PP2 x TP8", "8-way tensor parallelism", "TP=8, EP=16", "张量并行 8".

A text is read whole or not at all where it stands for degrees: "TP8 or PP8" leaves a word over and so says nothing for
certain. In running prose each line is taken by itself, and a figure that is stated in two ways counts as unsaid.
"""

from __future__ import annotations

import re

from .lexicon import PHASE_WORDS

_NAMES = {
    "attention_dp": r"(?:attention|attn)[ _-]?(?:dp|data[ -]parallel(?:ism)?)|dp[ _-]attention",
    "tp_ffn": r"(?:ffn|mlp|dense)[ _-]?tp",
    "tp": r"tp(?:[ _-]size)?|tensor[ _-](?:model[ _-])?parallel(?:ism)?(?:[ _-](?:size|degree))?|张量并行(?:度|数)?",
    "pp": r"pp(?:[ _-]size)?|pipeline[ _-](?:model[ _-])?parallel(?:ism)?(?:[ _-](?:size|degree))?|pipeline stages?"
    r"|流水线?并行(?:度|数)?",
    "ep": r"ep(?:[ _-]size)?|expert[ _-](?:model[ _-])?parallel(?:ism)?(?:[ _-](?:size|degree))?|专家并行(?:度|数)?",
    "sp": r"sp(?:[ _-]size)?|sequence[ _-]parallel(?:ism)?(?:[ _-](?:size|degree))?|序列并行(?:度|数)?",
    "dp": r"dp(?:[ _-]size)?|data[ _-]parallel(?:ism)?(?:[ _-](?:size|degree))?|(?:model )?replicas?"
    r"|数据并行(?:度|数)?",
}
_LINK = r"(?: ?(?:=|:|：|of|is|为|是) ?| ?[-_]?)"
_PATTERN = re.compile(
    "|".join(
        rf"(?P<{name}_after>(?<![A-Za-z])(?:{words}){_LINK}(?P<{name}_n>\d{{1,6}})(?![\d.%]))"
        rf"|(?P<{name}_before>(?<![\dA-Za-z.])(?P<{name}_m>\d{{1,6}})[ -]?(?:way|路)?[ -]?(?:{words})(?![A-Za-z0-9]))"
        for name, words in _NAMES.items()
    ),
    re.IGNORECASE,
)
_GLUE = re.compile(
    r"(?:[\s,;，、x×*+/&|()\[\]{}\-_.@:]|\b(?:and|with|within|across|inside|per|stage|each|using|only|parallelism)\b"
    r"|和|加|每级)*",
    re.IGNORECASE,
)
_PHASE = re.compile(rf"(?P<prefill>{PHASE_WORDS['prefill']})|(?P<decode>{PHASE_WORDS['decode']})", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:or|vs|versus|either|instead|not|than|rather|whichever|could|alternatively|unlike|avoid)\b|或|还是|不"
)
_MAX_CHARS = 20_000


def degrees_of(text: str) -> dict[str, int] | None:
    """The degrees that the whole of `text` states, or `None` where it says anything else or contradicts itself."""
    if len(text) > 300:
        return None
    found = _found(text)
    rest = _PATTERN.sub(" ", text)
    return found if found and _GLUE.fullmatch(rest) else None


def _found(text: str) -> dict[str, int] | None:
    """Every degree that `text` states; `None` where one is stated twice with different figures."""
    found: dict[str, int] = {}
    for match in _PATTERN.finditer(text):
        name = next(name for name in _NAMES if match[f"{name}_after"] or match[f"{name}_before"])
        number = int(match[f"{name}_n"] or match[f"{name}_m"])
        if found.setdefault(name, number) != number:
            return None
    return found


def degrees_in_prose(text: str) -> dict[str | None, dict[str, int]]:
    """Degrees by the phase that their line names (`None`: no phase), less lines that weigh one against another."""
    said: dict[str | None, dict[str, int]] = {}
    unsure: set[tuple[str | None, str]] = set()
    for clause in re.split(r"[\n;；。]|\.\s", text[:_MAX_CHARS]):
        for phase, words in _by_phase(clause):
            degrees = None if _OPEN.search(words) else _found(words)
            for name, number in (degrees or {}).items():
                if said.setdefault(phase, {}).setdefault(name, number) != number:
                    unsure.add((phase, name))
    for phase, name in unsure:
        said[phase].pop(name, None)
    return {phase: degrees for phase, degrees in said.items() if degrees}


def _by_phase(clause: str) -> list[tuple[str | None, str]]:
    """The parts of a clause, each with the phase that is named in front of it."""
    places = [(match.start(), match.lastgroup) for match in _PHASE.finditer(clause)]
    if not places:
        return [(None, clause)]
    ends = [*(start for start, _ in places[1:]), len(clause)]
    parts = [(phase, clause[start:end]) for (start, phase), end in zip(places, ends, strict=True)]
    return [(None, clause[: places[0][0]]), *parts]
