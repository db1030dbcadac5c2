"""What prompts share, in words: system prompts, turns of conversations, the time that users think between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from ..plan.lengths import Arrivals
from ..plan.prefixes import SharedPrefixes
from .claims import Claims
from .page import Page
from .quantities import read_number, read_whole

_WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|hundred"

_DIGITS = "一二两三四五六七八九十百千"


def _number(name: str) -> str:
    return rf"(?<![A-Za-z0-9.,{_DIGITS}])(?P<{name}>\d[\d,.]{{0,11}}(?:\s?k(?![a-z]))?|{_WORDS}|[{_DIGITS}]{{1,5}})"


def _any_of(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_TOKENS = r"(?:[\s-]?tokens?)?"
_SYSTEM = r"(?:shared\s|common\s)?system[\s-](?:prompt|message|prefix)"
_BY_ALL = (
    r"(?:,?\s?(?:(?:that|which)\s(?:is\s)?)?(?:shared|common|the\ssame)\s(?:by|to|for|across|between)\s"
    r"(?:all|every(?:one|body)?)(?:\s(?:the\s)?(?:requests?|users?|prompts?|chats?|conversations?))?)?"
)
_SYSTEMS = _any_of(
    rf"{_number('count')}\s(?:different\s|distinct\s)?system[\s-]prompts\s(?:of|with)\s{_number('tokens')}{_TOKENS}"
    r"(?:\seach)?",
    rf"{_number('tokens')}{_TOKENS}[\s-](?:long\s)?{_SYSTEM}(?!s){_BY_ALL}",
    rf"{_SYSTEM}(?!s){_BY_ALL}\s?(?:of|with|is|has|:|=)?\s?(?:about\s|~\s?)?{_number('tokens')}{_TOKENS}{_BY_ALL}"
    r"(?![\s-]?turn)",
    rf"(?:shared|common)\s(?:prompt\s)?prefix\sof\s{_number('tokens')}[\s-]?tokens?{_BY_ALL}",
    rf"(?:共享|公共|相同)?的?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?)?\s?的?\s?(?:共享|公共)?的?系统提示词?",
    rf"系统提示词?\s?(?:长度)?\s?(?:为|是|有|:)?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?)?",
)
_CHATS = r"(?:chats?|conversations?|dialog(?:ue)?s?|sessions?)"
_TURNS = _any_of(
    rf"{_number('turns')}[\s-]turns?(?=[\s-](?:\w+\s)?{_CHATS}(?![a-z]))",
    rf"(?<=[a-z])\s(?:of|with|have|has|having|take|takes)\s(?:about\s)?{_number('turns')}\sturns?(?:\seach)?(?![a-z])",
    rf"{_number('turns')}\sturns?\s(?:per|a|each|in\s(?:a|each|every))\s{_CHATS}?",
    rf"{_number('turns')}\s?轮(?:次)?的?(?=对话|会话|聊天|多轮)",
    rf"(?<=[话天])\s?(?:为|有|共|平均)?\s?{_number('turns')}\s?轮",
)
_TIME = r"\s?(?P<unit>s|sec|secs|seconds?|min|mins|minutes?|秒|分钟)(?![a-z])"
_THINK = _any_of(
    rf"{_number('time')}{_TIME}\s?(?:of\s)?(?:think(?:ing)?[\s-]?times?|to\sthink|的?思考时间)",
    rf"(?:think(?:ing)?[\s-]?times?|思考时间)\s?(?:of|is|=|:|为|是)?\s?(?:about\s|~\s?)?{_number('time')}{_TIME}",
    rf"(?:users?|people|they)\sthink\s(?:for\s)?(?:about\s)?{_number('time')}{_TIME}",
    rf"{_number('time')}{_TIME}\s(?:pauses?\s|apart\s)?between\s(?:the\s)?turns",
)


def read_prefixes(page: Page, claims: Claims) -> None:
    """Read what prompts share and how long users think, in English and Chinese."""
    fields: dict[str, Any] = {}
    words: list[str] = []
    for match, said in _matches(page, _SYSTEMS):
        tokens, count = read_whole(match["tokens"]), read_whole(match.groupdict().get("count"))
        if tokens:
            fields |= {"system_tokens": tokens} | ({"system_prompts": count} if count and count > 1 else {})
            words.append(said)
    for match, said in _matches(page, _TURNS):
        turns = read_whole(match["turns"])
        if turns == 1:
            claims.reading(f"{said!r} read as requests that repeat nothing")
        elif turns:
            fields["turns"] = turns
            words.append(said)
    if fields:
        claims.claim("prefixes", _checked(claims, SharedPrefixes, fields, words), ", ".join(words))
        claims.reading(f"{', '.join(words)!r} read as {claims.values['prefixes']}")
    for match, said in _matches(page, _THINK):
        value = read_number(match["time"])
        if value:
            minutes = match["unit"].lower().startswith(("m", "分"))
            arrivals = _checked(claims, Arrivals, {"think_time_s": value * (60 if minutes else 1)}, [said])
            claims.claim("arrivals", arrivals, said)


def _matches(page: Page, patterns: tuple[re.Pattern[str], ...]) -> Iterator[tuple[re.Match[str], str]]:
    """What says one thing, and its words as they were written; what is said not to be says nothing."""
    for pattern in patterns:
        for match in page.search(pattern):
            if not page.is_negated(*match.span()):
                yield match, page.take(*match.span()).strip()


def _checked(claims: Claims, kind: type[Any], fields: dict[str, Any], words: list[str]) -> Any:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise claims.refusal(f"{', '.join(words)}: {error.errors()[0]['msg']}") from None
