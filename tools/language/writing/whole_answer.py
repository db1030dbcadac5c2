"""Limits on a whole answer as people put them: "a complete draft within 12 s", "60 s for a review", "back in 20 s".

They are written as limits from end to end, which the reader of limits knows. The first token is no whole answer.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated

_TIME = r"(?<![\w.])(?P<time>\d{1,4}(?:[.,]\d{1,2})?\s?(?:ms|s|secs?|seconds?|min|minutes?))(?![a-z/])"
_BY = r"(?:in|within|after|under|below|by)\s(?:(?:at\smost|no\smore\sthan|less\sthan|under|about|max(?:imum)?)\s)?"
_THING = (
    r"(?:answers?|repl(?:y|ies)|responses?|drafts?|letters?|documents?|reports?|summar(?:y|ies)|reviews?|results?|translations?|calls?|"
    r"requests?|completions?|texts?|verdicts?|mails?|e-?mails?|memos?|quer(?:y|ies)|tickets?|notes?|classifications?|extractions?|labels?)"
)
_WHOLE = r"(?:complete|full|whole|entire|finished)"
_FIRST = r"(?!\s(?:token|word|character|sign|byte|chunk|to\sfirst|until\s(?:the\s)?first|per\s(?:output\s)?token))"
_CHINESE = Gated(
    r"(?P<time>(?<![\w.])\d{1,4}(?:\.\d{1,2})?\s?(?:毫?秒|ms|s(?![a-z])))钟?(?:之内|以内|内)(?:就|要|必须|能)?(?:整[条篇个体段]|全部|完整地?)(?:的?(?:回复|回答|结果))?(?:返回|出完|生成完?|给出|完成|输出)"
)
# "完整返回 P95 不超过 20 秒"
_CHINESE_WHOLE = Gated(
    r"(?:整[条篇个体段]|完整地?|全部)(?:的?(?:回复|回答|结果|答案|内容))?(?:返回|响应|输出|生成|完成)?(?:的?(?:时间|时延|延迟|耗时))?"
    r"(?=[^,;。\n\d]{0,6}(?:p\d\d)?[^,;。\n\d]{0,10}\d{1,4}(?:\.\d{1,2})?\s?(?:毫?秒|ms|s(?![a-z])))"
)
_RULES = (
    # "a complete answer within 12 s", "the full draft in 25 seconds".
    Gated(
        rf"(?<![a-z])(?:an?\s|the\s|each\s|every\s)?{_WHOLE}\s(?:[a-z]{{3,14}}\s)?{_THING}\s(?:(?:must|should|has\sto|is\sto|may)\s)?(?:be\s(?:there|back|ready|done)\s|take\s)?{_BY}{_TIME}{_FIRST}"
    ),
    # "back after 1.5 minutes at the latest", "finished in 60 seconds", "all done within 8 s", "through in 10 s".
    Gated(
        rf"(?<![a-z])(?:(?:should|must|has\sto|have\sto|needs?\sto|is|are|be|get|gets|comes?|come|all)\s){{0,3}}(?:back|finished|done|complete[d]?|ready|through|delivered|answered)\s{_BY}{_TIME}{_FIRST}(?:\sat\sthe\slatest)?"
    ),
    # "12 s until the complete draft".
    Gated(rf"{_TIME}\s(?:until|till|to|for)\s(?:the\s|an?\s|each\s)?{_WHOLE}\s(?:[a-z]{{3,14}}\s)?{_THING}(?![a-z])"),
    # "60 s for a review at p95 is okay".
    Gated(
        rf"{_TIME}\s(?:for|per)\s(?:an?|one|each|every|the)\s(?:single\s|whole\s)?{_THING}(?![a-z])(?=\s?(?:[,.;:()\n]|$|at\s|in\s|is\s|are\s|p\d\d))"
    ),
    # "no request may take more than 30 s".
    Gated(
        rf"(?<![a-z])(?:no|never\san?)\s(?:single\s)?{_THING}\s(?:may|must|should|can|shall|is\sto)\s(?:ever\s)?(?:take|last|need|run)\s(?:for\s)?(?:more|longer)\sthan\s{_TIME}{_FIRST}"
    ),
    # "the whole thing may take 20 s".
    Gated(
        rf"(?<![a-z])(?:the\s)?(?:whole|entire)\s(?:thing|call|request|round\strip|job|lot)\s(?:(?:must|should|has\sto|may|can)\s)?(?:not\s)?(?:take|be\sdone|finish|fit|last|exceed)\s(?:longer\sthan\s|more\sthan\s|up\sto\s|in(?:to)?\s|within\s|at\smost\s)?{_TIME}{_FIRST}"
    ),
)
# "The first token is back within 2 s".
_OF_FIRST = Gated(
    r"(?<![a-z])(?:first|tokens?|words?|ttft|tpot|itl|tbt|setup|upload|load(?:ed|ing)?|start(?:ed|up)?)(?![a-z])"
)
_NEAR = 40
_WE_DID = Gated(r"(?<![a-z])(?:we|they|i|it)\s$")
# "for 95%", "(95 %)" behind a time: of the requests.
_SHARE_BEHIND = Gated(
    r"(?P<time>\d\s?(?:ms|s|secs?|seconds?|min|minutes?))(?P<latest>\sat\sthe\slatest)?,?\s(?:for\s(?P<a>50|90|95|99)\s?%(?:\sof\s(?:the\s)?(?:cases|time))?|\(\s?(?P<b>50|90|95|99)\s?%\s?\))(?=\s?[.,;:)\n]|$|\s(?:and|but)(?![a-z]))"
)


def with_whole_answers(text: str) -> str:
    """A normalised text with limits on whole answers as "end to end within 12 s", and shares as percentiles."""
    text = _SHARE_BEHIND.sub(lambda match: f"{match['time']}{match['latest'] or ''} p{match['a'] or match['b']}", text)
    for rule in _RULES:
        text = rule.sub(_from_end_to_end, text)
    return _CHINESE_WHOLE.sub("端到端", _CHINESE.sub(r"端到端 \g<time>以内", text))


def _from_end_to_end(match: re.Match[str]) -> str:
    before = re.split(r"[,.;:\n]", match.string[max(0, match.start() - _NEAR) : match.start()])[-1]
    if _WE_DID.search(match.string, max(0, match.start() - 8), match.start()) and "answered" in match.group().lower():
        return match.group()  # "last year we answered within 300 ms"
    return match.group() if _OF_FIRST.search(before) else f" end to end within {match['time']}"
