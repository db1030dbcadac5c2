"""So few GPUs where they do, and so many at most: "if 2 cards do it, take 2; we can go up to 4 but not beyond"."""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.number_words import AT_MOST, ENGLISH_NUMBER
from ..patterns.quantities import read_number
from ..patterns.rewriting import Workings

_NUMBER = rf"(?:\d{{1,3}}|{ENGLISH_NUMBER}|[一二两三四五六七八九十]{{1,2}})"
_HARDWARE = (
    r"(?:(?:[a-z]{1,3}\d{2,4}[a-z]{0,3}(?:\s(?:pcie|sxm\d?|nvl)(?![a-z]))?|gpu|card|node|server|machine|box(?=e)|host)"
    r"(?:e?s)?(?![a-z\d])|[张块台](?:显?卡|机器|服务器|[a-z]{1,2}\d{2,4}[a-z]?)?)"
)
_MOST = (
    rf"(?:{AT_MOST}|(?<![a-z])(?:(?:very\s)?most|(?:not|never)\s(?:beyond|above|over)|(?:limit|cap|ceiling|maximum)\sis|"
    r"go(?:ing)?\s(?:up\s)?to|as\smany\sas|stop\sat|上限|[加扩增]到))"
)
_FEW_OR_MORE = Gated(
    r"(?:(?<![a-z])(?:if|when|as\slong\sas|start(?:ing)?\s(?:with|at|on)|begin\s(?:with|at|on)|try|preferably|ideally|best(?:\scase)?)\s(?:just\s|only\s)?|最好(?:用|是)?|先[用拿上试]?|如果)?"
    rf"(?<![a-z0-9.])(?P<few>{_NUMBER})\s?(?P<what>{_HARDWARE})(?P<between>[^\n]{{1,120}}?)"
    rf"(?:{_MOST}\s?用?(?P<most>{_NUMBER})|(?<![a-z0-9.])(?P<most2>{_NUMBER})(?:\s{_HARDWARE})?\s(?:at\s(?:the\s)?(?:very\s)?most|max(?:imum)?|(?:is|are)\s(?:the|our|a)\s(?:hard\s|absolute\s)?(?:limit|cap|ceiling|maximum|most))(?![a-z]))"
    rf"(?P<named>\s?{_HARDWARE})?(?=\s?(?:[,.;:!)\n,。]|$|(?:but|and|only\sif|if)(?![a-z])))"
    r"(?:[\s,]{0,3}(?:but\s|and\s)?(?:(?:not|no|never|nothing)\s(?:beyond|more|further|over|above|higher)(?:\s(?:than\s)?(?:that|it|this))?(?![a-z])|(?:more|anything)\s(?:than|beyond)\s(?:that|it)\s[^,.;\d\n]{3,40}|再多[^,;。\d\n]{1,12}))?",
)
# The few are a condition or a wish.
_WHERE_THEY_DO = Gated(
    r"(?<![a-z])(?:if|when|as\slong\sas|unless|otherwise|prefer(?:abl[ey]|red)|ideally|best|would\sbe\s(?:nice|great|good|enough)|suffic\w{2,4})(?![a-z])|够|不行|最好|如果|的话",
)
_OF_SOMETHING_ELSE = Gated(
    r"(?<![a-z])(?:each|every|per|replicas?|copies|tp|pp|dp|ep|tokens?|requests?|users?|seconds?|ms)(?![a-z])|每|副本|并发"
)
# The few are to hold it: a limit, which stays to be read without the words that doubt it.
_LIMIT = Gated(
    r"(?<![a-z])(?:ttft|tpot|itl|e2e|latency|slos?|slas?|targets?|first\stoken|per\stoken)(?![a-z])|首\s?(?:token|字)|延迟|时延"
)
_LIMIT_FIGURE = Gated(
    r"(?<![a-z])p\s?\d\d(?!\d)|\d[\d.,]*\s?(?:ms|milliseconds?|s|sec|seconds?|tokens?/s|毫秒|秒)(?![a-z])"
)
_DOUBT = Gated(
    r"(?<![a-z])(?:only\s)?(?:if|unless|should|when)(?![a-z])|(?<![a-z])(?:can(?:'t|not|\snot)|(?:does|do|is|are|will|would)(?:n't|\snot)|won't)(?:\s(?:be|hold|stay|held|kept|met|reached))*(?![a-z])|"
    r"(?<![a-z])with\s(?:those|these|that|them)(?![a-z])|如果|[压达守保]不[到住了]"
)
# Between the few and the most, in the clause of the most: it is a limit of nothing else.
_CLAUSE_END = Gated(r"[,;:.!?。]|\s(?:and|but|or)\s")
_FILLER = Gated(
    r"(?:\s|'|(?:if|those|these|that|this|they|it|them|we|you|i|can|could|may|might|would|will|are|is|be|do|does|not|don't|then|otherwise|else|only|just|also|even|"
    r"enough|suffices?|possible|needed|necessary|absolutely|really|go|use|take|have|buy|get|up|to|with|a|the|our|hard|budget|quota|"
    r"here|there|fine|okay|ok|too|holds?|fits?|works?)(?![a-z])|[就也我们可以能不行够的话则再]|否则)*",
)
_AHEAD = 8  # characters behind the most, in which the condition begins
_FIGURE = Gated(rf"(?<![a-z0-9.]){_NUMBER}(?![\w.]\d?)")


def _as_few_as_do(match: re.Match[str]) -> str | None:
    between, words = match["between"], match.group()
    few, most = (read_number(number.lower()) for number in (match["few"], match["most"] or match["most2"]))
    limits = [part for part in _CLAUSE_END.split(between) if _LIMIT.search(part)]
    others = {read_number(number.lower()) for number in _FIGURE.findall(_LIMIT_FIGURE.sub("", between))} - {few, most}
    is_of_cards = match["named"] or _FILLER.fullmatch(_LIMIT_FIGURE.split(_CLAUSE_END.split(between)[-1])[-1])
    where = _WHERE_THEY_DO.search(match.string, match.start(), match.end() + _AHEAD)
    is_meant = is_of_cards and where and not others and not _OF_SOMETHING_ELSE.search(_LIMIT_FIGURE.sub("", words))
    if few is None or most is None or few >= most or not is_meant:
        return None
    held = "; ".join(_DOUBT.sub(" ", part).strip() for part in limits if _LIMIT_FIGURE.search(part))
    return f"at most {most:g} {match['what']}, as few as do" + (f"; {held}" if held else "")


FEWEST: Workings = ((_FEW_OR_MORE, _as_few_as_do),)
