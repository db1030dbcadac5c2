"""Colloquial wordings about loads, lengths and limits: "日均 80 万次", "2,100 tokens go in"."""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.quantities import read_number
from ..patterns.rewriting import Rewriting

# "each has one request running at a time": as many requests as there are of what is counted.
_ONE_EACH_AT_A_TIME = Gated(
    r",?\s?\(?(?<![a-z])(?:each|every\sone|all)(?:\sof\s(?:them|these|those)|\s(?:online|active|busy|logged-in)\s[a-z]{4,14})?\s(?:has|have|runs?|keeps?|with|sends?)\s(?:only\s|just\s|exactly\s)?(?:one|a\ssingle|1)\s(?:request|call|query|stream|generation)s?"
    r"(?:\s(?:running|open|active|in\sflight|going|outstanding)(?:(?=\s?(?:[,.;)\n]|$))|\s(?:at\s(?:a|any|one|the\ssame)\stime|at\sonce|at\sany\smoment))|\s(?:at\s(?:a|any|one|the\ssame)\stime|at\sonce|at\sany\smoment))\)?"
)
# "has to be through in two weeks": within so many days.
_WEEKS = Gated(
    r"(?<![a-z])(?:(?:be|is|are|get|gets|been)\s)?(?:through|done|finished|complete[d]?|ready|over)\s(?:with(?:in)?|in)\s(?:about\s|at\smost\s|max(?:imum)?\s)?(?P<n>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen)\s(?P<unit>days?|weeks?)(?![a-z])"
)
# "日均请求 80 万左右", "日均 80 万次"
_DAILY_CHINESE = Gated(
    r"(?:日均(?:请求|调用|访问|对话|问答)?(?:量|数|次数)?|日(?:请求|调用|访问|对话|问答)(?:量|数|次数))\s?(?:大?约|大概|差不多)?\s?(?P<n>\d[\d.]{0,6}\s?[万亿千]?)\s?(?:左右|上下)?\s?(?:次|个|条)?(?:请求|调用|对话)?(?=\s?[,;。:]|$)"
)
# "token rate at least 20 per second per user": the noun goes behind the figure.
_TOKEN_RATE = Gated(
    r"(?<![a-z])(?:token|decode|decoding|generation|output|typing|reading)\s(?:rate|speed)s?((?:[\s:=]|(?:of|is|must\sbe|should\sbe|at\sleast|min(?:imum)?|above|over|about|around|no\sless\sthan|not\sbelow)(?![a-z]))*"
    r"\d{1,4}(?:\.\d)?)\s?(?=(?:per|/|a|each|every)\s?s(?:ec(?:ond)?)?\s?(?:per|/|for\s(?:each|every)|a)\s?(?:user|request|stream|session|person|client))",
)
# "People get annoyed if nothing shows up for 2 seconds": the first token is due by then.
_NOTHING_SHOWS = Gated(
    r"(?<![a-z])(?:if|when)\s(?:(?:there's|they\ssee)\snothing|nothing\s(?:shows(?:\sup)?|appears|comes(?:\sback|\sup|\sout)?|happens|moves|is\sthere)|(?:the\s|they\s(?:see|get)\s)?(?:no|first)\s(?:first\s)?(?:token|word|text|reply|answer)s?\s"
    r"(?:(?:shows(?:\sup)?|appears|comes)|isn't\s(?:there|out|visible)))\s(?:for|within|in|after|by)\s(?:about\s|some\s|more\sthan\s)?(?P<time>\d[\d.]{0,5}\s?(?:ms|milliseconds?|s|sec|seconds?))(?![a-z])",
)
# "单路输入": of each request.
_OF_ONE_STREAM = re.compile(r"单路(?=输入|输出|平均|请求)")
# "at most 56 generations at once": those are requests.
_SERVED_AT_ONCE = Gated(
    r"(?<![\w.])(?P<n>\d[\d,]{0,8})\s(?:generations|completions|answers|replies|responses|outputs|decodes|drafts|rollouts|calls)\s"
    r"(?=(?:(?:running|active|going|in\sprogress|underway)(?:[,.;)\n]|$|\s(?:at|in|and))|(?:talking\sto\sthe\smodel\s|being\s[a-z]{3,12}\s)?(?:at\s(?:once|a\stime|any\s(?:one\s)?time|the\ssame\s(?:time|moment))|in\s(?:parallel|flight)|simultaneous|concurrent)))",
)
# "Longest prompt to be accepted: 32,000 tokens": the most beside the usual length.
_LONGEST = Gated(
    r"(?<![a-z])(?P<most>longest|largest|biggest)\s(?:prompt|input|document|request)s?(?:\s(?:to\sbe\saccepted|(?:we|it|you)\s(?:must\s|need\sto\s|have\sto\s)?(?:accept|support|see|saw|get|had)|accepted|allowed|supported|possible|so\sfar))?"
    r"(?:\s(?:is|are|was|of|at|has|had))?\s?[:|,]?\s?(?=\d)",
)
# "2k/700 requests": their two lengths.
_LENGTHS_OF_REQUESTS = Gated(
    r"(?<![\w./])(\d[\d.,]{0,8}k|\d{3,6})\s?/\s?(\d[\d.,]{0,8}k|\d{2,6})\s(?=(?:token\s)?(?:requests|calls|prompts|chats|traffic)(?![a-z]))"
)
# "filing goes in (1,100 tokens), a 60-token verdict comes out".
_GOES_IN = Gated(r"(?<![a-z])(?:goes|go|is\sput|comes)\sin\s?\(\s?(?P<n>\d[\d,]{0,9}k?)\stok(?:en)?s?\s?\)")
_COMES_OUT = Gated(
    r"(?<![\w.,])(?P<n>\d[\d,]{0,9}k?)[\s\-]tokens?\s(?:(?!(?:and|but|which|that)\s)[a-z]{2,14}\s){0,3}?(?:comes?|goes|go)\s(?:out|back)(?![a-z])"
)
# "每2分钟问一次", "每5分钟提两个问题", "平均每3分钟每人发一次请求".
_EVERY_SO_OFTEN = Gated(
    r"每?(?P<n>\d{1,4}(?:\.\d)?|[一二两三四五六七八九十]{1,3})\s?个?(?P<unit>秒|分钟|小时)钟?(?P<who>每(?:个?人|[名位][\u4e00-\u9fff]{1,3}?))?(?:就|会|才|左右|大概|大约|要|平均){0,2}"
    r"(?:触发|发起|发送?|提交?|提出|调用|请求|提问|问|查询?|刷新?|用|来|点|上报|使用){0,2}(?P<how>[一二两三四五1-9])\s?(?:次|(?:个|条|句)(?:新的?)?(?:问题|提问|请求|查询|消息))(?:请求|调用|提问)?"
)

# "每小时请求数 9,000"
_NUMBER_OF_REQUESTS = Gated(
    r"每(?P<time>秒|分钟|小时|天|日)的?(?:请求|调用|问答|提问)(?:数量?|量|次数)\s?[:是为约]?\s?(?P<n>\d[\d,.]{0,11}\s?[万千]?)(?![\d%])"
)

# "we employ 640 agents": so many people, who need not ask at once.
_EMPLOYED = Gated(
    r"(?<![a-z])(?P<verb>employ(?:s|ed|ing)?)\s(?:(?:about|some|around|roughly|over)\s)?(?P<n>\d[\d,]{0,7})\s(?!people|staff)[a-z]{4,16}(?![a-z])"
)


def _so_often(match: re.Match[str]) -> str:
    each = (read_number(match["how"]) or 1) / (read_number(match["n"]) or 1)
    return f"{match['who'] or ''}每{match['unit']}{each:.12g}次"


def _within_days(match: re.Match[str]) -> str:
    return f"within {(read_number(match['n']) or 1) * (7 if match['unit'].startswith('week') else 1):g} days"


# "每 20 个里有 1 个在等回答": a share of people.
_ONE_OF_SO_MANY = Gated(
    r"每\s?(?P<of>\d{1,3})\s?[个名位人]人?(?:里|中|当中|之中)?面?(?:大?约|就|会)?有\s?(?P<n>\d|[一两二三])\s?[个名位人]人?(?=同时|正?在|有请求)"
)


REWRITTEN: Rewriting = (
    (_ONE_OF_SO_MANY, lambda match: f"{100 * (read_number(match['n']) or 1) / int(match['of']):g}% "),
    (_EMPLOYED, r"\g<verb> \g<n> people"),
    (_NUMBER_OF_REQUESTS, r"每\g<time> \g<n> 次请求"),
    (_ONE_EACH_AT_A_TIME, ""),
    (_WEEKS, _within_days),
    (_DAILY_CHINESE, r"每天 \g<n> 次请求"),
    (_TOKEN_RATE, r"\1 tokens "),
    (_NOTHING_SHOWS, r"; first token within \g<time>;"),
    (_OF_ONE_STREAM, "每个请求"),
    (_SERVED_AT_ONCE, r"\g<n> requests "),
    (_LONGEST, r"\g<most> "),
    (_LENGTHS_OF_REQUESTS, r"input \1, output \2, "),
    (_GOES_IN, r"input \g<n> tokens"),
    (_COMES_OUT, r"output \g<n> tokens"),
    (_EVERY_SO_OFTEN, _so_often),
)
