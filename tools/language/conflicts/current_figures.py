"""Figures of what runs now, which no plan has to reach: "we only see 900 tok/s", "TPOT is 60 ms, want it under 35".

A figure that is wanted instead replaces the one that is seen; it may leave its unit out.
"""

from __future__ import annotations

from ..lexicons.limits import ROLE
from ..patterns.gated import Gated
from ..patterns.page import CLAUSE_END, SENTENCE_END, between, breaks_of

_UNIT = r"(?:ms|milliseconds?|s|secs?|seconds?|毫秒|秒|tok(?:en)?s?\s?(?:/|per\s|a\s)\s?s(?:ec(?:ond)?)?|tps|t/s)"
_FIGURE = Gated(rf"(?<![\w.])(?P<n>\d(?:[\d,]{{0,14}}\d)?(?:\.\d{{1,6}})?k?)\s?(?P<unit>{_UNIT})(?![a-z/])")
_SPEED = Gated(r"tok|tps|t/s")
# Words of a clause about what runs now.
_SEEN = Gated(
    r"(?<![a-z])(?:(?:we|i|it)(?:'re|'m|'s|'ve|\sare|\sam|\sis|\shave)?\s(?:only\s|just\s|now\s|currently\s|still\s|actually\s|typically\s|already\s)*"
    r"(?:see|sees|saw|seeing|get|gets|got|getting|measured?|measuring|observed?|observing|reach|reached|reaching|hit|hits|hitting|"
    r"(?:hover|sit|run|stay|stuck|land)(?:s|ing)?\s(?:at|around))|(?:sits?|hovers?|hovering|stuck|averages)\s(?:at|around)|"
    r"(?:went|shot|climb(?:ed|s)|spiked?s?|jump(?:ed|s)|rose|gr[eo]w|f[ae]ll(?:en)?|dropped|peak(?:ed|s)|degraded|balloon(?:ed|s)|explod(?:ed|es))\s(?:up\s|down\s|back\s|even\s)?(?:to|at|from|past|over|beyond|above)|took|(?:usually|normally)(?:\s(?:is|was|at|about|around))?(?=\s\d)|(?:is|was)\s(?:usually|normally)|"
    r"monitoring|grafana|dashboards?|currently|at\sthe\smoment|right\snow|as\sof\s(?:now|today)|today|so\sfar|(?<=\d\sms\s)now|(?<=\d\ss\s)now|(?<=\d\stok/s\s)now)(?![a-z])|目前|现在|实测|线上实际|监控|[涨飙升冲掉跌恶][升高涨到化]?[到至]了?",
)
# Words that begin a sentence about what runs now.
_SEEING = Gated(
    r"\s{0,3}(?:[-*]\s)?(?:(?:we(?:'re)?|i(?:'m)?)\s)?(?:(?:are|am|now|currently)\s)?(?:seeing|see|measured?|observed?|getting|monitoring|监控|实测)(?![a-z])",
)
# Behind a figure that the writer complains of.
_COMPLAINED = Gated(
    r"(?:\s(?:at|with|for)\s[^,.;\n]{1,24})?(?:,|\sand|\sbut)?\s(?:that's|that\sis|which\sis|and\sthat's)\s(?:what|why|where)\s(?:the\s|our\s)?\w+\s(?:complains?|hates?|dislikes?|mind)|"
    r"(?:,|\sand|\sbut)?\s(?:people|users|they|everyone|everybody|customers)\s(?:complain|hate|dislike)",
)
# Words that demand a figure, whatever else is said of it.
_DEMAND = Gated(
    r"(?<![a-z])(?:slo|sla|limits?|targets?|budget|requirements?|goals?|must|should|shall|needs?|wants?|wish|aim|have\sto|has\sto|under|below|within|at\s(?:least|most)|"
    r"no\s(?:more|less|fewer|slower|faster)|not\s(?:more|exceed|below|above|over)|max(?:imum)?|min(?:imum)?|cap|ceiling|keep|stay|expect|would\slike|can't|cannot|if)(?![a-z])|[<>≤≥]|"
    r"要求|需要|目标|以内|之内|以下|低于|小于|不超过|不低于|上限|至少|希望|想",
)
_ONLY = Gated(r"(?<![a-z])(?:only|just)\s")
# Behind a figure that is seen: the figure of the same kind that is wanted instead.
_WANTED = Gated(
    r"(?P<tail>[^\d.;\n。]{0,30}?)[,;.。]?\s?(?:(?:and|but|so|which|that|we|i|they|it)\s){0,4}(?:(?:really|would|now|only|actually)\s)*"
    r"(?:wants?|needs?|must|should|shall|ha(?:ve|s)\sto|like|aim(?:ing)?|targets?|goal|bring|hop(?:e|ing)|希望|想|要|需要|目标)"
    rf"(?P<lead>(?:[^\d.;\n。,]|(?<=p)\d{{2,3}}(?=\s)){{0,30}}?)(?<!p)(?P<n>\d(?:[\d,]{{0,14}}\d)?(?:\.\d{{1,6}})?k?)\s?(?P<unit>{_UNIT})?"
    r"(?(unit)(?![\w/])|(?=\s?(?:[,;:)!?\n。]|\.(?!\d)|$|以[内下]|之内|左右|吧)|\s(?:or|and|at|max|tops|for|please|instead|now|then)(?![a-z])))",
)
# "TTFT is 2.4 s at 6 rps, and that has to come down to 1 s": the second is demanded, the first is seen.
_NOT_OVER = Gated(
    r"(?<![a-z])(?P<role>tpot|ttft|itl)(?:\s(?:is|was|sits|runs|at|of|about|around)){1,3}\s(?P<old>\d[\d.]{0,6}\s?(?:ms|s)?)\s(?:today|now|currently|right\snow|at\sthe\smoment)(?:,|\sand|\sbut|\sit|\sthat){0,3}\s"
    r"(?:must|may|can|should|shall)(?:n't|not|\snot)\s(?:go\s(?:over|above|beyond|past)|exceed|rise\s(?:over|above)|be\s(?:over|above|more\sthan))\s(?P<new>\d{1,5}(?:\.\d{1,3})?\s?(?:ms|s)?)(?![\w/])",
)
_DOWN_TO = Gated(
    r"(?<![\w.])(?P<old>\d[\d.]{0,8}\s?(?:ms|s|sec|seconds?))(?P<mid>(?:\s(?:at|with|for)\s[^,.;\n]{1,30})?)[,;.]?\s(?:and\s|but\s)?(?:that|this|it|which|we)\s(?:has\sto|must|should|needs?\sto|want\s(?:it\s)?to)\s"
    r"(?:be\s)?(?:come|go|get|drop|cut|brought)\s(?:it\s)?(?:down\s)?to\s(?:under\s|below\s|at\smost\s)?(?P<new>\d[\d.]{0,8}\s?(?:ms|s|sec|seconds?))(?![a-z/])",
)


def without_observed(text: str) -> tuple[str, list[str]]:
    """A normalised text without the figures of what runs now, and notes; lengths and loads are never among them."""
    notes = [
        f"{match['new']!r} is wanted in place of {match['old']!r}, which is what runs now"
        for match in _DOWN_TO.finditer(text)
    ]
    for match in _NOT_OVER.finditer(text):
        notes.append(f"{match['new']!r} is the limit beside {match['old']!r}, which is what runs now")
    text = _NOT_OVER.sub(r"\g<role> at most \g<new>", text)
    text = _DOWN_TO.sub(lambda match: match["new"] + match["mid"], text)
    position: int = 0
    while (figure := _FIGURE.search(text, position)) is not None:
        position = figure.end()
        left = _seen_from(text, *figure.span())
        if left is None:
            continue
        wanted = _WANTED.match(text, figure.end())
        if wanted is None or (wanted["unit"] and ROLE.search(wanted["lead"])):  # what is wanted says so by itself
            lead = _ONLY.sub("", text[left : figure.start()])
            text = f"{text[:left]}{lead}some time{text[figure.end() :]}"
            position = left + len(lead)
            notes.append(f"{figure.group()!r} is what runs now, and no limit")
        else:
            new = f"{wanted['n']} {wanted['unit'] or figure['unit']}"
            text = f"{text[: figure.start()]}{new}{wanted['tail']}{text[wanted.end() :]}"
            position = figure.start() + len(new)
            notes.append(f"{new!r} is wanted in place of {figure.group()!r}, which is what runs now")
    return text, notes


def _seen_from(text: str, start: int, end: int) -> int | None:
    """The start of the clause where its speed or latency is that of what runs now; else `None`."""
    left, right = between(breaks_of(text, CLAUSE_END), start, end, len(text))
    clause = text[left:right]
    is_limit = _SPEED.search(text, start, end) is not None or ROLE.search(clause) is not None
    sentence, _ = between(breaks_of(text, SENTENCE_END), start, end, len(text))
    is_seen = _SEEN.search(clause) or _SEEING.match(text, sentence) or _COMPLAINED.match(text, end)
    return left if is_limit and is_seen and not _DEMAND.search(clause) else None
