"""What prompts share, in words: system prompts, turns of conversations, the time that users think between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from ...plan.lengths import Arrivals
from ...plan.prefixes import SharedPrefixes
from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import read_number, read_whole

_WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|fifty|hundred"

_DIGITS = "一二两三四五六七八九十百千"


def _number(name: str) -> str:
    return (
        rf"(?<![A-Za-z0-9.,{_DIGITS}])(?P<{name}>\d(?:[\d,.]{{0,10}}\d)?(?:\s?k(?![a-z]))?|{_WORDS}|[{_DIGITS}]{{1,5}})"
    )


def _any_of(*patterns: str) -> tuple[Gated, ...]:
    return tuple(map(Gated, patterns))


_TOKENS = r"(?:[\s-]?tokens?)?"
_SYSTEM = r"(?:shared\s|common\s)?system[\s-](?:prompt|message|prefix)"
_BY_ALL = (
    r"(?:,?\s?(?:(?:that|which)\s(?:is\s)?)?(?:shared|common|the\ssame)\s(?:by|to|for|across|between)\s"
    r"(?:all|every(?:one|body)?)(?:\s(?:the\s)?(?:requests?|users?|prompts?|chats?|conversations?))?)?"
    r"(?:\s(?:every\s(?:single\s)?time|each\stime|in\severy\s(?:request|prompt|call)|for\s(?:all|everyone|everybody))|"
    r"\s?\((?:the\s)?(?:same|identical|shared)(?:\s(?:for|by|to)\s(?:all|everyone|everybody))?\)|"
    r"\s?\((?:所有人|大家|每次|全员)?都?(?:一样|相同|共享|共用|不变)的?\))?"
)
_ALIKE = r"(?:(?:shared|common|same|identical|fixed|constant|static|standing|boilerplate)(?![a-z]))"
_WHAT = (
    rf"(?:(?:the|an?|our|always|all|exactly)\s){{0,3}}(?:(?:{_ALIKE}\s){{0,3}}system[\s-](?:prompt|message|prefix|instructions?)|"
    rf"(?:{_ALIKE}\s){{1,3}}(?:[a-z]{{3,12}}\s)?(?:instructions?|preamble|prefix|header|boilerplate|prompt|template|part|context|"
    r"examples|guidelines|rules|text|head|schemas?|descriptions?|definitions?|documentation|catalog(?:ue)?|polic(?:y|ies)|lore|playbook|script|persona|rubric|manual|guide|intro(?:duction)?|document|material))(?![a-z])"
)
_OF = r"of\s(?:which|those|these|that|them|it)(?:\stokens)?"
_ABOUT = r"(?:(?:about|some|roughly|around|the\sfirst)\s|~\s?){0,2}"
# Words about a part that all prompts have: "the policy wording, which goes first and is identical each time".
_SAME = (
    r"(?:(?<![a-z])(?:same(?!\s(?:time|moment|day|hour))|identical|shared|common|fixed|constant|static|unchanged|"
    r"boilerplate|preamble|system[\s-](?:prompt|message|prefix|instructions?))(?![a-z])|"
    r"(?<![a-z])in\s(?:every|each|all)\s(?:single\s)?(?:prompts?|requests?|calls?))"
    r"(?:\s(?:for|by|to|in|across|between|on)\s(?:all|every|each)(?:body|one|thing)?"
    r"(?:\s(?:of\sthem|(?:the\s)?[a-z]{2,14}))?|\s(?:every|each|all\sthe)\s(?:time|call|request))?"
)
_SAME_CHINESE = (
    r"(?:系统(?:提示词?|指令|前缀)|一样|相同|统一|共享|公共|固定|通用|共用|不变)的?"
    r"(?:系统提示词?|指令|前缀|部分|内容|说明|提示词?|话术)?"
)
_BETWEEN = r"(?:(?!(?<![a-z])(?:previous|last|prior|preceding|earlier)(?![a-z]))[^.;\n\d]){0,70}?"
# A part of a prompt: "700 of those are the same system prompt", "of which 650 shared instructions".
_PARTS = _any_of(
    rf"(?:{_number('tokens')}{_TOKENS}\s(?:{_OF}|of\s(?:every|each|all|the)\s(?:prompts?|inputs?|requests?))(?![a-z])|"
    rf"(?<![a-z])(?:the\s)?(?:first|leading|initial)\s{_number('leading')}{_TOKENS}(?:\sof\s(?:every|each|all|the|a)\s(?:prompts?|inputs?|requests?))?\s(?:are|is|being|form|make\sup|hold)(?![a-z])|"
    rf"(?<![a-z]){_OF}\s(?:are\s|is\s)?{_ABOUT}{_number('part')}{_TOKENS}(?![a-z])){_BETWEEN}(?:{_WHAT}|{_SAME}){_BY_ALL}",
    rf"{_number('tokens')}{_TOKENS}\s(?:(?:of|long)\s)?(?:an?\s)?{_WHAT}{_BY_ALL}",
    # "begins with the same 2,500 token policy text", "5,500 tokens, identical for every NPC".
    rf"(?<![a-z])(?:begin|start|open|lead)s?\s(?:off\s)?with\s(?:exactly\s)?(?:the|an?)\s(?:very\s)?{_ALIKE}\s{_ABOUT}{_number('tokens')}{_TOKENS}(?:\s(?:of\s)?[a-z+/&\s-]{{2,40}}?(?=\s?(?:[,.;)\n]|$|then|and|plus)))?",
    rf"{_number('tokens')}[\s-]?tokens?(?:\s(?!of\s)[a-z\s-]{{2,30}}?)?,?\s(?:(?:that|which)\s)?(?:(?:is|are|stays?|remains?)\s)?(?:always\s|exactly\s|byte-for-byte\s|byte[\s-]|literally\s|all\s)?(?:the\ssame|identical|shared|common|fixed|unchanged)\s"
    r"(?:for|across|in|by|between|to|on)\s(?:all|every|each)(?:body|one|thing)?(?:\s(?:of\sthem|the\s)?[a-z]{2,14})?(?![a-z])",
    rf"(?:(?:其中|里面|含|包含|包括|开头|前面?|头)[^\d,;。\n]{{0,10}}?|(?<=[,;(、]))\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?|词元)?[^\d,;。\n]{{0,16}}?{_SAME_CHINESE}"
    r"(?:,?\s?所有(?:请求|人)都?(?:一样|相同|共用))?",
    rf"其中(?:所有人|大家|每次)?都?{_SAME_CHINESE}\s?(?:大?约|为|是|占|有)?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?|词元)?",
)
_PROMPT = Gated(r"prompt|input|token|(?<![a-z])in(?![a-z])|提示|输入|词元")
# A claim that is no field: tokens of a prompt that repeat the request before it, until its length is known.
REPEATED = "repeated_tokens"
_LEAST_SHARED = 32  # "4 cards, 2 of those are shared"
# Behind a system prompt: the length that each user adds; both make the input.
_USERS = (
    r"(?:users?(?:'s)?[\s-](?:parts?|messages?|inputs?|texts?|prompts?|questions?|turns?|content)|variable\s(?:part|text|content)|"
    r"(?:the\s)?(?:actual\s)?(?:question|query)|用户(?:的)?(?:部分|输入|问题|消息|提问|内容|历史)|(?:历史|检索)(?:对话|消息|片段|内容)?|(?:变化|可变)的?部分)"
)
_ADDED = _any_of(
    rf"(?:\s?(?:\+|plus(?![a-z])|加上?|,|;|and(?![a-z])|和)){{1,2}}\s?(?:then\s)?(?:an?\s|the\s)?{_USERS}\s?"
    rf"(?:(?:of|is|are|about|around|on\saverage|averag(?:es|ing|e)|with|平均|大?约|为|是)\s?|[:~=]\s?){{0,3}}{_number('tokens')}{_TOKENS}"
    r"(?:\son\saverage)?",
    rf"\s?(?:\+|plus(?![a-z])|加上?|and(?![a-z]))\s?(?:then\s)?{_ABOUT}(?:(?:an?\s)?average\sof\s)?{_number('tokens')}{_TOKENS}\s?"
    rf"(?:of\s|from\s|for\s|的)?(?:the\s|each\s)?{_USERS}",
    rf"\s?(?:\+|加上?)\s?(?![^\d]{{0,12}}(?:输出|回答|回复|output|answer|completion))[^\d,;。+\n]{{1,14}}{_number('tokens')}\s?(?:个)?\s?(?:tokens?|词元)",
    rf"[^.;\n\d]{{0,60}}?(?<![a-z])(?:adds?|plus|another|further|with)\s(?:ab(?:ou)?t\s|around\s|some\s|roughly\s|another\s|~\s?){{0,2}}{_number('tokens')}{_TOKENS}\s"
    r"(?:on\stop|more|in\saddition|extra|besides|beside\sit|of\s(?:its|their|his|her|your)\sown)(?:\sof\s(?:it|that))?(?![a-z])",
    rf"[^.\n\d]{{0,60}}?(?<![a-z])(?:user|question|query|turn|caller)[^.\n\d]{{0,24}}?(?<![a-z])adds\s(?:ab(?:ou)?t\s|around\s|some\s|roughly\s|another\s|~\s?){{0,2}}{_number('tokens')}{_TOKENS}(?=\s?(?:[,.;)\n]|$))",
    rf"(?:\s?(?:\+|plus(?![a-z])|,|;|and(?![a-z]))){{1,2}}\s?then\s(?:(?:comes?|follows?|there\s(?:is|are))\s)?{_ABOUT}{_number('tokens')}[\s-]?tokens?(?:\s(?:of|from)\s[a-z\s]{{2,30}})?",
)
# "24,000 tokens, 22,000 of which are byte-for-byte the same as that agent's previous call": found in the cache.
_REPEATED = Gated(
    rf"(?:of\s(?:which|those|these|them|that)\s)?{_number('tokens')}{_TOKENS}\s(?:of\s(?:which|those|these|them|that)\s)?(?:are|is)\s(?:always\s|exactly\s|byte-for-byte\s|literally\s|all\s)?"
    r"(?:(?:the\ssame|identical|unchanged|repeated|copied|carried\sover|reused|known)\s?(?:as|to|from|since|in)?\s)(?:in\s|from\s)?(?:that\s|the\s|its\s|their\s|his\s|a\s|an\s)?(?:[a-z]{2,14}'?s?'?\s){0,2}?"
    r"(?:previous|last|prior|preceding|earlier)\s(?:call|request|turn|prompt|message|round|step)s?(?![a-z])",
)
_SYSTEMS = _any_of(
    rf"{_number('count')}\s(?:different\s|distinct\s)?system[\s-]prompts\s(?:of|with)\s{_number('tokens')}{_TOKENS}"
    r"(?:\seach)?",
    rf"{_SYSTEM}(?!s){_BY_ALL}\s?(?:of|with|is|has|:|=)?\s?(?:about\s|~\s?)?{_number('tokens')}{_TOKENS}{_BY_ALL}"
    r"(?![\s-]?turn)",
    rf"(?:shared|common)[\s_](?:prompt[\s_])?prefix(?:[\s_](?:tokens?|length))?\s?[:=]\s?{_number('tokens')}{_TOKENS}{_BY_ALL}",
    rf"(?:共享|公共|相同|固定)的?(?:前缀|系统提示词?)(?:长度|token数?)?\s?[:=]\s?{_number('tokens')}{_TOKENS}(?:\s?\([^()\n]{{0,60}}\))?",
    rf"(?:shared|common)\s(?:prompt\s)?prefix\sof\s{_number('tokens')}[\s-]?tokens?{_BY_ALL}",
    rf"(?:共享|公共|相同)?的?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?)?\s?的?\s?(?:共享|公共)?的?系统提示词?{_BY_ALL}",
    rf"(?<!用户)提示词(?:部分)?固定(?:为|是)?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?|词元)",
    rf"系统提示词?\s?(?:长度)?\s?(?:为|是|有|:)?\s?{_number('tokens')}\s?(?:个)?\s?(?:tokens?)?{_BY_ALL}",
)
_CHATS = r"(?:chats?|conversations?|dialog(?:ue)?s?|sessions?)"
_TURNS = _any_of(
    rf"{_number('turns')}[\s-]turns?(?=[\s-](?:\w+\s){{0,2}}{_CHATS}(?![a-z]))",
    rf"(?:avg\s|average\s|mean\s)?turns?[\s_](?:per|in\san?|in\seach)[\s_]{_CHATS}\s?(?:is|are|[:=])?\s?{_number('turns')}(?![\d.]|\s?tok)",
    rf"(?<=[a-z])\s(?:of|with|have|has|having|take|takes)\s(?:about\s)?{_number('turns')}\s(?:turns|rounds)(?:\seach)?(?![a-z])",
    rf"(?<![a-z]){_CHATS}\s(?:usually\s|typically\s)?(?:go|goes|is|are|last|lasts|run|runs|have|has|take|takes|average|averages)\s(?:on\sfor\s|for\s|on\s)?"
    rf"(?:about\s|around\s|some\s|roughly\s|~\s?)?{_number('turns')}\sturns?(?:\son\saverage|\slong)?(?![a-z])",
    rf"{_number('turns')}\s?轮(?:次)?的?(?=对话|会话|聊天|多轮|问答|交互|来回)",
    rf"(?:对话|会话|聊天|多轮)[^。;\n\d轮]{{0,8}}?{_number('turns')}\s?轮",
    rf"(?<![a-z])(?:multi[\s-]?turn|{_CHATS})(?![a-z])[^.;:\n\d]{{0,24}}?{_number('turns')}\sturns(?![a-z])(?:\son\saverage|\seach)?",
    rf"会话轮[数次]\s?(?:为|是|:)?\s?{_number('turns')}(?![\d.])",
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
    for match, phrase in _matches(page, (_REPEATED,), _is_length):
        claims.claim(REPEATED, read_whole(match["tokens"]), phrase)
    for match, phrase in (*_matches(page, _PARTS, _is_of_prompt), *_matches(page, _SYSTEMS, _is_length)):
        tokens, count = _tokens_of(match), read_whole(match.groupdict().get("count"))
        if tokens:
            fields |= {"system_tokens": tokens} | ({"system_prompts": count} if count and count > 1 else {})
            words.append(phrase)
            _claim_sum(page, claims, tokens, match)
    for match, phrase in _matches(page, _TURNS):
        turns = read_whole(match["turns"])
        if turns == 1:
            claims.reading(f"{phrase!r} read as requests that repeat nothing")
        elif turns:
            fields["turns"] = turns
            words.append(phrase)
    if fields:
        claims.claim("prefixes", checked(claims, SharedPrefixes, fields, words), ", ".join(words))
        claims.reading(f"{', '.join(words)!r} read as {claims.values['prefixes']}")
    for match, phrase in _matches(page, _THINK):
        value = read_number(match["time"])
        if value:
            minutes = match["unit"].lower().startswith(("m", "分"))
            arrivals = checked(claims, Arrivals, {"think_time_s": value * (60 if minutes else 1)}, [phrase])
            claims.claim("arrivals", arrivals, phrase)


def settle_repeated(claims: Claims) -> None:
    """Make the share of a prompt that repeats the request before it the share that the cache holds."""
    tokens, words = claims.drop(REPEATED)
    if tokens is None:
        return
    prompt = claims.values.get("input_tokens", 0)
    if not 0 < tokens < prompt:
        claims.leave_unread(f"{words!r}: which share of a prompt they are takes its length, which was not said")
        return
    claims.claim("prefix_cache_hit_rate", tokens / prompt, words)
    claims.reading(f"{words!r} read as {tokens / prompt:.1%} of each prompt found in the cache")


def settle_measured(claims: Claims) -> None:
    """Let a stated share of prompts that the cache holds count before the one that what they share would give."""
    if claims.has("prefix_cache_hit_rate") and claims.has("prefixes"):
        _, words = claims.drop("prefixes")
        rate = claims.words["prefix_cache_hit_rate"]
        claims.reading(f"{words!r} is a part of the prompt; {rate!r} says how much of it the cache holds")


def _is_length(_: Page, match: re.Match[str]) -> bool:
    """Whether a number may be a number of tokens: "system prompt: 2 rules" states none."""
    return (_tokens_of(match) or 0) >= _LEAST_SHARED or "token" in match.group().lower()


def _tokens_of(match: re.Match[str]) -> int | None:
    """The number of tokens that is shared, wherever it stands in the words."""
    named = match.groupdict()
    return next((read_whole(named[name]) for name in ("tokens", "leading", "part") if named.get(name)), None)


def _is_of_prompt(page: Page, match: re.Match[str]) -> bool:
    """Whether a part of something is part of a prompt, by the words of its sentence."""
    before = re.split(r"[!?。\n]|\.(?!\d)", page.original[: match.end()])[-1]
    return _is_length(page, match) and _PROMPT.search(before) is not None


def _claim_sum(page: Page, claims: Claims, shared: int, match: re.Match[str]) -> None:
    """Claim the input as a system prompt and what each user adds to it, where that stands right behind."""
    added = next(filter(None, (pattern.match(page.text, match.end()) for pattern in _ADDED)), None)
    tokens = read_whole(added["tokens"]) if added is not None else None
    if added is None or not tokens:
        return
    page.take(*added.span())
    words = page.original[match.start() : added.end()]
    claims.claim("input_tokens", shared + tokens, words)
    claims.reading(f"{words!r} read as an input of {shared + tokens:,} tokens, of which {shared:,} are shared")


def _matches(
    page: Page, patterns: tuple[Gated, ...], holds: Callable[[Page, re.Match[str]], bool] | None = None
) -> Iterator[tuple[re.Match[str], str]]:
    """Matches that are not negated (and that `holds` accepts), each with its words, which are taken."""
    for pattern in patterns:
        for match in page.search(pattern):
            if (holds is None or holds(page, match)) and not page.is_negated(*match.span()):
                yield match, page.take(*match.span()).strip()


def checked(claims: Claims, kind: type[Any], fields: dict[str, Any], words: list[str]) -> Any:
    """`fields` as a `kind`; they are refused where they cannot be."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise claims.refusal(f"{', '.join(words)}: {error.errors()[0]['msg']}") from None
