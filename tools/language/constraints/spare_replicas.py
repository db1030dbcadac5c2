"""Replicas that may be lost, in words: "N+1", "if one replica dies the others carry the load", "容忍一个副本故障"."""

from __future__ import annotations

import re

from ..conflicts.claims import Claims
from ..lexicons import reserved as lex
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import read_whole

_COPY = (
    r"(?:(?:whole|full|entire|complete|model|serving)\s)?(?:replicas?|instances?|cop(?:y|ies))"
    r"(?:\sof\s(?:the|our)\smodel)?"
)
_COUNT = r"(?P<{}>one|two|three|a(?:ny)?(?:\s(?:single|one))?|any|[1-9])(?![a-z\d%])"
_WHAT = rf"(?:\s(?:of\s(?:the\s|our\s)?)?{_COPY}|\sof\s(?:them|these|those|which))"
_ONES = rf"{_COUNT}{_WHAT}?"
"""So many replicas; without their noun only where replicas are what was spoken of (`_speaks_of_replicas`)."""
_AWAY = (
    r"(?:lost|down|dead|gone|missing|unavailable|broken|out\sof\s(?:service|order|action)|(?:in|under|down\sfor)\s(?:maintenance|repair)|"
    r"(?:taken|pulled)\s(?:out|down|offline|away)|drained|restarted|patched|upgraded|updated)"
)
_FAILS = (
    r"(?:dies?|fail(?:s|ing)?|falls?\s(?:over|out)|go(?:es)?\s(?:down|away)|crash(?:es)?|drops?\sout|"
    rf"(?:is|are|be|being)\s{_AWAY})"
)
_LOSE = r"(?:loss|failure|outage|death|crash)(?:\sof)?:?"
_OUTLIVE = (
    r"(?:surviv(?:e|es|ing)|outliv(?:e|es|ing)|tolerat(?:e|es|ing)|withstand(?:s|ing)?|ride\sout|absorb(?:s|ing)?|(?:cope|live|deal)\swith|"
    r"cover(?:s|ing)?)"
)
_CHINESE = r"(?:其中(?:的)?(?:任[意何])?)?(?P<{}>[一两二三1-9])\s?(?:个(?:模型)?(?:副本|实例)?|(?:模型)?(?:副本|实例))"
_BROKEN = r"(?:挂|坏|宕|掉线|故障|失效|下线|崩|损失|丢|(?:在|做|要)?(?:维护|升级|重启|检修))"
_RESERVE = Gated(
    rf"(?<![a-z])n\s?\+\s?(?P<plus>[1-9])(?![\d.])|(?<![a-z])n\s?-\s?(?P<minus>[1-9])(?=\s(?:must|has|have|should|needs?|still|can|replicas)(?![a-z]))|"
    rf"(?<![a-z]){_OUTLIVE}\s(?:the\s)?(?:{_LOSE}\s|losing\s){_ONES.format('of')}(?![a-z])|"
    rf"(?<![a-z])(?:if|when(?:ever)?|even\sif|should|whichever|once|while|with)\s{_ONES.format('named')}\s{_FAILS}(?![a-z])|"
    rf"(?<![a-z])(?:of\swhich\s)?{_ONES.format('may')}\s(?:may|can|could|might|(?:is|must\sbe|has\sto\sbe)\sallowed\sto|must\sbe\sable\sto)\s(?:{_FAILS}|die)(?![a-z])|"
    rf"(?<![a-z])(?:lose|losing|loses)\s{_ONES.format('lost')}(?![a-z])|"
    rf"(?<![a-z]){_ONES.format('out')}(?=\s[^.,;:!?\n\d]{{0,40}}?(?:patch|updat|upgrad|restart|reboot|drain|maint|remov|out|down|off|away|stop|roll))\s[^.,;:!?\n\d]{{2,60}}?[,\s](?:while|whereas|and|with|so)\s(?:that\s)?(?:all\s)?(?:the\s)?(?:others?|rest|remaining|surviving)(?:\s(?:ones?|{_COPY}))?\s(?:(?:still|then|can|must|have|has|should|needs?|to)\s){{0,3}}(?:carr|hold|serv|tak|handl|cop|keep|manag|do|bear|absorb)\w{{0,3}}(?![a-z])|"
    rf"(?<![a-z]){_ONES.format('more')}\s(?:more|extra|above|beyond)\s(?:than\s)?(?:(?:is|are|what's|what\sis|strictly|actually|the\sload)\s){{0,2}}(?:needed|necessary|required|needs|requires|takes)(?![a-z])|"
    rf"(?:多|额外|另外?)(?:留|备|放|加|开|跑|预留|准备)(?:出)?{_CHINESE.format('spare')}|"
    rf"{_CHINESE.format('stopped')}[^,。;\n\d]{{1,12}}[,]?\s?(?:其余|剩下|其[他它]|余下)的?[^,;。\n\d]{{0,8}}(?:扛|撑|顶|承担|满足|继续)|"
    rf"(?<![a-z])(?:surviv\w{{1,3}}\s(?:the\s)?loss\sof\s{_COPY}|{_COPY}\s(?:that|which)\smay\s(?:fail|be\slost|die)|(?:tolerated|allowed)\s{_COPY}\s(?:failures|losses)|{_COPY}\s(?:failures|losses)\s(?:tolerated|allowed)|(?:spare|reserve|standby|redundant|failover)\s(?:replicas?|copies)|redundancy(?=\s?:\s?\d\s?\([^()\d]{{0,40}}{_COPY}\s(?:of|may|can|dies?|fails?|is|are))|冗余副本[数量]{{0,2}}|{_OUTLIVE}\s{_COPY}\s(?:failures?|loss(?:es)?)|(?:容忍|允许)的?(?:故障|损失|失效)的?(?:副本|实例)个?数?量?)\s?[:=]\s?(?P<key>[1-9])(?![\d.])|"
    rf"(?:容忍|允许|承受|扛得?住|损失|坏|挂|丢)(?:掉|了)?\s?{_CHINESE.format('cn')}(?:{_BROKEN}(?:掉|了)?)?|"
    rf"(?:任意|任何|若|如果|即使|哪怕)?{_CHINESE.format('if')}\s?{_BROKEN}(?:掉|了)?"
)
_NAMED = Gated(rf"n\s?[+-]|{_COPY}|redundancy|副本|实例")
# What words without a noun speak of: the last thing before them that is counted.
_THINGS = Gated(
    rf"(?P<replicas>(?<![a-z]){_COPY}(?![a-z])|副本|实例)|(?<![a-z])(?:{lex.NODE}|gpus?|cards?|users?|requests?|teams?|people)(?![a-z])|"
    r"[\ue001\ue004]|[台张块]"
)
_BEFORE = 160  # characters
# The clause behind it about the remaining replicas: ", the others still have to carry the full load".
_LEFT = re.compile(
    r"[,\s](?:and|but|so|then|while)?[^,.;!?。\n\d]{0,120}?(?:others?|rest|remain\w*|surviv\w+|left|still|carr(?:y|ies)|load|traffic|"
    r"其余|其[他它]|剩|仍|还|照样|继续|扛|撑|承担)[^,.;!?。\n\d]{0,120}",
    re.IGNORECASE,
)
_ANY = re.compile(r"a(?:ny)?(?:\s(?:single|one))?")
# A loss in a clause that says what it must not do: "the loss of one replica must not break the SLA".
_LOST = Gated(
    rf"(?<![a-z])(?:the\s)?{_LOSE}\s{_COUNT.format('of')}\s(?:of\s(?:the|our)\s)?{_COPY}(?![a-z])|"
    rf"(?<![a-z]){_COUNT.format('gone')}\s(?:of\s(?:the|our)\s)?{_COPY}\s(?:loss|failure|outage|crash|death|short|less|failing|{_AWAY})(?![a-z])|"
    rf"(?<![至最不个])[少缺坏挂丢]了?{_CHINESE.format('cn')}"
)
_ENDURED = Gated(
    r"(?<![a-z])(?:(?:must|may|can|should|shall|will)\s?(?:not|n't)|cannot|(?:is|are)\snot\sto|without|hold|still|cope|absorb|surviv|tolerat|withst|stay|meet|within|keep|cover|carr|remain)|"
    r"不(?:能|得|可|影响)|也|仍|还|照样|满足|扛"
)


def read_reserve(page: Page, claims: Claims) -> None:
    """Read how many replicas may be lost while the others carry the load; it is no number of replicas."""
    for match in page.search(_RESERVE):
        if _speaks_of_replicas(page, match) and not page.is_negated(*match.span()):
            _claim_reserve(page, claims, match)
    for match in page.search(_LOST):
        words = page.clause_text(*match.span())
        if claims.is_past(words) or not _speaks_of_replicas(page, match):
            continue
        if _ENDURED.search(words):
            _claim_reserve(page, claims, match)
        else:
            page.take(*match.span())
            claims.leave_unread(f"{words[:200]!r} speaks of lost replicas; say how many may be lost")


def _speaks_of_replicas(page: Page, match: re.Match[str]) -> bool:
    """Whether a match names replicas, or speaks of them as what was counted before it."""
    if _NAMED.search(match.group()):
        return True
    before = list(_THINGS.finditer(page.text, max(0, match.start() - _BEFORE), match.start()))
    return bool(before) and before[-1]["replicas"] is not None


def _claim_reserve(page: Page, claims: Claims, match: re.Match[str]) -> None:
    number = next(group for group in match.groups() if group)
    count = 1 if _ANY.fullmatch(number.lower()) else read_whole(number)
    end = page.clause(*match.span())[1]
    if any(sign.isdigit() for sign in page.text[match.end() : end]):  # a figure is of something else
        end = match.end()
    elif (left := _LEFT.match(page.text, end)) is not None and not page.text[left.end() : left.end() + 1].isdigit():
        end = left.end()
    claims.claim("reserve_replicas", count, page.take(match.start(), end))
