"""Strategies that a request weighs against each other: "TP8 or TP4 x PP2?", "TP2/4/8", "one TP4 or two TP2".

None of them is a demand; the report gives the figures of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import BARRIER, Page
from ..patterns.quantities import read_number
from ..said import StatedDegrees, StatedStrategy
from .attention import ATTENTION_DP
from .degrees import AND, Degree, phase_of, runs_of

# Asks which of the strategies that several people argue for is right.
_WHO_IS_RIGHT = Gated(
    r"(?<![a-z])(?:who(?:'s|\sis)\sright|which\sof\s(?:them|the\stwo|these)|who\swins)(?![a-z])|看谁|谁(?:对|更[好优稳快]|的?吞吐)|哪[个种](?:更|方案)",
)
_MOST_COMPARED = 300  # characters
_WEIGHS = Gated(r"(?<![a-z])(?:or|vs|versus|better|than|rather)(?![a-z])|还是|或者?|更好")
_OR = Gated(r"(?<![a-z])(?:or|versus|vs)(?![a-z])(?!\s(?:less|more|fewer|so|better|lower|higher)(?![a-z]))|还是")
COMPARE = Gated(
    r"(?<![a-z])(?:compar\w{1,6}|versus|vs|or|against|better|between|which|whether)(?![a-z])|还是|比较|对比|哪个|哪种|或者?",
)
# A way to split that has no degree beside it, in a question that weighs it: "is tensor parallel better, or two copies?"
_COPIES = r"(?:replicas|copies|instances|processes|engines|servers|singles)(?![a-z])"
_ONE_EACH = (
    r"(?<![a-z])(?:one|a)\s(?:copy|replica|instance|process)\s(?:per\s(?:gpu|card)|(?:on|for|in)\seach(?:\s(?:gpu|card))?)(?![a-z])"
    r"|每卡各有副本"
)
_TECHNIQUE = Gated(
    rf"(?P<counted>(?<![\w.])(?P<n>two|three|four|five|six|eight|\d{{1,3}})\s(?:[a-z]{{4,12}}\s){{0,2}}{_COPIES}|"
    rf"(?P<m>[两二三四五六八]|(?<![\d.])\d{{1,2}})\s?[个份套]\s?(?:单卡|独立|一卡)?的?(?:副本|实例))|(?P<each>{_ONE_EACH})"
    r"|(?<![a-z])(?:tensor|pipeline|expert|data|tp|pp|ep)(?:[\s\-]parallel\w{0,4})?(?![a-z0-9])|(?<![a-z])(?:one|a)\s(?:copy|replica|instance)\s(?:per|(?:on|for|in)\seach)\s(?:node|server|box)(?![a-z])|(?<![a-z])(?:something|anything)\s(?:better|else|different)(?![a-z])|(?<![a-z])(?:another|a\sbetter)\s(?:way|layout|split)(?![a-z])|张量|流水线?|专家并行",
)
# Between two degrees, right before the second: they are alternatives.
_WEIGHED = Gated(
    r"^[^.;!?。\n]*(?:(?<![a-z])(?:or|vs\.?|versus|than|against)|还是|或者?|不如)(?:[开用跑上拆起放拉做部署分成]{1,3})?(?:\s(?:\d{1,3}|(?!less|more|fewer|lower|higher|less)[a-z]{1,10})){0,4}\s?$",
)
_WHICH_OF_BOTH = Gated(r"[\s,:.]{0,3}(?:(?:to\s)?which(?![a-z])|选?哪[个种一]|比,?\s?哪[个种]|谁(?!来)|怎么选|二选一)")
# Words without meaning beside a degree of a choice: "纯 TP8", "plain TP8".
_ONLY = Gated(r"(?<![a-z])(?:plain|pure|just|only|simple)(?![a-z])|纯|单独|只用|直接")
# Right before the first degree of a strategy: its number of replicas ("one TP4 or two TP2").
_COUNT_BEFORE = Gated(
    rf"(?<![A-Za-z0-9_.,])(?P<n>\d{{1,3}}|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,2}})\s?(?:[x×*个组套份路]\s?|(?:times|separate|independent|copies\sof|replicas\sof|instances\sof)\s)?$"
)
# DP attention without a number, beside a degree of EP ("DP attention + EP16").
_GROUPS = Gated(
    rf"(?:{ATTENTION_DP})(?=\s?(?:[+&,/]|with|and|plus)\s?(?:ep|expert))|"
    rf"(?<=[\d])\s?(?:[+&,/]|with|and|plus)\s?(?:{ATTENTION_DP})(?!\s?=?\s?\d)"
)
_GROUPS_ALONE = Gated(rf"(?:{ATTENTION_DP})(?:\s?(?:[+&/]|with|plus)\s?)?(?!\s?=?\s?\d)")
_LINK = re.compile(r"[\s+&,/]*(?:(?:with|and|plus)\s?)?$")
# "Plan A: TP16", "方案一: EP16": each label has a strategy of its own.
_LABEL = Gated(
    r"(?:^|(?<=[\n;。,.]))\s{0,4}(?:[-*•]\s)?(?:plan|option|variant|layout|candidate|proposal|setup|config(?:uration)?|方案|选项|配置)\s?(?:[a-f]|\d|[一二三四甲乙丙丁])\s?[:)=]"
)
_DEGREE_NEAR = Gated(r"(?<![a-z])(?:tp|pp|dp|ep|(?:tensor|pipeline|data|expert)[\s\-]parallel\w{0,4})\s?[=\-]?\s?\d")


class Compared(Struct, frozen=True):
    """Strategies that are weighed against each other, and their words; no `strategies` where one has no degree."""

    words: str
    strategies: tuple[StatedStrategy, ...] = ()


def find_compared(page: Page, degrees: Sequence[Degree]) -> Compared | None:
    """The strategies of a choice that stands in one place, or `None`."""
    if (labelled := _labelled(page, degrees)) is not None:
        return labelled
    if (sides := _two_sides(page, degrees)) is not None:
        start, end = sides[0][0].start, sides[1][-1].end
        return Compared(page.original[start:end].strip(), options(page, sides))
    is_one = len({(degree.name, degree.value) for degree in degrees}) == 1 or len(runs_of(page, degrees)) == 1
    if is_one and (asked := _weighed_technique(page, degrees)):
        return asked
    span = _span(page, degrees)
    if span is None:
        return None
    inside = [degree for degree in degrees if span[0] <= degree.start and degree.end <= span[1]]
    groups = _GROUPS.match(page.original, span[1])
    return Compared(
        page.original[span[0] : span[1] if groups is None else groups.end()].strip(), options(page, [inside])
    )


def _labelled(page: Page, degrees: Sequence[Degree]) -> Compared | None:
    """The strategies of several labels ("Plan A: TP16 / Plan B: EP16"), or `None`."""
    labels = list(_LABEL.finditer(page.original))
    ends = [*(label.start() for label in labels[1:]), len(page.original)]
    lines = [page.original[label.end() : end].partition("\n")[0] for label, end in zip(labels, ends, strict=False)]
    groups = [
        [degree for degree in degrees if label.end() <= degree.start < label.end() + len(line)]
        for label, line in zip(labels, lines, strict=False)
    ]
    strategies = options(page, groups) if all(groups) else ()
    words = page.original[labels[0].start() : groups[-1][-1].end].strip() if strategies else ""
    return Compared(words, strategies) if strategies else None


def _two_sides(page: Page, degrees: Sequence[Degree]) -> tuple[Sequence[Degree], Sequence[Degree]] | None:
    """The degrees on both sides of "and" where it stands between two things to choose from, or `None`.

    "TP4 and DP4, which holds up better?", "TP8xPP2 与 DP attention + EP16 哪个吞吐更高".
    """
    for place, (earlier, later) in enumerate(pairwise(degrees), start=1):
        gap = _ONLY.sub("", _GROUPS_ALONE.sub("", page.original[earlier.end : later.start]))
        if AND.fullmatch(gap) is None:
            continue
        before = next(run for run in runs_of(page, degrees[:place]) if earlier in run)
        behind = next(run for run in runs_of(page, degrees[place:]) if later in run)
        if _WHICH_OF_BOTH.match(page.original, behind[-1].end):
            return before, behind
    return None


def _span(page: Page, degrees: Sequence[Degree]) -> tuple[int, int] | None:
    """The span from the first degree of a choice to its last, or `None`."""
    for earlier, later in pairwise(degrees):
        gap = _LINK.sub("", _GROUPS.sub("", page.original[earlier.end : later.start])) + " "
        if len(gap) <= 60 and BARRIER not in gap and _WEIGHED.search(gap):
            return _around(page, degrees, earlier, later)
    if not degrees:
        return None
    start, end = degrees[0].start, degrees[-1].end
    runs = runs_of(page, degrees)
    if len(runs) > 1 and _WHO_IS_RIGHT.search(page.original) and end - start <= _MOST_COMPARED:
        return start, end
    first: dict[str, Degree] = {}
    is_rival = any(first.setdefault(degree.name, degree).value != degree.value for degree in degrees)
    if not is_rival or any(phase_of(page, run) != "both" for run in runs):
        return None
    around = page.original[max(0, start - 60) : start] + page.original[start:end] + page.original[end : end + 24]
    return (start, end) if end - start <= 200 and COMPARE.search(around) else None


def _around(page: Page, degrees: Sequence[Degree], earlier: Degree, later: Degree) -> tuple[int, int]:
    """The span of a choice between two degrees, with the degrees that stand together with each."""
    runs = runs_of(page, degrees)
    first, last = (next(run for run in runs if degree in run) for degree in (earlier, later))
    return first[0].start, last[-1].end


def options(page: Page, parts: Sequence[Sequence[Degree]]) -> tuple[StatedStrategy, ...]:
    """The different strategies that degrees name; none where they are of one phase only, or name a single one."""
    strategies = tuple(dict.fromkeys(strategy for part in parts for strategy in _named(page, part)))
    return strategies if len(strategies) > 1 else ()


def _named(page: Page, degrees: Sequence[Degree]) -> list[StatedStrategy]:
    named: list[dict[str, int]] = []
    for run in runs_of(page, degrees):
        if phase_of(page, run) != "both":
            return []
        repeats = len({degree.name for degree in run}) < len(run)
        for before, degree in zip((None, *run), run, strict=False):
            gap = "" if before is None else page.original[before.end : degree.start]
            is_other = _WEIGHED.search(gap) is not None or (repeats and ("," in gap or "/" in gap))
            if before is None or degree.name in named[-1] or is_other:
                named.append(_counted(page, degree))
            named[-1][degree.name] = degree.value
            width = named[-1].get("tp", 1) * named[-1].get("sp", 1)
            is_spanned = named[-1].get("dp") == degree.value // width
            if degree.name == "ep" and "attention_dp" not in named[-1] and not is_spanned and _has_groups(page, degree):
                named[-1]["attention_dp"] = max(1, degree.value // width)
    return [strategy_of(values) for values in named]


def _has_groups(page: Page, ep: Degree) -> bool:
    """Whether attention DP without a number stands right beside a degree of EP; it then fills what EP leaves of TP."""
    left, text = max(0, ep.start - 40), page.original
    before = text[left : ep.end]
    return _GROUPS.match(text, ep.end) is not None or any(
        match.end() <= ep.start - left + 1 and _LINK.fullmatch(text[left + match.end() : ep.start]) is not None
        for match in _GROUPS.finditer(before)
    )


def is_weighed(page: Page, start: int, end: int) -> bool:
    """Whether the words at this span are part of one of several strategies with degrees, in one sentence."""
    left, right = page.sentence(start, end)
    before, after = page.original[left:start], page.original[end:right]
    return bool(_OR.search(before) and _DEGREE_NEAR.search(before)) or bool(
        _OR.search(after) and _DEGREE_NEAR.search(after)
    )


def _counted(page: Page, first: Degree) -> dict[str, int]:
    """The replicas that are counted before a degree, as `dp`; empty without a count."""
    left = max(0, first.start - 30)
    count = None if first.name == "dp" else _COUNT_BEFORE.search(page.original[left : first.start])
    number = None if count is None else read_number(count["n"])
    if count is None or number is None:
        return {}
    page.take(left + count.start(), left + count.end())
    return {"dp": int(number)}


def strategy_of(degrees: Mapping[str, int]) -> StatedStrategy:
    """The strategy of degrees by their names, in both phases; a `dp` that EP spans is attention's, as vLLM has it."""
    dp, width = degrees.get("dp"), degrees.get("tp", 1) * degrees.get("sp", 1)
    of_phase = {name: value for name, value in degrees.items() if name != "dp"}
    if dp is not None and dp > 1 and degrees.get("ep") == dp * width and "attention_dp" not in degrees:
        of_phase["attention_dp"], dp = dp, None
    return StatedStrategy(dp=dp, prefill=StatedDegrees(**of_phase), decode=StatedDegrees(**of_phase))


def _weighed_technique(page: Page, degrees: Sequence[Degree]) -> Compared | None:
    """The question that weighs a strategy against a way to split without a degree, or `None`."""
    left, right = page.sentence(degrees[0].start, degrees[-1].end)
    around = page.text[left : degrees[0].start] + page.text[degrees[-1].end : right]
    techniques = [match for match in page.search(_TECHNIQUE) if left <= match.start() and match.end() <= right]
    is_weighed = techniques and _WEIGHS.search(around)
    if page.original[right : right + 1] != "?" or not (is_weighed or _OR.search(around)):
        return None
    for match in techniques:
        page.take(*match.span("n" if match["n"] else 0))  # an engine may be named in what is counted
    copies = [_copies(match) for match in techniques]
    strategies = dict.fromkeys((*_named(page, degrees), *(strategy for strategy in copies if strategy is not None)))
    is_whole = len(strategies) > 1 and None not in copies
    if is_whole:
        spans = [match.span() for match in techniques] + [(degree.start, degree.end) for degree in degrees]
        left, right = min(start for start, _ in spans), max(end for _, end in spans)
    return Compared(page.original[left:right].strip(), tuple(strategies) if is_whole else ())


def _copies(technique: re.Match[str]) -> StatedStrategy | None:
    """Copies of the model on a GPU each; `None` for a way to split that leaves its degree open."""
    if technique["counted"]:
        return strategy_of({"tp": 1, "dp": int(read_number(technique["n"] or technique["m"]) or 1)})
    return strategy_of({"tp": 1}) if technique["each"] else None
