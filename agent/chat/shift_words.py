"""The words of a change by an amount: "add 8 GPUs", "10 more users", "increase the prompt by 2k", "再加8张卡".

`find_shift` says which figure moves by how much; what the figure is now is not known here. A limit, a degree or a new
value ("increase the prompt to 4k") is left to other readers.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ...tools.language.patterns.number_words import ENGLISH_NUMBER
from ...tools.language.patterns.quantities import read_number
from ...tools.plan.latency_limits import LATENCY_FIELDS
from .edit_words import figure_fields

_FIGURE = r"(?:\d{1,3}(?:,\d{3}){1,3}|\d{1,9}(?:\.\d{1,4})?)(?:\s?k(?![A-Za-z]))?"
_CHINESE_FIGURE = r"[一二两三四五六七八九十百千万]{1,6}"
_UNIT = r"(?:\s?(?P<unit>%|percent|ms|milliseconds?|msec|s|secs?|seconds?|毫秒|秒)(?![A-Za-z]))?"
_AMOUNT = rf"(?<![\w.])(?P<amount>{_FIGURE}|{ENGLISH_NUMBER}(?![A-Za-z])){_UNIT}"
_AMOUNT_CHINESE = rf"(?:百分之)?(?P<amount>{_FIGURE}|{_CHINESE_FIGURE}){_UNIT}"
_MS_OF_UNIT = {"s": 1000.0, "sec": 1000.0, "secs": 1000.0, "second": 1000.0, "seconds": 1000.0, "秒": 1000.0}
_TIMES = frozenset(LATENCY_FIELDS)
# Things that "a", "another" or a counter of things may stand before.
_COUNTED = frozenset({"gpus", "nodes", "concurrency"})

_ADDS = r"add(?:s|ed|ing)?|append|attach|plus|bring\sin|gain(?:ed|ing)?|buy|bought"
_TAKES = (
    r"remov(?:e|ed|ing)|drop(?:ped|ping)?|take\s(?:away|off|out)|los(?:e|t|ing)|subtract|minus|cut|pull|free(?:\sup)?|"
    r"release|give\s(?:up|back)|shut\s(?:down|off)|without"
)
_RAISES = (
    r"increas(?:e|ed|ing)|rais(?:e|ed|ing)|grow|bump(?:ed)?(?:\sup)?|boost|expand|extend|lengthen|scale(?:\sup|\sout)?|"
    r"relax|loosen|upp?(?:ed)?"
)
_LOWERS = (
    r"decreas(?:e|ed|ing)|reduc(?:e|ed|ing)|lower(?:ed|ing)?|shrink|shorten|trim|cut(?:\sdown)?|scale\s(?:down|in)|"
    r"tighten|drop(?:ped)?"
)
_MORE = r"more|extra|additional|further|longer|higher|larger|bigger|greater"
_LESS = r"fewer|less|shorter|lower|smaller"
_LIMIT = r"(?:\s(?:limit|bound|target|cap|budget|length|size|count))?"
_SMALL_WORDS = r"(?:(?:the|our|my|of|number|amount|total|all)\s){0,4}"
# A second figure after it says what a node or a user has, not how many there are.
_NOT_EACH = r"(?!\s?(?:per|in\seach|on\seach|each|every)(?![A-Za-z]))"
_EACH = r"(?:\s(?:of|with)\s(?P<each>\d{1,3})\s?(?:x\s?)?(?:gpus?|cards?|accelerators?)?(?:\seach)?)?"
_CARD = r"(?:(?P<card>[A-Za-z]{1,3}\d{2,3}[A-Za-z]{0,3}?)(?P<cards>s)?)"

_UP_CHINESE = (
    r"(?:再|多|又)?(?:增加|添加|追加|加上|增|添|加|扩容|扩|提高|提升|上调|加长|延长|放宽)|再?来|再?多(?:给|用|要)?"
)
_DOWN_CHINESE = (
    r"(?:再|又)?(?:减少|减掉|减去|减|降低|下调|缩短|去掉|拿掉|拿走|移除|移走|撤掉|撤|少掉|少用|少|扣掉|去除|删掉|收紧)"
)
_COUNTER = r"(?:张|块|片|颗|个|台|路|并发)"
# What follows "add 8 GPUs" and is added as well.
GOES_ON = re.compile(
    r"\s?(?:,\s?)?(?:and|和|以及)\s?(?=\w{1,12}\s?(?:more\s)?(?:[张块台个]|(?:gpu|card|node|server|machine|user)s?(?!\w)))",
    re.IGNORECASE,
)


class Shift(Struct, frozen=True):
    """A figure that moves: by `amount`, or to `factor` times itself. `follows` is the verb that goes on with what
    stands next after it ("add 8 GPUs and 10 users").

    `card` is the accelerator that was named, `each` how many GPUs a node is to have, where either was said.
    """

    name: str | None
    start: int
    end: int
    amount: float = 0.0
    factor: float | None = None
    verb: str | None = None
    card: str | None = None
    each: int | None = None


def find_shift(text: str) -> Shift | None:
    """The change by an amount in `text` that is read first, if there is one; its name is `None` where it has none."""
    for pattern, sign in _patterns():
        for match in pattern.finditer(text):
            shift = _shift(match, sign)
            if shift is not None:
                return shift
    return None


def still_relative(text: str) -> str | None:
    """Words that compare with the current value, left over once all is read: their figure is no new value."""
    match = _STILL_RELATIVE.search(text)
    return None if match is None else match.group().strip()


_STILL_RELATIVE = re.compile(
    rf"{_AMOUNT}\s(?:(?!or\s)\w{{1,12}}\s){{0,2}}?(?:{_MORE}|{_LESS})(?![A-Za-z])(?!\s(?:than|or)(?![A-Za-z]))"
    rf"|(?<![A-Za-z])(?:another|additional|extra)\s{_AMOUNT.replace('(?P<', '(?P<b_')}(?:\s\w{{1,12}})?"
    rf"|(?<![A-Za-z])(?:add|remove)\s{_AMOUNT.replace('(?P<', '(?P<c_')}\s(?:gpus?|nodes?|cards?|users?)"
    r"(?![A-Za-z])|(?:再|多)加?\d{1,6}\s?(?:张|块|个|台|k)",
    re.IGNORECASE,
)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Each form with its sign, the most telling first; they are compiled when a chat first needs them."""
    field = figure_fields()
    noun = rf"(?:(?:{_CARD}\s)?(?:{field})|{_CARD.replace('(?P<', '(?P<n_')})(?![A-Za-z]){_NOT_EACH}"
    forms: list[list[tuple[str, int]]] = []
    for sign, adverb, verb, moves, chinese in (
        (1, _MORE, _ADDS, _RAISES, _UP_CHINESE),
        (-1, _LESS, _TAKES, _LOWERS, _DOWN_CHINESE),
    ):
        again = r"(?:(?:another|an?|the|some|yet|up|down)\s){0,2}"
        extra = rf"(?:\s(?:{_MORE}))?"
        tokens = r"(?:\stokens?)?(?:\s(?:to|of|from|off|for)\s(?:the\s|our\s)?|\s)"
        amount_noun = rf"{_AMOUNT}{extra}{tokens}{noun}"
        forms.append([
            # "add 8 more GPUs", "remove 4 of the GPUs", "add 2k tokens to the prompt"
            (rf"(?<![A-Za-z])(?P<verb>{verb})\s{again}(?:{_MORE}\s)?{_SMALL_WORDS}{amount_noun}{_EACH}", sign),
            # "increase by 8 GPUs"
            (rf"(?<![A-Za-z])(?:{moves})\s(?:\w{{1,12}}\s){{0,2}}by\s{amount_noun}{_EACH}", sign),
            # "8 more GPUs", "4 fewer GPUs", "2k longer prompts"
            (rf"{_AMOUNT}\s(?:{adverb}){tokens}{noun}{_EACH}", sign),
            # "increase the prompt by 2k"
            (rf"(?<![A-Za-z])(?:{moves}|{verb})\s{_SMALL_WORDS}(?:{field}){_LIMIT}\sby\s{_AMOUNT}(?:\stokens?)?", sign),
            # "8 GPUs more", "prompts 2k longer", "concurrency up by 10"
            (rf"{_AMOUNT}\s{noun}\s(?:{adverb})(?![A-Za-z])(?!\s(?:than|or)(?![A-Za-z]))", sign),
            (rf"(?<![A-Za-z])(?:{field}){_LIMIT}(?:\s(?:be|is|are|was|were|get|gets))?\s{_AMOUNT}(?:\stokens?)?\s"
             rf"(?:{adverb})(?![A-Za-z])(?!\s(?:than|or)(?![A-Za-z]))", sign),
            (rf"(?<![A-Za-z])(?:{field}){_LIMIT}\s(?:(?:is|are|was|were|goes|go|went|to\sbe)\s)?"
             rf"(?:{'up|increased|raised|longer|higher' if sign > 0 else 'down|decreased|reduced|shorter|lower'})\sby\s"
             rf"{_AMOUNT}(?:\stokens?)?", sign),
            # "GPUs +8", "+8 GPUs"
            (rf"(?<![A-Za-z])(?:{field})\s?{'[+]' if sign > 0 else '-'}=?\s?(?P<amount>{_FIGURE}){_UNIT}", sign),
            (rf"(?<![\w+-]){'[+]' if sign > 0 else '-'}(?P<amount>{_FIGURE}){_UNIT}\s?{noun}", sign),
            # "再加8张卡", "减少4张卡", "多8张 H100"
            (rf"(?P<verb>{chinese})(?:了|上|掉)?\s?{_AMOUNT_CHINESE}\s?{_COUNTER}?(?:的)?\s?"
             rf"(?:(?:tokens?\s?)?(?:的)?(?:{field})|{_CARD})(?![A-Za-z])", sign),
            # "并发增加10", "把输入加长 2k", "卡减少 4 张"
            (rf"(?:{field})\s?(?:的)?(?:数量?|上限|限制)?\s?(?:{chinese})(?:了|上|掉)?\s?{_AMOUNT_CHINESE}"
             rf"\s?(?:{_COUNTER}|tokens?)?(?!\s?倍)", sign),
            # "增加并发 10", "减少 GPU 4 张"
            (rf"(?:{chinese})\s?(?:{field})\s?(?:数量?|上限|限制)?\s?{_AMOUNT_CHINESE}\s?{_COUNTER}?(?!\s?倍)", sign),
            # "再加8张": the counter of flat things is that of cards
            (rf"(?:{chinese})(?:了|上|掉)?\s?{_AMOUNT_CHINESE}\s?(?P<counter>[张块台])(?!\s?[A-Za-z])", sign),
        ])  # fmt: skip
    # A verb is worth more than an adverb, whatever their signs: "remove 4 more GPUs".
    ordered = [form for pair in zip(*forms, strict=True) for form in pair]
    single = r"(?P<one>another|an?\s(?:additional|extra|further)|one\smore|yet\sanother)"
    ordered += [
        # "another node", "an extra 2k of prompt"
        (rf"(?<![A-Za-z])(?:(?P<verb>{_ADDS})\s)?{single}\s(?:{_AMOUNT}\s(?:tokens?\s)?(?:of\s|to\s)?(?:the\s)?)?{noun}"
         rf"{_EACH}", 1),
        # "add a node", "remove a GPU", "lose one of the nodes"
        (rf"(?<![A-Za-z])(?P<verb>{_ADDS})\s(?P<one>an?)\s{noun}{_EACH}", 1),
        (rf"(?<![A-Za-z])(?P<verb>{_TAKES})\s(?P<one>an?)\s{noun}", -1),
        # "take 4 GPUs away"
        (rf"(?<![A-Za-z])take\s{_AMOUNT}\s(?:of\s)?(?:the\s|our\s)?{noun}\s(?:away|off|out)(?![A-Za-z])", -1),
        # "a node fails", "2 GPUs go down"
        (rf"(?:(?P<one>(?<![A-Za-z])an?)|{_AMOUNT})\s(?:of\s(?:the|our)\s)?{noun}\s(?:fails?|failed|dies?|died|breaks?|broke|"
         r"(?:goes|go|went|is|are|were|was)\s(?:down|dead|lost|broken))(?![A-Za-z])", -1),
        # "8 more": what was changed last
        (rf"^(?:and\s|then\s|please\s)?(?:add\s)?{_AMOUNT}\smore(?:\splease)?\s?[?!.]?$", 1),
        (rf"^(?:and\s|then\s|please\s)?{_AMOUNT}\s(?:fewer|less)(?:\splease)?\s?[?!.]?$", -1),
    ]  # fmt: skip
    return tuple((re.compile(pattern, re.IGNORECASE), sign) for pattern, sign in ordered)


def _shift(match: re.Match[str], sign: int) -> Shift | None:
    groups = match.groupdict()
    card = groups.get("card") or groups.get("n_card")
    name = next((field for field in groups if field in _names() and groups[field]), None)
    if name is None and card:
        name = "gpus"
    if name is None and groups.get("counter"):
        name = "nodes" if groups["counter"] == "台" else "gpus"
    if card and name != "gpus":
        return None
    amount = groups.get("amount")
    # "a limit on TTFT", "another prompt" count nothing.
    if amount is None and name not in _COUNTED:
        return None
    value = 1.0 if amount is None else read_number(amount)
    if value is None:
        return None
    unit = (groups.get("unit") or "").lower()
    each = groups.get("each")
    is_share = unit in ("%", "percent") or "百分之" in match.group()
    if unit and not is_share and name not in _TIMES:
        return None
    if name in _TIMES:
        value *= _MS_OF_UNIT.get(unit, 1.0)
    return Shift(
        name=name,
        start=match.start(),
        end=match.end(),
        amount=0.0 if is_share else sign * value,
        factor=1 + sign * value / 100 if is_share else None,
        verb=groups.get("verb"),
        card=card,
        each=None if each is None else int(each),
    )


@cache
def _names() -> frozenset[str]:
    return frozenset(re.compile(figure_fields()).groupindex)
