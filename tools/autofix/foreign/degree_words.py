"""Parallel degrees in words: "TP8 PP2", "PP2 x TP8", "8-way tensor parallelism", "TP=8, EP=16", "张量并行 8".

A text is read whole or not at all where it stands for degrees: "TP8 or PP8" leaves a word over and so says nothing for
certain. In running prose each line is taken by itself, and a figure that is stated in two ways counts as unsaid.
"""

from __future__ import annotations

import re

from .figures import digits_for_words
from .lexicon import DEGREE_WORDS, PHASE_WORDS, any_case, folded

_SIZE = r"(?:[ _-](?:size|degree))?"
_ALSO = {"pp": r"|pipeline stages?", "dp": r"|(?:model )?replicas?|(?:模型)?副本数?"}
_NAMES = {
    "attention_dp": r"(?:attention|attn)[ _-]?(?:dp|data[ -]parallel(?:ism)?)|dp[ _-]attention",
    "tp_ffn": r"(?:ffn|mlp|dense)[ _-]?tp",
    **{name: rf"(?:{words.replace(' ', '[ _-]')}){_SIZE}{_ALSO.get(name, '')}" for name, words in DEGREE_WORDS.items()},
}
_LINK = r"(?: ?(?:=|:|：|of|is|为|是) ?| ?\(?(?:(?:of|with|to) )?(?:a )?(?:degree|size) (?:(?:of|=) ?)?| ?[-_]?)"
_OFF = {"pp": f"{_NAMES['pp']}|pipelin(?:e|ing)|流水线"}
_NOT = (
    r"(?:no|without|not (?:use|using|need|needing)(?: any)?)\s"
    r"|(?:不(?:使用|采用|启用|需要?|用|做|开)?|无需?|没有|未使用)(?:任何)?\s?"
)
_PATTERN = any_case(
    "|".join(
        rf"(?P<{name}_after>(?<![A-Za-z])(?:{words}){_LINK}(?P<{name}_n>\d{{1,6}})(?![\d%]|\.\d))"
        rf"|(?P<{name}_none>(?<![A-Za-z])(?:{_NOT})(?:{_OFF.get(name, words)})(?![A-Za-z0-9]))"
        rf"|(?P<{name}_before>(?<![\dA-Za-z.第])(?P<{name}_m>\d{{1,6}})[ -]?(?:way|路|个|份)?[ -]?"
        rf"(?:{words})(?![A-Za-z0-9]| ?groups?(?![A-Za-z])))"
        for name, words in _NAMES.items()
    )
)
# "two stages" is a pipeline where one is spoken of; else the stages may be the phases.
_PIPELINE = any_case(r"pipelin|流水|(?<![A-Za-z])pp(?![A-Za-z])")
_STAGES = any_case(r"(?<![\d.第A-Za-z])(\d{1,4})[ -]?个?(?:stages?(?![A-Za-z0-9])|(?:流水线?)?(?:阶段|级(?!别)))")
# "2P1D"; "2 prefill instances and 1 decode instance".
_SIDES = re.compile(r"(?<![A-Za-z\d.])(?P<prefill>\d{1,4}) ?P ?[+&]? ?(?P<decode>\d{1,4}) ?D(?![A-Za-z\d])")
_KIND = r"(?:replicas?|instances?|workers?|servers?|engines?|副本|实例|节点)"
_COUNTED = {
    phase: any_case(rf"(?<![A-Za-z\d.-])(\d{{1,4}}) ?个? ?(?:{words})[ -]?{_KIND}(?![A-Za-z])")
    for phase, words in PHASE_WORDS.items()
}
_GLUE = any_case(
    r"(?:[\s,;，、x×*+/&|()\[\]{}\-_.@:]|\b(?:and|with|within|across|inside|per|stage|each|using|use|run|choose|only|parallelism)\b"
    r"|和|加|每级)*"
)
_PHASE = any_case(rf"(?P<prefill>{PHASE_WORDS['prefill']})|(?P<decode>{PHASE_WORDS['decode']})")
_OPEN = re.compile(
    r"\b(?:or|vs|versus|either|instead|not|than|rather|whichever|could|alternatively|unlike|avoid|might|maybe|perhaps)\b|或|还是|不"
)
# "… in prefill": the phase of what stands before it.
_BEHIND = any_case(r"(?:\s(?:per|in each) stage)?\s?\(?\b(?:in|for|during|at)\s(?:the\s)?$")
_BOTH = any_case(r"pre-?fill\s?(?:and|&|/|\+|as well as)\s?(?:the\s)?decode")
_AND = any_case(r"[,;]|\b(?:and|then|while|but)\b")

_MAX_CHARS = 20_000


def degrees_of(text: str) -> dict[str, int] | None:
    """The degrees that the whole of `text` states, or `None` where it says anything else or contradicts itself."""
    if len(text) > 300:
        return None
    text = digits_for_words(folded(text))
    degrees = _stated(text)
    return degrees if degrees and _GLUE.fullmatch(_PATTERN.sub(" ", text)) else None


def _stated(text: str) -> dict[str, int] | None:
    """Every degree that `text` states; `None` where one is stated twice with different figures."""
    degrees: dict[str, int] = {}
    for match in _PATTERN.finditer(text):
        name = str(match.lastgroup).rpartition("_")[0]
        number = int(match[f"{name}_n"] or match[f"{name}_m"] or 1)
        if degrees.setdefault(name, number) != number:
            return None
    return degrees


def degrees_in_prose(text: str) -> dict[str | None, dict[str, int]]:
    """Degrees by the phase that their line names (`None`: no phase), less lines that weigh one against another."""
    said: dict[str | None, dict[str, set[int]]] = {}
    text = digits_for_words(folded(text[:_MAX_CHARS]))
    for clause in re.split(r"[\n;；。]|\.\s", _BOTH.sub("both phases", text)):
        parts = [(phase, _certain(words)) for phase, words in _by_phase(clause)]
        for phase, degrees in [*_replicas(clause), *parts]:
            for name, number in degrees.items():
                said.setdefault(phase, {}).setdefault(name, set()).add(number)
    certain = {
        phase: {name: numbers.pop() for name, numbers in degrees.items() if len(numbers) == 1}
        for phase, degrees in said.items()
    }
    return {phase: degrees for phase, degrees in certain.items() if degrees}


def _certain(words: str) -> dict[str, int]:
    """The degrees that `words` state; none where they weigh one against another."""
    degrees = None if _OPEN.search(_PATTERN.sub(" ", words)) else _stated(words)
    stages = set(_STAGES.findall(words)) if _PIPELINE.search(words) else set[str]()
    if degrees is not None and "pp" not in degrees and len(stages) == 1:
        degrees["pp"] = int(stages.pop())
    return degrees or {}


def _replicas(clause: str) -> list[tuple[str | None, dict[str, int]]]:
    """Replicas of each phase, where a clause counts those of both: "2P1D", "2 prefill workers and 1 decode worker"."""
    both = _SIDES.search(clause)
    counts = {phase: both[phase] if both else _count(pattern, clause) for phase, pattern in _COUNTED.items()}
    if _OPEN.search(clause) or not all(counts.values()):
        return []
    return [(phase, {"replicas": int(count)}) for phase, count in counts.items()]


def _count(pattern: re.Pattern[str], clause: str) -> str:
    match = pattern.search(clause)
    return "" if match is None else match[1]


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
    return max((match.end() for match in _AND.finditer(words, 0, degrees[-1].start())), default=0)
