"""Parallel degrees that a request states: "TP8 PP2", "8-way tensor parallel", "张量并行8", "prefill TP4, decode TP8".

A stated strategy is judged as it stands, so numbers are taken as written and nothing is corrected here. One degree may
be said by others: "DP attention, EP16", or SGLang's `dp` that lies inside its `tp` (`attention_words.fill`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..gated import Gated
from .attention_words import ATTENTION_DP, OF_ATTENTION, demanded_spans, fill
from .claims import Claims
from .constraint_words import rule_out
from .page import BARRIER, MODEL, OTHER, SENTENCE_END, Page, between, breaks_of
from .quantities import read_number
from .said import StatedDegrees, StatedStrategy
from .sides_words import read_sides

_SIZE = r"(?:[\s_\-]?(?:size|degree|world[\s_]size|group|ways?|大小|度|数))?"
_WORD = r"(?:one|two|three|four|six|eight|twelve|sixteen|thirty-two|sixty-four|[一二两三四六八十]{1,3})"
_STAGES = rf"(?=(?:\d{{1,4}}|{_WORD})[\s\-]?(?:个\s?)?(?:stages?|阶段|级))"
_NAMES: dict[str, tuple[str, ...]] = {
    "attention_dp": (
        rf"(?:{ATTENTION_DP})(?:\s(?:with|over|across)(?=\s\d{{1,4}}\s(?:ranks?|groups?|ways?)(?![a-z])))?{_SIZE}",
    ),
    "tp_ffn": (
        rf"(?:ffn|mlp|dense)[\s_\-]?(?:tp|tensor[\s_\-]?parallel(?:ism)?){_SIZE}",
        r"tp[\s_\-]?ffn|(?:ffn|前馈)\s?张量并行(?:度)?",
    ),
    "tp": (rf"tp{_SIZE}|tensor[\s_\-]?(?:model[\s_\-]?)?parallel(?:ism)?{_SIZE}|张量并行(?:度|数|大小)?",),
    "pp": (
        rf"pp{_SIZE}|pipeline[\s_\-]?(?:model[\s_\-]?)?parallel(?:ism)?{_SIZE}|pipeline\s(?:stages?|depth|degree)|stage\spipeline|stages?\s(?:in|of)\s(?:the|a)\spipeline",
        r"(?:流水线?|管道|管线)并行(?:度|数|大小)?|流水线?级数?|(?<=级)流水线?",
        # "a pipeline of 4 stages", "流水线，总共 3 个阶段"
        r"(?:pipelin(?:e|ing|ed)|流水线?(?:并行)?)(?:,?\s?(?:(?:with|of|in|over|into|总共|共|分为?)\s?){0,2})"
        + _STAGES,
    ),
    "ep": (rf"ep{_SIZE}|expert[\s_\-]?parallel(?:ism)?{_SIZE}|专家并行(?:度|数|大小)?",),
    "sp": (
        rf"sp{_SIZE}|(?:sequence|context)[\s_\-]?(?:\(context\)\s)?parallel(?:ism)?{_SIZE}|(?:序列|上下文)并行(?:度|数|大小)?",
    ),
    "dp": (
        rf"dp{_SIZE}|data[\s_\-]?parallel(?:ism)?{_SIZE}|(?<!per\s)(?<!each\s)(?<!every\s)(?:model\s)?replicas?(?!\s(?:may|might|can|could)\s)|copies(?:\sof\sthe\smodel)?",
        r"数据并行(?:度|数|大小)?|副本数?",
    ),
}
# Attention DP that is demanded without a number: stands among degrees until the others settle it.
_DEMAND = "attention_dp?"
_N = r"(?:-?\d{1,9}(?:\.\d{1,4})?(?![\d]))"
_NO_DEGREE = r"[A-Za-z0-9_]|\s?[=:]\s?\d|\sgroups?(?![a-z])"  # behind a name that a number precedes
_OF_WORD = rf"(?:(?<=\sof\s)|(?<=\sdegree\s)|(?<=\swith\s)|(?<=\sover\s)){_WORD}(?![A-Za-z])"
_MUST = r"must\sbe|has\sto\sbe|needs\sto\sbe|should\sbe|shall\sbe|exactly|precisely|fixed|pinned|必须|固定|恰好|正好|就"
_LINK = rf"(?:\s?(?:=|:|->|of\sdegree|of|is|to|at|set\sto|{_MUST}|为|是|设为|取|用)){{0,3}}[\s\-_]?"
# Behind the number: no letter of a unit; another degree may be glued on ("tp8pp2", "TP8xPP2").
_NO_UNIT = r"(?!(?!(?:tp|pp|ep|sp|dp)\s?=?\d)[a-wyz%])"


def _degree_pattern() -> str:
    """Every name with its number after it ("TP=8") or before it ("8-way TP")."""
    parts: list[str] = []
    for name, patterns in _NAMES.items():
        words = "|".join(patterns)
        after = rf"(?:(?<![a-wyz])|(?<=\d))(?:--?)?(?:{words}){_LINK}(?P<{name}_n>{_N}|{_OF_WORD}){_NO_UNIT}"
        number = rf"(?<![A-Za-z0-9.])(?P<{name}_m>{_N}|{_WORD})"
        before = rf"{number}\s?(?:-?\s?(?:way|fold)s?|路|级|个)?[\s\-]?(?:{words})(?!{_NO_DEGREE})"
        parts.append(f"(?P<{name}_after>{after})|(?P<{name}_before>{before})")
    parts.insert(0, rf"(?P<attention_dp_of>(?<![a-wyz])dp{_LINK}(?P<of_n>{_N}){OF_ATTENTION})")
    return "|".join(parts)


_DEGREE = Gated(
    _degree_pattern(),
)
_PERCENTILE = Gated(r"(?<![A-Za-z])tp\s?(?:50|90|95|99|999)(?!\d)")
_PREFILL = r"prefill(?:ing)?|pre-fill|prompt\sphase|预填充|预填"
_DECODE = r"decod(?:e|ing)|generation\sphase|解码"
_PHASE = Gated(rf"(?P<prefill>{_PREFILL})|(?P<decode>{_DECODE})")
_PHASE_AFTER = Gated(
    rf"^[\s,]*(?:(?:per|in\seach)\sstage\s)?(?:for|in|during|on|at|用于|给|做)\s?(?:the\s|both\s)?(?P<one>{_PREFILL}|{_DECODE})"
    rf"(?:\s?(?:and|&|/|和|与)\s?(?:the\s)?(?P<other>{_PREFILL}|{_DECODE}))?",
)
# Between a phase and its degrees there may stand only other degrees and these words.
_BETWEEN = Gated(
    r"(?:\s|[:=,x*/&+\-({\[]|\b(?:uses?|using|switch(?:es)?|with|is|at|on|runs?|running|phase|stage|and|as|gets?|wants?|side|instances?|"
    r"nodes?|workers?|should|be|the|has|of|to|of)\b|阶段|用|采用|使用|为|是|和|节点|实例|副本|侧|端|取|设|应|:)*",
)
# Of strategies that several people stand for one is to be found out.
_WHO_IS_RIGHT = Gated(
    r"(?<![a-z])(?:who(?:'s|\sis)\sright|which\sof\s(?:them|the\stwo|these)|who\swins)(?![a-z])|看谁|谁(?:对|更[好优稳快]|的?吞吐)|哪[个种](?:更|方案)",
)
_MOST_COMPARED = 300  # characters
_WEIGHS = Gated(r"(?<![a-z])(?:or|vs|versus|better|than|rather)(?![a-z])|还是|或者?|更好")
_OR = Gated(r"(?<![a-z])(?:or|versus|vs)(?![a-z])(?!\s(?:less|more|fewer|so|better|lower|higher)(?![a-z]))|还是")
# A degree in whose clause something fails is no demand: "because of a kernel bug at TP8".
_STOP = re.compile(r"[.;\n]")
_NEAR_FAILURE = 60  # characters
_FAILS = Gated(
    r"(?<![a-z])(?:bugs?|crash(?:es|ed)?|hangs?|broken|deadlocks?|fails?|segfaults?|ooms?)(?![a-z])|崩|挂死|报错|有问题"
)
_COMPARE = Gated(
    r"(?<![a-z])(?:compar\w{1,6}|versus|vs|or|against|better|between|which|whether)(?![a-z])|还是|比较|对比|哪个|哪种|或者?",
)
# A way to split that has no degree beside it, in a question that weighs it: "is tensor parallel better, or two copies?"
_TECHNIQUE = Gated(
    r"(?<![a-z])(?:tensor|pipeline|expert|data|tp|pp|ep)(?:[\s\-]parallel\w{0,4})?(?![a-z0-9])|(?<![a-z])(?:two|three|four|\d{1,3})\s(?:[a-z]{4,12}\s)?(?:replicas|copies|instances)(?![a-z])|(?<![a-z])(?:one|a)\s(?:copy|replica|instance)\s(?:per\s(?:gpu|card|node|server)|(?:on|for|in)\seach(?:\s(?:gpu|card|node|server|box))?)(?![a-z])|(?<![a-z])(?:something|anything)\s(?:better|else|different)(?![a-z])|(?<![a-z])(?:another|a\sbetter)\s(?:way|layout|split)(?![a-z])|张量|流水线?|专家并行|每卡各有副本",
)
# What stands between degrees of one strategy.
_JOIN = Gated(r"[\s,x*/&+\-]*(?:and|of|(?:combined\s)?with|和|加)?\s?")
# Between two degrees, right before the second: one of the two is to be had, not both.
_WEIGHED = Gated(
    r"^[^.;!?。\n]*(?:(?<![a-z])(?:or|vs\.?|versus|than|against)|还是|或者?|不如)(?:\s(?!less|more|fewer|lower|higher|less)[a-z]{1,10}){0,4}\s?$",
)
# Before a degree, in its clause: what was run once, which is no demand ("in September we tried TP16").
_TRIED = Gated(
    r"(?<![a-z])(?:(?:we|they|i|he|she|somebody|someone|colleagues?|team)\s(?:have\s|had\s|'ve\s)?"
    r"(?:already\s|once\s|also\s|first\s|recently\s){0,2}(?:tried|tested|benchmarked|measured|experimented\swith))(?![a-z])"
    r"[^,;.!?\n]{0,40}$|(?:试过|测过|测试过|跑过)[^,;。\n]{0,16}$",
)
_AND = Gated(r"\s?(?:and|from|&|/|和|与|跟)\s?(?:the\s)?")
_WHICH_OF_BOTH = Gated(r"[\s,:.]{0,3}(?:which(?![a-z])|哪[个种一]|谁(?!来))")
# Of which "pp=1" by itself only says that there is none: the other degrees stay open.
_RULED_OUT_BY_ONE = ("pp", "ep", "sp")
_AS_DP = Gated(r"dp|data|数据")
# A line that states a strategy by its name; numbers of GPUs in it are the strategy's, which may not be what there is.
_STRATEGY_LINE = Gated(r"(?:^|\n)[^\n:=]{0,40}(?:strateg(?:y|ies)|parallelism|策略|并行)[^\n:=]{0,20}[:=][^\n]*")
_GPUS = Gated(r"(?<![a-z])gpus?\s?[:=]?\s?(?P<n>\d{1,7})(?![\d.])|(?<![\d.])(?P<m>\d{1,7})\s?gpus?(?![a-z])")


@dataclass(frozen=True, slots=True)
class _Degree:
    name: str
    value: int
    start: int
    end: int
    words: str


def read_strategy(page: Page, claims: Claims) -> None:
    """Read stated degrees; each belongs to the phase that is named beside it, else to both."""
    for words, counts in read_sides(page):
        claims.claim("disaggregated", True, words)
        for phase, count in counts.items():
            _claim_degree(claims, phase, "replicas", claims.checked_degree(count, words), words)
    degrees = _find_degrees(page, claims)
    gpus = _read_gpus(page, claims)
    if (compared := _compared(page, degrees)) is not None:
        claims.leave_unread(f"{compared!r}: strategies to compare; all strategies are ranked, so none of them is fixed")
        return
    by_phase = _by_phase(page, degrees)
    if (rivals := _rivals(page, by_phase)) is not None:
        claims.leave_unread(f"{rivals}: different strategies; all strategies are ranked, so none of them is fixed")
        return
    if degrees and all(one.value == 1 and one.name in _RULED_OUT_BY_ONE for one in degrees):
        rule_out(claims, {(phase, one.name): one.words for phase, ones in by_phase.items() for one in ones})
        return
    for phase, stated in by_phase.items():
        for degree in _with_attention_dp(page, claims, stated):
            name = "replicas" if degree.name == "dp" and phase != "both" else degree.name
            _claim_degree(claims, phase, name, degree.value, degree.words)
    strategy = _strategy(claims, gpus)
    for name in [name for name in claims.values if name.startswith("strategy.")]:
        claims.drop(name)
    if strategy is not None:
        claims.claim("strategy", strategy[0], strategy[1])


def _rivals(page: Page, by_phase: Mapping[str, Sequence[_Degree]]) -> str | None:
    """The words of whole strategies that differ, wherever they stand, or `None`; two of files contradict each other."""
    for stated in by_phase.values():
        first: dict[str, _Degree] = {}
        for one in stated:
            other = first.setdefault(one.name, one)
            is_keyed = [_is_keyed(page, degree) for degree in (one, other)]
            if one.name != _DEMAND and other.value != one.value and not all(is_keyed):
                return ", ".join(repr(words) for words in dict.fromkeys(degree.words for degree in stated))
    return None


def _is_keyed(page: Page, degree: _Degree) -> bool:
    """Whether a degree stands in a line that states the strategy by its name."""
    return any(line.start() <= degree.start < line.end() for line in _STRATEGY_LINE.finditer(page.original))


def _compared(page: Page, degrees: list[_Degree]) -> str | None:
    """The words of several whole strategies that are to be compared ("TP8 or TP4xPP2?"), or `None`."""
    first: dict[str, _Degree] = {}
    rivals = [d for d in degrees if first.setdefault(d.name, d).value != d.value]
    for one, other in pairwise(degrees):
        gap = page.original[one.end : other.start]
        is_choice = _AND.fullmatch(gap) and _WHICH_OF_BOTH.match(page.original, other.end)
        if is_choice or (len(gap) <= 60 and BARRIER not in gap and _WEIGHED.search(gap)):
            last = next(run[-1] for run in _runs(page, degrees) if other in run)
            return page.original[one.start : last.end].strip()
    if len({(one.name, one.value) for one in degrees}) == 1 and (asked := _weighed_technique(page, degrees)):
        return asked
    start, end = (degrees[0].start, degrees[-1].end) if degrees else (0, 0)
    runs = _runs(page, degrees)
    if len(runs) > 1 and _WHO_IS_RIGHT.search(page.original) and end - start <= _MOST_COMPARED:
        return page.original[start:end].strip()
    if not rivals or any(_phase_of(page, run) != "both" for run in runs):
        return None
    around = page.original[max(0, start - 60) : start] + page.original[start:end] + page.original[end : end + 24]
    return page.original[start:end].strip() if end - start <= 200 and _COMPARE.search(around) else None


def _weighed_technique(page: Page, degrees: list[_Degree]) -> str | None:
    """The question that weighs a degree against a way to split without one, or `None`."""
    breaks = breaks_of(page.original, SENTENCE_END)
    left, right = between(breaks, degrees[0].start, degrees[0].end, len(page.original))
    around = page.text[left : degrees[0].start] + page.text[degrees[0].end : right]
    techniques = [one for one in page.search(_TECHNIQUE) if left <= one.start() and one.end() <= right]
    is_weighed = techniques and _WEIGHS.search(around)
    if page.original[right : right + 1] != "?" or not (is_weighed or _OR.search(around)):
        return None
    for one in techniques:
        page.take(*one.span())
    return page.original[left:right].strip()


def _find_degrees(page: Page, claims: Claims) -> list[_Degree]:
    percentiles = {match.start() for match in _PERCENTILE.finditer(page.text)}
    found: list[_Degree] = []
    for match in page.search(_DEGREE):
        if match.start() in percentiles:
            continue
        name = _name_of(match)
        if page.is_negated(*match.span()):
            if name != "attention_dp":
                claims.leave_unread(f"{page.take(*match.span())!r} is said not to be: other degrees stay open")
            continue
        number = read_number(match["of_n"] or match[f"{name}_n"] or match[f"{name}_m"])
        if number is None:
            continue
        words = match.group().strip()
        if name == "attention_dp" and page.is_foreign(match.start()):
            claims.leave_unread(f"{words!r} claims another speaker, and would need a relaxation; say it yourself")
            page.take(*match.span())
            continue
        page.take(*match.span())
        if any(start <= match.start() < end for start, end in claims.conditional):
            continue  # "TP1 would do if it fits": listed among conditions
        before = page.original[max(0, match.start() - _NEAR_FAILURE) : match.start()]
        behind = page.original[match.end() : match.end() + _NEAR_FAILURE]
        around = f"{_STOP.split(before)[-1]} {_STOP.split(behind)[0]}"
        is_failing = _FAILS.search(around) is not None
        if is_failing or _TRIED.search(page.text[max(0, match.start() - 80) : match.start()]):
            why = "fails as it is said" if is_failing else "was tried before"
            claims.leave_unread(f"{words!r} {why}, so it is no demand")
            continue
        if _is_of_another(page, match):
            claims.reading(f"{words!r} is said of the model that is replaced, and was not read")
            continue
        found.append(_Degree(name, claims.checked_degree(number, words), *match.span(), words))
    return found


def _is_of_another(page: Page, match: re.Match[str]) -> bool:
    """Whether the sentence of a degree names a model that is not planned, and none that is."""
    left, right = between(breaks_of(page.original, SENTENCE_END), *match.span(), len(page.original))
    sentence = page.text[left:right]
    return OTHER in sentence and MODEL not in sentence


def _name_of(match: re.Match[str]) -> str:
    if match["attention_dp_of"]:
        return "attention_dp"
    return next(name for name in _NAMES if match[f"{name}_after"] or match[f"{name}_before"])


def names_attention_degree(page: Page, start: int, end: int) -> bool:
    """Whether the words at this span are part of a numbered degree of attention DP ("attention DP16")."""
    return any(
        match.start() < end and start < match.end() and _name_of(match) == "attention_dp"
        for match in page.search(_DEGREE)
    )


def _by_phase(page: Page, degrees: Sequence[_Degree]) -> dict[str, list[_Degree]]:
    """The degrees of each phase and of both, with the demands of attention DP that have no number among them."""
    numbered = [(degree.start, degree.end) for degree in degrees]
    demands = [
        _Degree(_DEMAND, 0, start, end, page.original[start:end])
        for start, end in demanded_spans(page)
        if not any(start < right and left < end for left, right in numbered)
    ]
    grouped: dict[str, list[_Degree]] = {}
    for run in _runs(page, sorted([*degrees, *demands], key=lambda one: one.start)):
        grouped.setdefault(_phase_of(page, run), []).extend(run)
    both = grouped.get("both", [])
    if both and all(degree.name == _DEMAND for degree in both):
        grouped = {phase: [*both, *stated] for phase, stated in grouped.items() if phase != "both"}
    return grouped


def _with_attention_dp(page: Page, claims: Claims, stated: Sequence[_Degree]) -> list[_Degree]:
    """The degrees that were said, attention DP among them where it was demanded and the others settle it."""
    demand = next((degree for degree in stated if degree.name == _DEMAND), None)
    numbered = [degree for degree in stated if degree.name != _DEMAND]
    said = {degree.name: degree.value for degree in numbered}
    if demand is None or any(said[degree.name] != degree.value for degree in numbered):
        return numbered
    filled = fill(said)
    if filled is None:
        return numbered
    for degree in stated:
        page.take(degree.start, degree.end)
    words = ", ".join(dict.fromkeys(degree.words for degree in stated))
    tp = f" x TP {filled.tp}" if filled.tp is not None else ""
    claims.reading(f"{words!r} read as attention DP {filled.attention_dp}{tp}")
    kept = [
        replace(degree, value=filled.tp) if degree.name == "tp" and filled.tp is not None else degree
        for degree in numbered
        if not (filled.takes_dp and degree.name == "dp")
    ]
    meant = next((d for d in numbered if filled.takes_dp and d.name == "dp"), None)
    words = f"{demand.words}, {meant.words}" if meant is not None else demand.words
    return [replace(demand, name="attention_dp", value=filled.attention_dp, words=words), *kept]


def _runs(page: Page, degrees: list[_Degree]) -> list[list[_Degree]]:
    """Degrees that stand together ("TP8 PP2, EP 16") and so belong to the same phase."""
    runs: list[list[_Degree]] = []
    for degree in degrees:
        if runs and _is_glue(page, runs[-1][-1].end, degree.start):
            runs[-1].append(degree)
        else:
            runs.append([degree])
    return runs


def _phase_of(page: Page, run: list[_Degree]) -> str:
    """The phase that a run of degrees is stated for: "for prefill" after it, or "prefill:" before it; else both."""
    start, end = run[0].start, run[-1].end
    after = _PHASE_AFTER.match(page.original[end : end + 60])
    if after:
        named = {_phase_name(word) for word in (after["one"], after["other"]) if word}
        return "both" if len(named) == 2 else named.pop()
    line = page.original.rfind(BARRIER, 0, start) + 1
    phases = list(_PHASE.finditer(page.original, max(line, start - 80), start))
    if not phases or not _BETWEEN.fullmatch(page.original[phases[-1].end() : start]):
        return "both"
    if len(phases) > 1 and _AND.fullmatch(page.original[phases[-2].end() : phases[-1].start()]):
        return "both"
    return _phase_name(phases[-1].group())


def _is_glue(page: Page, start: int, end: int) -> bool:
    gap = page.original[start:end]
    return not _PHASE.search(gap) and BARRIER not in gap and len(gap) <= 16 and _JOIN.fullmatch(gap) is not None


def _phase_name(word: str) -> str:
    return "prefill" if re.fullmatch(_PREFILL, word, re.IGNORECASE) else "decode"


def _claim_degree(claims: Claims, phase: str, name: str, value: int, words: str) -> None:
    phases = ("prefill", "decode") if phase == "both" and name != "dp" else (phase,)
    for one in phases:
        claims.claim(f"strategy.{one}.{name}", value, words)


def _read_gpus(page: Page, claims: Claims) -> int | None:
    """The GPUs that a strategy is stated for ("Strategy: GPUs 512, TP 8"); prefill's and decode's add up.

    Raises:
        RequestError: two different numbers for one phase.
    """
    found: dict[str, int] = {}
    for line in page.search(_STRATEGY_LINE):
        for match in _GPUS.finditer(page.text, *line.span()):
            words = page.take(*match.span())
            named = {
                _phase_name(phase.group()) for phase in _PHASE.finditer(page.original, line.start(), match.start())
            }
            number = claims.checked_degree(float(match["n"] or match["m"]), words)
            claims.claim(f"gpus of {' and '.join(sorted(named)) or 'the strategy'}", number, words)
            found[" ".join(named)] = number
    for name in [name for name in claims.values if name.startswith("gpus of ")]:
        claims.drop(name)
    return sum(set(found.values())) if found else None


def _strategy(claims: Claims, gpus: int | None) -> tuple[StatedStrategy, str] | None:
    said = {name: value for name, value in claims.values.items() if name.startswith("strategy.")}
    if not said:
        return None
    degrees: dict[str, dict[str, int]] = {"prefill": {}, "decode": {}}
    dp: int | None = None
    for name, value in said.items():
        _, phase, degree = name.split(".")
        if phase == "both":
            dp = value
        else:
            degrees[phase][degree] = value
    # DP that both phases state alike is that of replicas that serve both; replicas of each are replicas of each.
    replicas = {stated.get("replicas") for stated in degrees.values()}
    as_dp = all(_AS_DP.search(claims.words[name]) for name in said if name.endswith(".replicas"))
    if dp is None and as_dp and len(replicas) == 1 and not claims.has("disaggregated"):
        dp, _ = degrees["prefill"].pop("replicas", None), degrees["decode"].pop("replicas", None)
    words = ", ".join(dict.fromkeys(claims.words[name] for name in said))
    strategy = StatedStrategy(
        gpus=gpus, dp=dp, prefill=StatedDegrees(**degrees["prefill"]), decode=StatedDegrees(**degrees["decode"])
    )
    return strategy, words
