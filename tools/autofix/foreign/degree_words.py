"""Parallel degrees in words: "TP8 PP2", "PP2 x TP8", "8-way tensor parallelism", "TP=8, EP=16", "张量并行 8".

A text is read whole or not at all where it stands for degrees: "TP8 or PP8" leaves a word over and so says nothing for
certain. In running prose each line is taken by itself, and a figure that is stated in two ways counts as unsaid.
"""

from __future__ import annotations

import re

from .figures import digits_for_words
from .lexicon import PHASE_WORDS, folded

_SIZE = r"(?:[ _-](?:size|degree))?"
_NAMES = {
    "attention_dp": r"(?:attention|attn)[ _-]?(?:dp|data[ -]parallel(?:ism)?)|dp[ _-]attention",
    "tp_ffn": r"(?:ffn|mlp|dense)[ _-]?tp",
    "tp": rf"tp(?:[ _-]size)?|tensor[ _-](?:model[ _-])?parallel(?:ism)?{_SIZE}|张量并行(?:度|数)?",
    "pp": rf"pp(?:[ _-]size)?|pipeline[ _-](?:model[ _-])?parallel(?:ism)?{_SIZE}|pipeline stages?"
    r"|流水线?并行(?:度|数)?",
    "ep": rf"ep(?:[ _-]size)?|expert[ _-](?:model[ _-])?parallel(?:ism)?{_SIZE}"
    r"|专家并行(?:度|数)?",
    "sp": rf"sp(?:[ _-]size)?|sequence[ _-]parallel(?:ism)?{_SIZE}|序列并行(?:度|数)?",
    "dp": rf"dp(?:[ _-]size)?|data[ _-]parallel(?:ism)?{_SIZE}|(?:model )?replicas?"
    r"|数据并行(?:度|数)?|(?:模型)?副本数?",
}
_LINK = r"(?: ?(?:=|:|：|of|is|为|是) ?| ?\(?(?:(?:of|with|to) )?(?:a )?(?:degree|size) (?:(?:of|=) ?)?| ?[-_]?)"
_OFF = {"pp": f"{_NAMES['pp']}|pipelin(?:e|ing)|流水线"}
_NOT = (
    r"(?:no|without|not (?:use|using|need|needing)(?: any)?)\s"
    r"|(?:不(?:使用|采用|启用|需要?|用|做|开)?|无需?|没有|未使用)(?:任何)?\s?"
)
_PATTERN = re.compile(
    "|".join(
        rf"(?P<{name}_after>(?<![A-Za-z])(?:{words}){_LINK}(?P<{name}_n>\d{{1,6}})(?![\d%]|\.\d))"
        rf"|(?P<{name}_none>(?<![A-Za-z])(?:{_NOT})(?:{_OFF.get(name, words)})(?![A-Za-z0-9]))"
        rf"|(?P<{name}_before>(?<![\dA-Za-z.第])(?P<{name}_m>\d{{1,6}})[ -]?(?:way|路|个|份)?[ -]?"
        rf"(?:{words})(?![A-Za-z0-9]| ?groups?(?![A-Za-z])))"
        for name, words in _NAMES.items()
    ),
    re.IGNORECASE,
)
# "two stages" is a pipeline where one is spoken of; else the stages may be the phases.
_PIPELINE = re.compile(r"pipelin|流水|(?<![A-Za-z])pp(?![A-Za-z])", re.IGNORECASE)
_STAGES = re.compile(
    r"(?<![\d.第A-Za-z])(\d{1,4})[ -]?个?(?:stages?(?![A-Za-z0-9])|(?:流水线?)?(?:阶段|级(?!别)))", re.IGNORECASE
)
# "2P1D"; "2 prefill instances and 1 decode instance".
_SIDES = re.compile(r"(?<![A-Za-z\d.])(?P<prefill>\d{1,4}) ?P ?[+&]? ?(?P<decode>\d{1,4}) ?D(?![A-Za-z\d])")
_KIND = r"(?:replicas?|instances?|workers?|servers?|engines?|副本|实例|节点)"
_COUNTED = {
    phase: re.compile(rf"(?<![A-Za-z\d.-])(\d{{1,4}}) ?个? ?(?:{words})[ -]?{_KIND}(?![A-Za-z])", re.IGNORECASE)
    for phase, words in PHASE_WORDS.items()
}
# "TP8", "8-way TP", "no TP".
_FORMS = ("after", "before", "none")
_GLUE = re.compile(
    r"(?:[\s,;，、x×*+/&|()\[\]{}\-_.@:]|\b(?:and|with|within|across|inside|per|stage|each|using|use|run|choose|only|parallelism)\b"
    r"|和|加|每级)*",
    re.IGNORECASE,
)
_PHASE = re.compile(rf"(?P<prefill>{PHASE_WORDS['prefill']})|(?P<decode>{PHASE_WORDS['decode']})", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:or|vs|versus|either|instead|not|than|rather|whichever|could|alternatively|unlike|avoid|might|maybe|perhaps)\b|或|还是|不"
)
# "… in prefill": the phase of what stands before it.
_BEHIND = re.compile(r"(?:\s(?:per|in each) stage)?\s?\(?\b(?:in|for|during|at)\s(?:the\s)?$", re.IGNORECASE)
_BOTH = re.compile(r"pre-?fill\s?(?:and|&|/|\+|as well as)\s?(?:the\s)?decode", re.IGNORECASE)
_AND = re.compile(r"[,;]|\b(?:and|then|while|but)\b", re.IGNORECASE)

_MAX_CHARS = 20_000


def degrees_of(text: str) -> dict[str, int] | None:
    """The degrees that the whole of `text` states, or `None` where it says anything else or contradicts itself."""
    if len(text) > 300:
        return None
    text = digits_for_words(folded(text))
    found = _found(text)
    rest = _PATTERN.sub(" ", text)
    return found if found and _GLUE.fullmatch(rest) else None


def _found(text: str) -> dict[str, int] | None:
    """Every degree that `text` states; `None` where one is stated twice with different figures."""
    found: dict[str, int] = {}
    for match in _PATTERN.finditer(text):
        name = next(name for name in _NAMES if any(match[f"{name}_{form}"] for form in _FORMS))
        number = int(match[f"{name}_n"] or match[f"{name}_m"] or 1)
        if found.setdefault(name, number) != number:
            return None
    return found


def degrees_in_prose(text: str) -> dict[str | None, dict[str, int]]:
    """Degrees by the phase that their line names (`None`: no phase), less lines that weigh one against another."""
    said: dict[str | None, dict[str, int]] = {}
    unsure: set[tuple[str | None, str]] = set()
    text = digits_for_words(folded(text[:_MAX_CHARS]))
    for clause in re.split(r"[\n;；。]|\.\s", _BOTH.sub("both phases", text)):
        for phase, words in [*_replicas(clause), *_by_phase(clause)]:
            degrees = words if isinstance(words, dict) else _certain(words)
            for name, number in (degrees or {}).items():
                if said.setdefault(phase, {}).setdefault(name, number) != number:
                    unsure.add((phase, name))
    for phase, name in unsure:
        said[phase].pop(name, None)
    return {phase: degrees for phase, degrees in said.items() if degrees}


def _certain(words: str) -> dict[str, int] | None:
    """The degrees that `words` state; `None` where they weigh one against another."""
    if _OPEN.search(_PATTERN.sub(" ", words)):
        return None
    found, stages = _found(words), set(_STAGES.findall(words)) if _PIPELINE.search(words) else set[str]()
    if found is not None and "pp" not in found and len(stages) == 1:
        found["pp"] = int(stages.pop())
    return found


def _replicas(clause: str) -> list[tuple[str | None, dict[str, int]]]:
    """Replicas of each phase, where a clause counts those of both: "2P1D", "2 prefill workers and 1 decode worker"."""
    if _OPEN.search(clause):
        return []
    if (both := _SIDES.search(clause)) is not None:
        return [(phase, {"replicas": int(both[phase])}) for phase in _COUNTED]
    counts = {phase: pattern.search(clause) for phase, pattern in _COUNTED.items()}
    return [(phase, {"replicas": int(match[1])}) for phase, match in counts.items() if match and all(counts.values())]


def _by_phase(clause: str) -> list[tuple[str | None, str]]:
    """The parts of a clause, each with the phase that is named in front of it, or right behind: "TP8 in prefill"."""
    parts: list[tuple[str | None, str]] = []
    phase, start = None, 0
    for match in _PHASE.finditer(clause):
        before = clause[start : match.start()]
        stated = _stated_behind(before)
        if stated is None:
            parts.append((phase, before))
            phase = match.lastgroup
        else:
            parts += [(phase, before[:stated]), (match.lastgroup, before[stated:])]
            phase = None
        start = match.end()
    return [*parts, (phase, clause[start:])]


def _stated_behind(words: str) -> int | None:
    """Where in `words` that of which begins the phase is named right behind them; `None`: they end in no such thing."""
    joined = _BEHIND.search(words)
    degrees = list(_PATTERN.finditer(words, 0, joined.start())) if joined is not None else []
    if joined is None or not degrees or words[degrees[-1].end() : joined.start()].strip(" *`)"):
        return None
    if _GLUE.fullmatch(_PATTERN.sub(" ", words[: joined.start()])):
        return 0
    return max((one.end() for one in _AND.finditer(words, 0, degrees[-1].start())), default=0)
