"""Parallel degrees as they stand in a text: their names, their numbers, and which of them stand together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..conflicts.claims import Claims
from ..constraints.primitives import ONE_LEFT_OUT
from ..patterns.gated import Gated
from ..patterns.page import BARRIER, MODEL, OTHER, Page
from ..patterns.quantities import read_number
from .attention import ATTENTION_DP, OF_ATTENTION

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
_N = r"(?:-?\d{1,9}(?:\.\d{1,4})?(?![\d]))"
_NO_DEGREE = r"[A-Za-z0-9_]|\s?[=:]\s?\d|\sgroups?(?![a-z])"  # behind a name that a number precedes
_OF_WORD = rf"(?:(?<=\sof\s)|(?<=\sdegree\s)|(?<=\swith\s)|(?<=\sover\s)){_WORD}(?![A-Za-z])"
_MUST = (
    r"must\sbe|has\sto\sbe|needs\sto\sbe|should\sbe|shall\sbe|exactly|precisely|fixed|pinned|"
    r"必须|固定|恰好|正好|就(?:定|用|取)?|定"
)
_LINK = rf"(?:\s?(?:=|:|->|of\sdegree|of|is|to|at|set\sto|{_MUST}|为|是|设为|取|用|给|开|选)){{0,3}}[\s\-_]?"
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
PHASE_WORD = Gated(rf"(?P<prefill>{_PREFILL})|(?P<decode>{_DECODE})")
_PHASE_AFTER = Gated(
    rf"^[\s,]*(?:(?:per|in\seach)\sstage\s)?(?:for|in|during|on|at|用于|给|做)\s?(?:the\s|both\s)?(?P<one>{_PREFILL}|{_DECODE})"
    rf"(?:\s?(?:and|&|/|和|与)\s?(?:the\s)?(?P<other>{_PREFILL}|{_DECODE}))?",
)
# Between a phase and its degrees there may stand only other degrees and these words.
_BETWEEN = Gated(
    r"(?:\s|[:=,x*/&+\-({\[]|\b(?:uses?|using|switch(?:es)?|with|is|at|on|runs?|running|phase|stage|and|as|gets?|wants?|side|instances?|"
    r"nodes?|workers?|pools?|should|must|shall|will|needs?|stays?|keeps?|takes?|exactly|fixed|set|be|the|has|have|of|to|its|we|they|i)\b|"
    r"阶段|那边|这边|用|采用|使用|为|是|就|定|固定|必须|要|得|和|节点|实例|副本|侧|端|取|设|应|:)*",
)
# A degree in whose clause something fails is no demand: "because of a kernel bug at TP8".
_STOP = re.compile(r"[.;\n]")
_NEAR_FAILURE = 60  # characters
_FAILS = Gated(
    r"(?<![a-z])(?:bugs?|crash(?:es|ed)?|hangs?|broken|deadlocks?|fails?|segfaults?|ooms?|won't\s(?:fly|work|do|fit|run))(?![a-z])|崩|挂死|报错|有问题"
)
# The same right behind a degree and those beside it, or right before it: "TP 3 doesn't divide the heads".
_NOT = r"(?:(?:does|do|will|would|can|is|are)(?:n't|\snot)|won't|can't|cannot|never)"
_CANNOT = Gated(
    rf"(?:[\s,x*/&+]*[tpdes]p\s?=?\s?\d{{1,4}})*\s?,?\s?(?:{_NOT}\s(?:be\s)?(?:even(?:ly)?\s)?(?:divid|split|fit|go(?:es)?\s(?:in|with)|work|possible|feasible|an\soption|legal|valid|happening|start|load)|"
    r"(?:is|are)\s(?:impossible|infeasible|out\sof|no\s(?:option|good|go)|illegal|invalid)|leaves\sa\sremainder|(?:也|就|是)?(?:不(?:能)?(?:整除|可行|成立|合法)|除不尽|分不了|切不了|行不通|没法用))"
)
_CANNOT_BEFORE = Gated(
    rf"(?:{_NOT}\s(?:be\s)?(?:even(?:ly)?\s)?(?:divid|split)[a-z]*|not\sdivisible)\s(?:(?:evenly|by|into|over|for|with|at)\s)+$|(?:不能被|除不尽|不能整除)\s?$"
)
_DROPPED = Gated(
    r"\s?(?:(?:was|is|were|are)\s)?(?:dropped|discarded|abandoned|excluded|rejected|void|skipped|ruled\sout)(?![a-z])|\s?(?:弃用|放弃|淘汰|作废|已?否决?)"
)
# Words between degrees of one strategy.
_JOIN = Gated(r"[\s,x*/&+\-]*(?:and|of|(?:combined\s)?with|和|加)?\s?")
# Before a degree, in its clause: what was run once, which is no demand ("in September we tried TP16").
_TRIED = Gated(
    r"(?<![a-z])(?:(?:we|they|i|he|she|somebody|someone|colleagues?|team)\s(?:have\s|had\s|'ve\s)?"
    r"(?:already\s|once\s|also\s|first\s|recently\s){0,2}(?:tried|tested|benchmarked|measured|experimented\swith))(?![a-z])"
    r"[^,;.!?\n]{0,40}$|(?:试过|测过|测试过|跑过)[^,;。\n]{0,16}$",
)
# Behind a degree: more values to choose from. A number of things is none of them.
_FURTHER = Gated(
    r"(?:(?:\s?/\s?\d{1,4}){1,5}|(?:\s?,\s?\d{1,4}){0,4}\s?,?\s?(?:(?<![a-z])or|还是|或者?)\s?\d{1,4})"
    r"(?![\d.,]\d|\s?(?:[x×*%]|gpus?|cards?|nodes?|machines?|boxes|servers?|users?|requests?|replicas?|copies|instances?|processes|engines?|singles|workers?|pods?|vms?|hosts?|streams?|people|concurrent|tokens?|way|[a-z]{1,2}\d|h\d|[张卡台个路块片机节])|\s(?:[a-z]{1,12}\s){0,2}(?:tp|pp|dp|ep)\s?\d)(?!\w)"
)
AND = Gated(r"\s?(?:and|from|&|/|和|与|跟)\s?(?:the\s)?")


class Degree(Struct, frozen=True):
    """One degree with its place; `name` is a field of `StatedDegrees`, or `dp`."""

    name: str
    value: int
    start: int
    end: int
    words: str


def find_degrees(page: Page, claims: Claims) -> list[Degree]:
    """Take the degrees off the page that are meant for the plan: no percentile, none negated or of another model."""
    percentiles = {match.start() for match in _PERCENTILE.finditer(page.text)}
    degrees: list[Degree] = []
    for match in page.search(_DEGREE):
        if match.start() in percentiles:
            continue
        name = _name_of(match)
        if page.is_negated(*match.span()):
            if name != "attention_dp":
                claims.leave_unread(f"{page.take(*match.span())!r} is said not to be; {ONE_LEFT_OUT}")
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
        # In a row of cells the next one may say what became of it; others speak of other runs.
        cell, _, following = _STOP.split(behind)[0].partition("|")
        verdict = "" if _DEGREE.search(following.partition("|")[0]) else following.partition("|")[0]
        around = " ".join((_STOP.split(before)[-1].rpartition("|")[2], cell, verdict))
        is_failing = any(
            (_FAILS.search(around), _DROPPED.match(verdict), _CANNOT.match(behind), _CANNOT_BEFORE.search(before))
        )
        if is_failing or _TRIED.search(page.text[max(0, match.start() - 80) : match.start()]):
            why = "fails as it is said" if is_failing else "was tried before"
            claims.leave_unread(f"{words!r} {why}, so it is no demand")
            continue
        if _is_of_another(page, match):
            claims.reading(f"{words!r} is said of the model that is replaced, and was not read")
            continue
        degrees.append(Degree(name, claims.checked_degree(number, words), *match.span(), words))
        degrees += _further_values(page, claims, degrees[-1])
    return degrees


def _further_values(page: Page, claims: Claims, first: Degree) -> Iterator[Degree]:
    """The other values of a degree that is left open between several: "TP2/4/8", "TP of 2, 4 or 8"."""
    match = _FURTHER.match(page.text, first.end)
    if match is None or not first.words[-1:].isdigit():
        return
    for value in re.finditer(r"\d{1,4}", match.group()):
        start, end = match.start() + value.start(), match.start() + value.end()
        yield Degree(first.name, claims.checked_degree(float(value.group()), first.words), start, end, value.group())
    page.take(*match.span())


def _is_of_another(page: Page, match: re.Match[str]) -> bool:
    """Whether the sentence of a degree names a model that is not planned, and none that is."""
    left, right = page.sentence(*match.span())
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


def runs_of(page: Page, degrees: Sequence[Degree]) -> list[list[Degree]]:
    """Degrees that stand together ("TP8 PP2, EP 16") and so belong to the same phase."""
    runs: list[list[Degree]] = []
    for degree in degrees:
        if runs and _is_glue(page, runs[-1][-1].end, degree.start):
            runs[-1].append(degree)
        else:
            runs.append([degree])
    return runs


def phase_of(page: Page, run: list[Degree]) -> str:
    """The phase that a run of degrees is stated for: "for prefill" after it, or "prefill:" before it; else both."""
    start, end = run[0].start, run[-1].end
    after = _PHASE_AFTER.match(page.original[end : end + 60])
    if after:
        named = {phase_name(word) for word in (after["one"], after["other"]) if word}
        return "both" if len(named) == 2 else named.pop()
    line = page.original.rfind(BARRIER, 0, start) + 1
    phases = list(PHASE_WORD.finditer(page.original, max(line, start - 80), start))
    if not phases or not _BETWEEN.fullmatch(page.original[phases[-1].end() : start]):
        return "both"
    if len(phases) > 1 and AND.fullmatch(page.original[phases[-2].end() : phases[-1].start()]):
        return "both"
    return phase_name(phases[-1].group())


def _is_glue(page: Page, start: int, end: int) -> bool:
    gap = page.original[start:end]
    return not PHASE_WORD.search(gap) and BARRIER not in gap and len(gap) <= 16 and _JOIN.fullmatch(gap) is not None


def phase_name(word: str) -> str:
    """The phase that a word of `PHASE_WORD` names."""
    return "prefill" if re.fullmatch(_PREFILL, word, re.IGNORECASE) else "decode"
