"""Questions for the most load that something holds ("how many users can it serve"), in English and Chinese.

Where neither a load nor another wish is stated, the answer is a plan for as many requests at once as the limits allow.
"""

from __future__ import annotations

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page

MOST_LOAD = "most_load"
_WHO = (
    r"(?:users?|people|persons?|customers?|clients?|callers?|students?|employees?|developers?|chats?|conversations?|"
    r"sessions?|requests?|quer(?:y|ies)|streams?|calls?|turns?|dialogues?|agents?|jobs?|connections?|qps|rps|req/s)"
)
_TOGETHER = r"(?:concurrent(?:ly)?|simultaneous(?:ly)?|parallel|active|in[\s\-]flight|at\s(?:once|the\ssame\stime))"
_ABLE = (
    r"(?:can|could|will|would|do(?:es)?|may|might|fits?|possible|are|is|support(?:ed)?|serve[ds]?|handle[ds]?|"
    r"sustain(?:ed)?)"
)
# A number that follows says how many: then nothing is asked.
_NO_NUMBER = r"(?![\s:=≤<]{0,3}(?:(?:is|are|of|at|under|about|up\sto)\s)?\d)"
_QUESTION = Gated(
    rf"(?<![a-z])how\s(?:many\s(?:{_TOGETHER}\s)?{_WHO}(?:\s{_TOGETHER})?(?:\s(?:per|a)\s(?:second|minute|hour|day))?|(?:much|high\sa)\s"
    rf"(?:traffic|load|concurrency))(?=\s(?:[a-z]+\s){{0,2}}{_ABLE}(?![a-z])|\s[^.?!\n]{{1,40}}?\s(?:can|could|will|would|may)\s(?:i|we|it|you|they)(?![a-z]))|"
    rf"(?<![a-z])(?:(?:max(?:imum|imal)?|highest|largest|greatest|biggest)\s(?:possible\s)?(?:(?:number|count)\sof\s)?|"
    rf"the\smost\s(?={_TOGETHER}|{_WHO}\s{_TOGETHER}))(?:{_TOGETHER}\s)?(?:{_WHO}(?:\s{_TOGETHER})?|concurrency|load)"
    rf"(?![a-z]){_NO_NUMBER}|"
    rf"(?<![a-z])(?:what(?:'s|\sis)?|which)\s(?:the\s)?(?:(?:maximum|max|peak|highest|largest)\s)?(?:(?:request|arrival|prompt|query|call)\srate|requests?\sper\ssecond|rps|qps|load|traffic|concurrency)(?=\s(?:[a-z]+\s){{0,2}}{_ABLE}(?![a-z])|\s(?:for|of|on|with)\s)|"
    r"(?<![a-z])(?:requests?|rps|qps)(?:\sper\s(?:second|minute))?\s(?:before|until)\s(?=[^.?\n]{0,40}(?:cross|exceed|go(?:es)?\s(?:over|above|past)|break|pass|hits?)(?:es|s)?(?![a-z])[^?\n]{0,30}\?)|"
    r"(?:qps|rps|每秒请求数?)\s?(?:最高|最多|最大|能)(?:能)?(?:到|达到?|有|是)?多少|"
    r"(?:最多|同时|一共|总共|到底|大概|大约)?(?:能够?|可以|可|(?<=最多))(?:同时|并发)?(?:支持|服务|承载|承受|支撑|跑|处理|扛|撑|顶|接)?(?:得?住|到|下)?"
    r"多少(?:个|名|位|路|条)?(?:并发|同时|在线)?(?:的)?(?:用户|人|请求|会话|对话|并发|路|连接)数?|"
    r"(?:最大|最高|最多)(?:的)?(?:并发(?:数|量|用户数?|请求数?|度)?|用户数)(?:是|为|能到|可达|有)?多少|"
    r"并发(?:数|量)?(?:最多|最高|最大)?(?:能|可以)?(?:到|达到|开到|有)?多少",
)


def read_most_load(page: Page, claims: Claims) -> None:
    """Take questions for the most load off the page."""
    for match in page.search(_QUESTION):
        if not page.is_negated(*match.span()):
            claims.claim(MOST_LOAD, True, page.take(*match.span()))


def asks_most_load(text: str, start: int, end: int) -> bool:
    """Whether a part of a text asks for the most load."""
    return any(start <= match.start() < end for match in _QUESTION.finditer(text))


def settle_most_load(claims: Claims) -> None:
    """Make the question the objective, or list it as unread beside a stated load or another objective."""
    is_asked, words = claims.drop(MOST_LOAD)
    if not is_asked:
        return
    beside = next((name for name in ("concurrency", "request_rate", "objective") if claims.has(name)), None)
    if beside is not None and claims.values[beside] != "throughput":
        claims.leave_unread(
            f"{words!r}: the most load is not looked for beside {claims.words[beside]!r}, which is planned for"
        )
        return
    claims.claim("objective", "throughput", words)
    claims.reading(f"{words!r} read as the objective throughput, with as many requests at once as the limits allow")
