"""Several names where one is wanted: which of them is meant, or that there is a choice.

People name what they leave behind, correct themselves, and offer a choice; the words between two names and behind them
tell which. Where no words do, the names contradict each other, and the reader refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import ROLE as LOAD
from ..patterns.gated import Gated
from ..patterns.number_words import ENGLISH_NUMBER
from ..patterns.page import Page
from ..patterns.quantities import Quantity, find_quantities
from .condition_outcome import Named, Settled, came_out, is_else, take_conditions
from .statement_rank import is_given_up, standing
from .turns import latest

# Behind a name: no other one is meant.
_ONLY = Gated(r"^s?\s?(?:only|alone)(?![a-z])|^s?\s?(?:的?而已)")
# Between two statements on one subject: the later replaces the earlier.
CORRECTED = Gated(
    r"(?<![a-z])(?:scratch\sthat|(?:no,?\s)?hang\son|hold\son|(?:we|they|i)\sswapped\s(?:that|it|those)|wait|correct(?:ion|ed)|actually|instead|make\s(?:it|that|this)|chang(?:ed?|ing)(?:\s\w+){0,2}\sto|switch(?:ed)?\sto|"
    r"(?:[a-z]+\s){0,2}ha(?:s|ve)\ssince\s[a-z]+(?:\s(?:it|that|them|to|at|down|up))*|(?:(?:can|may|could)\s(?:now\s)?be\s)?(?:relax|loosen|tighten|lower|cut|reduc|bump|rais|trimm?)[a-z]{0,3}\s(?:(?:it|down|up)\s)?to|upgrad(?:ed?|ing)\sto|mov(?:e[ds]?|ing)\s(?:on\s)?to|replac(?:ed|ing)\s(?:it\s)?(?:by|with)|now\s(?:it'?s|it\sis|we|on|with|using)|"
    r"nope|my\sbad|(?:in\sfact|in\sreality),?\s(?:it|they|we)|(?:(?<=[.,;:!(\-]\s)wrong|(?:that's|that\swas|this\sis)\swrong)(?=\s?[,.:;!\-])|no\s?[,:;.\-]|no,?\s(?:it|they|that|those|we)\s(?:is|are|was|were)?(?:n't|\snot)|my\smistake|(?:the\s)?actual|turns?\sout|ended\sup|sorry|oops|typo|i\smean(?:t)?|should\sbe|got\supgraded|update:|edit:|too\s(?:big|large|small|slow|expensive|old),\s(?:so\s)?(?:take|use|let's|we'll|go\swith))(?![a-z])|"
    r"[改换][成为用到]|(?:放宽|收紧|压缩|[降调减缩])[到至成为]|升级[成到为]|迁移?[到至]|实际(?:上|查了|核对|看了|测了|确认)?[是为]|后来|最后|最终|变成|现在[是用]|只批|不对|应该是|应为|更正|其实是|[写说打记搞弄]错|口误|拍板|定了|定的是|模型换了|换了,|太[大小慢贵老高低]了?,\s?(?:还是|改|就|先)?(?:用|换|上)",
)
# Between two names, or about them: any of them will do.
_OR = Gated(r"(?<![a-z])or(?![a-z])|^s?\s?/\s?(?:\d{1,4}\s?[x*]?\s?)?$|或者?|还是|抑或")
_JOINED = Gated(r"^[\s,、&]{0,4}(?:and|和|与|及)?[\s,]{0,2}$")
_EITHER = Gated(
    r"(?<![a-z])(?:either|whichever|between\sthe\stwo|recommendation\sbetween|two\s(?:quotes|offers)|no\s(?:preference|difference)|(?:doesn't|don't)\s(?:matter|mind|care)|indifferent|choose|pick|choice|candidates?|options?|(?:which|what)\s(?:one|of|gpu|card|is)|any\sof|one\sof|compar(?:e|ing|ison)(?!\s(?:to|with|against)(?![a-z]))|compar(?:es?|ing)\s[^.;\n]{1,60}\s(?:against|with|to)|vs|versus)(?![a-z])|"
    r"任选|任一|对比|比一?比|比较一?下|哪个|哪种|哪款|二选一|都可以|都行|均可|择优|选一",
)
# For names on lines of their own, as in a list of offers: only one of them can be had.
_ONE_KIND = Gated(
    r"(?<![a-z])(?:(?:only|just)\sone\s(?:type|kind|model|sort|of\sthem)|one\s(?:type|kind|model)\sonly|no(?:t|\sto)?\smix(?:ing|ed)?|don't\smix|which\s(?:type|one|server|card|gpu|box|offer|quote|of)|"
    r"(?:may|can|could)\s(?:buy|order|choose|pick|rent|get)|options|candidates|offers|quotes)(?![a-z])|只能?(?:选|买|用)一种|不(?:能|要|可以?)?混[用搭]|选型|候选|备选|哪[种款个]",
)
# The same in words beside the names; farther away they may speak of something else.
_LEFT_OPEN = Gated(
    r"(?<![a-z])(?:(?:recommend|suggest|advise|tell\sus|propose)\s(?:me\s|us\s)?(?:one|either|which|what)|you\s(?:can\s|may\s|should\s|please\s)?(?:recommend|choose|pick|select|suggest|advise|propose|decide|tell\sus)|"
    r"your\s(?:call|decision|recommendation)|undecided|(?:not|haven't|hasn't)\s(?:yet\s)?decided|(?:can't|cannot|couldn't)\sdecide|(?:which|what)\s(?:one\s)?(?:would|should|do)\s(?:you|we)\s(?:recommend|suggest|advise|propose|take|use|choose|pick|go\swith)|"
    r"(?:both|all)(?:\sof\sthem)?\s(?:are|would\sbe)\s(?:fine|ok(?:ay)?|good|acceptable|possible)|(?:are|is|would\sbe)\s(?:both|all|equally)\s(?:fine|ok(?:ay)?|good|acceptable|possible|new)|"
    r"open\sto|know\sboth|no\sexperience)(?![a-z])|推荐一?[个款种下]|你们?来?(?:推荐|定|选|决定|建议)|帮[忙我们]{0,3}选|选型|没想好|没定|(?:都|均)(?:没|不)",
)
# Right before a name: it cannot be had.
_NOT_HAD = Gated(
    r"(?<![a-z])(?:couldn't|could\snot|can't|cannot|didn't|did\snot|won't|unable\sto)\s(?:get|buy|order|find|secure|obtain)\s(?:(?:the|any|our|more|enough)\s|\d{1,3}\s?x?\s?){0,2}$|(?:买|订|租|搞|拿)不到\s?$",
)
# How far two names of one choice stand apart: each may have a price or a count of its own.
_MOST_BETWEEN = 80
# Between a figure and its replacement: what the figure counts, the correction, and words of no weight.
_TAKEN_BACK = Gated(
    rf"(?P<noun>[^,.;:(\n\-]{{0,20}}?)(?P<apart>\W*)(?:(?:oh|no|hm+|and|but|哦|啊)\W+)*(?:(?:(?<=[,;.]\s)|(?<=[,;。]))(?=[^\n]{{0,50}}(?:make\s(?:it|that)|放宽|收紧))[^\d.\n]{{0,40}}?)?(?:{CORRECTED.pattern})"
    r"(?:[^\x00-\x7f]|[\s,.:;~'\-]|(?:it|is|that|to|be|make|meant|i|we|say|only|more|like|rather|the|right|number|figure|"
    r"value|just|please|sorry|wait|no|mean|actually|correction)(?![a-z])){0,12}",
)
_N = (
    rf"(?<![A-Za-z0-9_.])(?:\d(?:[\d,]{{0,12}}\d)?(?:\.\d{{1,3}})?(?:\s?[kmb万千](?![a-z]))?|{ENGLISH_NUMBER}(?![a-z]))"
)
_UNIT = r"(?:\s?[a-z]{1,10}|\s?[\u4e00-\u9fff]{1,3})?"
# Between a wish and what was decided: "最好两三个副本——定了,就2个副本".
_DECIDED = Gated(r"拍板|定了|定的是|最终|最后")
_WISHED = re.compile(r"(?:最好|希望|想要?)(?:是|有)?\s?$")
# What somebody wrote before, which a correction behind it replaces.
WROTE = (
    r"(?<![a-z])(?:(?:i|we)(?:\s(?:had|first))?|(?:my|our|the)\s(?:first|last|previous|earlier|old)\s(?:e-?mail|message|ticket|request|note|form|draft))"
    r"\s(?:wrote|said|stated|gave|put|had\s(?:down\s)?(?=\d))(?![a-z])"
)
# "not 200 but 120", "不是 200, 是 120"; "1,000 and not 2,000"; "从 1k 改成 600"; "instead of six nodes we get four";
# "four nodes, no, we gave one back so three".
_CUT = (
    r"(?:(?!ttft|tpot|latency|users?|prompts?|inputs?|outputs?|answers?|requests?)[a-z']{1,14}\s){0,5}"
    r"(?:to|is|are|now|only|have|has|get|got|just|be|need|it's|they're|at)\s|[\u4e00-\u9fff]{0,8}(?:到|成|为|是|只有|剩|给)\s?"
)
_CHANGED = Gated(
    rf"(?:(?<![a-z])(?:not|(?:is|are|was|were)n't)|不是|并非)\s?(?P<a>{_N})(?P<of>{_UNIT}),?\s?(?:but|(?:it|that)(?:'s|\sis)|而是|是|应[该为]是?)\s?(?P<b>{_N})(?P<plain>(?=\s?(?:[,;:!)\n。]|\.(?!\d)|$)))?|"
    rf"(?P<d>{_N})(?P<tail>[^.,;\n\d]{{0,16}}?)(?:,\s?|\s|(?=不是))(?:and\s)?(?:(?:not|(?P<since>no\slonger)|instead\sof|rather\sthan)\s(?:the\s)?|不是\s?)(?P<c>{_N}){_UNIT}"
    r"(?=\s?(?:[,;!)\n。]|\.(?!\d)|$))|"
    rf"(?P<from>(?:chang|cut|rais|ris|drop|bump|mov|lower|reduc|increas|(?:go(?:es)?|went)\s(?:up|down))[a-z]*\sfrom|(?<=[a-z]\s)from(?=\s[\d.]{{1,6}}\S{{0,3}}\s(?:up|down)\sto)|从|由)\s?(?P<e>{_N})(?:{_UNIT}|\s?[台张块]\s?(?P<card>[A-Z]{{1,2}}\d{{2,4}}[A-Z]?))\s?"
    rf"(?:(?:(?:up|down)\s)?to|改[成为到]|调整?[到为成]|变[成为]|[升降][到为至]|[砍减缩]少?[到至成为]|放宽[到至]|收紧[到至])\s?(?P<f>{_N})|"
    rf"instead\sof\s(?:the\s)?(?P<g>{_N})\s(?P<noun>[^,.;:\n]{{2,30}}?),?\s(?P<mid>(?:we|there|i|they|you|it)\s[^\d.,;\n]{{0,30}}?)"
    rf"(?P<h>{_N})(?P<bare>(?=\s?(?:[,;(.\n]|$)))?|"
    rf"(?P<k>{_N})(?P<unit>\s[a-z]{{2,12}}),?\s(?:no|wait|actually|well|sorry)(?![a-z])[^.;\n\d]{{2,50}}?(?<![a-z])(?:so|leaves?|leaving|makes|remaining)\s"
    rf"(?:(?:it's|we|us|have|with|only|just|there|are|now|that's|at|it)\s){{0,3}}(?P<l>{_N})(?=\s?(?:[,;!)\n]|\.(?!\d)|$))|"
    rf"(?:(?<![a-z])(?:not|(?:is|are|was|were)n't)\s|不是\s?|并非\s?)(?P<m>{_N})(?P<counted>\s?[^.,;:()\n]{{1,24}}?)[,;:.]\s?(?P<how>(?:{_CUT})?)(?P<n>{_N})"
    r"(?:(?P<alone>(?=\s?(?:[,;:()!\n。]|\.(?!\d)|$)))|(?=(?P=counted)(?![a-z])))|"
    rf"(?P<o>{_N})(?P<wrong>\s?[^\d.,;:()\n]{{1,20}}?)(?:\s(?:is|are|was|were)\s(?:wrong|outdated|too\s(?:many|few)|an?\s(?:typo|mistake|error))|是?写?错了|是错的)[,;:.]\s?"
    rf"(?P<then>(?:{_CUT})?)(?P<p>{_N})(?P<bare2>(?=\s?(?:[,;:()!\n。]|\.(?!\d)|$)))",
)
# Groups with the noun of the earlier figure, by the group that matches where the later one has no noun of its own.
_OF = {"counted": "alone", "wrong": "bare2", "of": "plain"}
# Groups of words before and behind the later figure.
_BEFORE_NEW, _BEHIND_NEW = ("mid", "how", "then"), ("tail", "unit")
_NO_MORE = re.compile(r"\s?(?:[,;!)\n。]|\.(?!\d)|$|吧|就[够行]|为准)")


def with_corrected_figures(text: str) -> tuple[str, list[str]]:
    """A normalised text with a figure that is taken back replaced by its correction ("8k, no sorry, 6k"), and notes.

    A correction with a noun of its own is a statement by itself, which `Claims` compares with the earlier one.
    """
    notes: list[str] = []

    def changed(match: re.Match[str]) -> str:
        old, new = _old_and_new(match)
        notes.append(f"{new!r} takes the place of {old!r}, which stands beside it")
        noun = f" {match['noun']}" if match["bare"] is not None else ""
        noun = next((match[of] for of, alone in _OF.items() if match[alone] is not None), noun)
        now = "now " if match["since"] or match["from"] else ""  # so that it counts more than figures elsewhere
        sides = _BEFORE_NEW, _BEHIND_NEW
        before, behind = (next(filter(None, map(match.group, names)), "") for names in sides)
        return f"{match['card'] or ''} {before}{now}{new}{behind}{noun}".lstrip()

    text = _CHANGED.sub(changed, text)
    standing: dict[int, Quantity] = {}
    for old, later in reversed(list(pairwise(find_quantities(text)))):
        new = standing.get(later.start, later)
        gap = _TAKEN_BACK.fullmatch(text[old.end : new.start]) if new.start - old.end <= _MOST_BETWEEN else None
        in_pair = text[old.start - 1 : old.start] == "/" or new.upper is not None
        again = len(gap["noun"]) if gap and gap["noun"].strip() and text.startswith(gap["noun"], new.end) else 0
        ends = _NO_MORE.match(text, new.end + again) or _NO_MORE.match(text, new.end)
        if gap is None or in_pair or not counts_the_same(old, new) or ends is None:
            continue
        restored = re.search(rf"(?<![\d.]){re.escape(old.words)}\s(?:is|was)\s(?:right|correct)", text[new.end :])
        roles = (role.search(text, old.end + gap.end("noun"), new.start) for role in (LATENCY, LOAD))
        if restored or any(roles):
            continue
        words = new.words if new.unit == old.unit else f"{new.words} {old.spelled}"
        rest = text[new.end + again :].removeprefix(")") if "(" in gap["apart"] else text[new.end + again :]
        wish = _WISHED.search(text[: old.start]) if _DECIDED.search(text, old.end, new.start) else None
        start = old.start if wish is None else wish.start()
        exactly = "" if wish is None else "固定"
        text = f"{text[:start]}{exactly}{words}{gap['noun']}{rest}"
        standing[old.start] = replace(old, words=words, start=start + len(exactly), end=start + len(exactly + words))
        notes.append(f"{new.words!r} takes the place of {old.words!r}, which stands before it")
    return text, notes


def with_later_figures(older: str, newer: str) -> tuple[str, str, tuple[str, ...]]:
    """The older text with the figures that the newer corrects without a noun, what remains of the newer, and notes."""
    notes: list[str] = []

    def changed(match: re.Match[str]) -> str:
        nonlocal older
        old, new = _old_and_new(match)
        sentence = newer[max(newer.rfind(end, 0, match.start()) for end in ".;\n。") + 1 : match.end()]
        places = re.compile(rf"(?<![\d.,]){re.escape(old)}(?![\w.,]?\d)", re.IGNORECASE)
        is_named = bool((match["tail"] or "").strip())  # "2 nodes, not 4"
        is_explained = old[-1:] not in "bB" and (is_named or any(role.search(sentence) for role in (LOAD, LATENCY)))
        if is_explained or len(places.findall(older)) != 1:
            return match.group()
        older = places.sub(new, older)
        notes.append(f"{new!r} takes the place of {old!r}, which was said before")
        return match["tail"] or ""

    newer = _CHANGED.sub(changed, newer)
    return older, newer, tuple(notes)


def _old_and_new(match: re.Match[str]) -> tuple[str, str]:
    """The two figures of a match of `_CHANGED`."""
    old, new = (next(filter(None, map(match.group, names)), "") for names in ("acegkmo", "bdfhlnp"))
    return old, new


def _is_in_thousands(words: str) -> bool:
    return words[:1].isdigit() and words[-1:].isalpha()


def counts_the_same(old: Quantity, new: Quantity) -> bool:
    """Whether one of two figures may stand in the place of the other; a bare one takes the unit of the earlier."""
    if old.unit == new.unit == "count":
        # "8k, no, 500" are hardly two of a kind; "4, no, six" are.
        return _is_in_thousands(old.words) == _is_in_thousands(new.words)
    return new.unit == old.unit or (new.unit == "count" and old.words[0].isdigit() and old.words.endswith(old.spelled))


def settle(page: Page, names: Sequence[Named]) -> Settled:
    """Which of the `names`, in their order on the page, are meant; none where there are no names."""
    settled = _meant(page.original, names) if names else Settled("one", ())
    if settled.kind == "one":
        take_conditions(page, names)
    return settled


def _meant(text: str, names: Sequence[Named]) -> Settled:
    only = {name.value for name in names if _ONLY.match(text[name.end : name.end + 12])}
    given_up = {
        name.value
        for name in names
        if is_given_up(text, name.end) or _NOT_HAD.search(text[max(0, name.start - 40) : name.start])
    }
    short = [text[name.start : name.end].lower() for name in names if name.value in given_up]
    given_up |= {
        name.value for name in names if any(text[name.start : name.end].lower().startswith(f"{s} ") for s in short)
    }
    dropped = [name for name in names if name.value in given_up or (len(only) == 1 and name.value not in only)]
    remaining = [name for name in names if name not in dropped]
    if not remaining:
        remaining, dropped = list(names), []
    settled = _settled(text, remaining, dropped)
    if settled.kind == "contradict":
        ranks = {name: standing(text, name.start, name.end, is_name=True) for name in remaining}
        for before, name in pairwise(remaining):
            if is_else(text, before, name):
                ranks[before] = ranks[name] = min(ranks[before], ranks[name])
        # The names of least standing go first: what is left may be a choice.
        for most in sorted(set(ranks.values()), reverse=True)[1:]:
            holding = [name for name in remaining if ranks[name] <= most]
            settled = _settled(text, holding, [name for name in names if name not in holding])
            if settled.kind != "contradict":
                break
        if settled.kind == "contradict":
            settled = _of_last_turn(text, remaining, names) or settled
    return came_out(text, settled) if settled.kind == "choice" else settled


def _of_last_turn(text: str, remaining: Sequence[Named], names: Sequence[Named]) -> Settled | None:
    """What the last turn names, where only one name is new in it: "the A100 are gone, take H20"."""
    last = latest(text, [(name.start, name.end) for name in remaining])
    before = {name.value for name, is_last in zip(remaining, last, strict=True) if not is_last}
    now = [name for name, is_last in zip(remaining, last, strict=True) if is_last]
    if len({name.value for name in now} - before) > 1:
        return None
    return _settled(text, now[-1:], [name for name in names if name is not now[-1]])


def _corrects(text: str, before: Named, name: Named) -> bool:
    """Whether words between two names replace the earlier by the later, not something else."""
    match = CORRECTED.search(text, before.end, name.start)
    if match is None:
        return False
    text = text[: match.start()] + " " * len(match.group()) + text[match.end() :]  # "wrong" is about the earlier
    later, earlier = (standing(text, side.start, side.end, is_name=True) for side in (name, before))
    return later <= max(earlier, 0)


def _settled(text: str, names: Sequence[Named], dropped: Sequence[Named]) -> Settled:
    meant = [names[0]]
    superseded = list(dropped)
    is_choice = False
    listed = _listed_with_or(text, names)
    for place, (before, name) in enumerate(pairwise(names)):
        if all(name.value == other.value for other in meant):
            meant.append(name)
            continue
        between = text[before.end : name.start]
        if is_else(text, before, name):
            meant.append(name)
            is_choice = True
        elif _corrects(text, before, name):
            superseded += meant
            meant, is_choice = [name], False
        elif any(name.value == other.value for other in meant):
            continue
        elif ("\n" in between and len(between) <= 2 * _MOST_BETWEEN and _ONE_KIND.search(text)) or (
            len(between) <= _MOST_BETWEEN
            and (
                _OR.search(between)
                or listed[place]
                or (
                    (_EITHER.search(text) or is_left_open(text, before.start, name.end))
                    and (_JOINED.match(between) or "\n" not in between)
                    and len({standing(text, side.start, side.end, is_name=True) for side in (before, name)}) == 1
                )
            )
        ):
            meant.append(name)
            is_choice = True
        else:
            return Settled("contradict", (*meant, name), tuple(superseded))
    return Settled("choice" if is_choice else "one", tuple(meant), tuple(superseded))


def is_left_open(text: str, start: int, end: int) -> bool:
    """Whether words near the names at `start`..`end` leave the choice among them to the planner."""
    return _LEFT_OPEN.search(text, max(0, start - _MOST_BETWEEN), end + _MOST_BETWEEN) is not None


def _listed_with_or(text: str, names: Sequence[Named]) -> list[bool]:
    """For each pair of neighbouring names, whether it is in a list that ends with "or" ("L4, A10G or L40S")."""
    listed: list[bool] = []
    goes_on = False
    for before, name in reversed(list(pairwise(names))):
        between = text[before.end : name.start]
        is_or = len(between) <= _MOST_BETWEEN and _OR.search(between) is not None
        goes_on = is_or or (goes_on and _JOINED.match(between) is not None)
        listed.append(goes_on)
    return listed[::-1]
