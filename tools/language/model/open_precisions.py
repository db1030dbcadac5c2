"""Words that leave the number format open: "any precision", "choose the quantization", 精度不限.

Which formats may then be chosen is decided where a request is completed.
"""

from __future__ import annotations

import re

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page

_NOUN = (
    r"(?:(?:numeric(?:al)?|number|weights?|model|data|compute)\s)?"
    r"(?:precisions?|quanti[sz]ations?|quants?|d?types(?<=dtypes)|dtype|data\stypes?|number\sformats?|numeric\sformats?"
    r"|weights?\sformats?)(?:\s(?:formats?|levels?|schemes?|methods?|types?))?(?![a-z])"
)
# A noun with another tensor before it is open for that tensor alone.
_OF = r"(?:(?P<part{}>(?<![a-z])(?:kv(?:[\s_-]?cache)?|cache|activations?))\s)?"
_BEST = r"(?:best|optimal|right|ideal|(?:most\s)?(?:suitable|appropriate|efficient)|fastest|cheapest|smallest)"
_FREE = (
    r"(?:(?:left|kept|still|all|fully|completely|totally)\s){0,2}"
    r"(?:open|free(?:ly\schosen)?|flexible|any(?:thing)?(?![\s-](?:\w+\s)?(?:loss|less))|up\sto\syou|yours|"
    r"(?:of\s)?your\s(?:choice|call|pick)|"
    r"at\syour\sdiscretion|undecided|unconstrained|unrestricted|unspecified|not\sfixed|not\sdecided|negotiable|tbd|"
    r"to\sbe\s(?:decided|chosen|determined)|(?:does\snot|doesn'?t|do\snot|don'?t)\smatter|whatever|whichever|"
    r"no\s(?:preference|restriction|constraint|limit)s?|任意|任选|不限|随意|待定)(?![a-z])"
)
_NOUN_ZH = (
    r"(?:数值|权重|计算|模型|推理)?(?:精度|量化(?:方式|方案|精度|格式|方法|策略|类型|位数)?|数据类型|数据格式|数值格式)"
)
_PART_ZH = r"(?P<part{}>(?:kv\s?(?:cache\s?|缓存)|激活)\s?的?)?"
_FREE_ZH = (
    r"(?:不限(?:定|制)?|任选|任意|随意|自选|随便|可选|没有限制|无限制|不作要求|不做要求|没有要求|无要求|不指定|未定|"
    r"待定|由?你(?:来|们)?(?:定|选|决定|选择|挑)|自行(?:选择|决定)|自由(?:选择)?|开放|都可以?|都行|均可|皆可|无所谓)"
)
_BEST_ZH = r"(?:最佳|最优|最好|最(?:合适|适合)|合适|最快)"
_OPEN = Gated(
    "|".join(
        (
            rf"(?<![a-z])(?:any|whatever|whichever|arbitrary|unspecified)\s(?:kind\sof\s|type\sof\s)?{_OF.format(1)}"
            rf"{_NOUN}(?!\s(?:loss|losses|drop|degradation|change)(?![a-z]))",
            rf"{_OF.format(2)}(?<![a-z]){_NOUN}(?:\s(?:and|or)\s\w{{2,20}})?"
            rf"(?:\s?[:=]|\s(?:is|are|stays?|remains?|can\sbe|may\sbe|could\sbe)){{0,2}}\s?{_FREE}",
            # Under a heading: "precision: {weights: any}".
            rf"\Aweights?\s?[:=]\s?{_FREE}\s{{0,3}}\Z",
            r"(?<![a-z])(?:choose|pick|select|decide(?:\son)?|find|recommend|suggest|optimi[sz]e|determine)\s"
            rf"(?:(?:me|for\sme|us)\s)?(?:(?:the|a|an|your|its)\s)?(?:\w{{2,20}}\s(?:and|or)\s(?:the\s)?)?"
            rf"(?:{_BEST}\s)?{_OF.format(3)}{_NOUN}",
            rf"(?<![a-z])(?:use|with|in|at)\s(?:the\s)?{_BEST}\s{_OF.format(4)}{_NOUN}",
            rf"(?<![a-z])(?:what|which)\s{_OF.format(5)}{_NOUN}(?=\s(?:is|are|should|would|to|works|do|gives))",
            rf"(?:do\snot|don'?t)\s(?:care|mind)\s(?:about\s)?(?:(?:which|what|the)\s){{0,2}}{_OF.format(6)}{_NOUN}",
            rf"(?<![a-z])open\s{_OF.format(7)}{_NOUN}",
            rf"{_PART_ZH.format(8)}{_NOUN_ZH}\s?[:]?\s?(?:和\w{{1,6}})?(?:都|均|也|可以?)?{_FREE_ZH}",
            rf"(?:任意|任何|不限|随便|任选|不限定)的?{_PART_ZH.format(9)}{_NOUN_ZH}(?!损失|下降|降低)",
            rf"(?:选择?|挑选?|决定|推荐|确定|给出|采用|用)(?:一个|一种)?{_BEST_ZH}?的?{_PART_ZH.format(10)}{_NOUN_ZH}(?!\s?[:=]?\s?[a-z])",
            rf"{_BEST_ZH}的?{_PART_ZH.format(11)}{_NOUN_ZH}",
            rf"(?:哪种|哪个|什么|何种)的?{_PART_ZH.format(12)}{_NOUN_ZH}",
        )
    ),
)
# "pick precision fp8", "quantization type: int4": the noun of a format that is named.
_NAMED = Gated(r"\s?(?:[:=]|of|to|as)?\s?(?:[a-z]{2}_?\d|int\d|bf\d|w\d+a\d|awq|gptq|nvfp|mxfp)")
# "hasn't signed off on any quantisation", "nobody wants any".
_CLAUSE = 40
_DENIES = re.compile(r"(?:n't|(?<![a-z])(?:not|never|nobody|without))\s[^,.;:\n]{0,36}$", re.IGNORECASE)


def read_open_precision(page: Page, claims: Claims) -> str:
    """Take the words that leave the number formats open off the page and return them, "" if there are none."""
    words = ""
    for match in page.search(_OPEN):
        before = page.text[max(0, match.start() - _CLAUSE) : match.start()]
        if page.is_negated(*match.span()) or _DENIES.search(before):
            page.take(*match.span())
            continue
        part = next(filter(None, match.groupdict().values()), None)
        if part is None and _NAMED.match(page.text, match.end()) and not _FREE_WORDS.search(match.group()):
            continue
        phrase = page.take(*match.span())
        if part is not None:
            claims.leave_unread(f"{phrase!r}: of {part.strip()} only formats that are named are compared; name them")
            continue
        words = words or phrase
    return words


_FREE_WORDS = Gated(rf"(?<![a-z])(?:{_FREE}|any|whatever|whichever)|{_FREE_ZH}")
