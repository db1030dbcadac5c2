"""The parts of a prompt as one length: "380 tokens of mail, the thread 1,220, snippets 2,400".

Parts are amounts with a word for material of a prompt, joined as a list. Their sum takes their place in the text, with
the part that all requests share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..patterns.gated import Gated
from ..patterns.quantities import find_quantities

_N = r"(?<![\dA-Za-z.,])\d(?:[\d,]{0,10}\d)?(?:\.\d{1,3})?(?:\s?k(?![a-z]))?(?![\d%]|[a-su-z])"
_ABOUT = r"(?:(?:about|around|roughly|some|on\saverage|approximately|an\saverage\sof|only|~|another|averages?)\s?){0,2}"
_NOUN = (
    r"system\s(?:prompts?|messages?|instructions?)|instructions?|templates?|rules?|rubrics?|schemas?|definitions|style\sguide|persona|"
    r"examples?|few[\s\-]shots?|checklists?|boilerplate|guidelines?|preamble|polic(?:y|ies)|headers?|context|history|snippets?|chunks?|"
    r"excerpts?|passages?|threads?|transcripts?|diffs?|code|files?|letters?|mails?|e-?mails?|tickets?|questions?|quer(?:y|ies)|data|documents?|"
    r"docs|articles?|abstracts?|contracts?|records?|reports?|conversation|messages?|turns?|retrieval|metadata|pages?|paragraphs?|results|images?|screenshots?|logs?|text|research|tables?|rows?|cases?|notes?|charts?|profiles?|chats?|dialog(?:ue)?s?|chapters?|sections?|descriptions?|(?:user\s)?input|scheme"
)
_MATERIAL = (
    rf"(?:[a-z][a-z'\-]{{1,14}}\s){{0,3}}?(?<![a-z])(?:{_NOUN})(?![a-z]|\s(?:{_NOUN})(?![a-z]))(?:\sso\sfar|\sitself)?"
    rf"(?:\s(?:and|&)\s(?:{_NOUN})(?![a-z])(?!\s?[\d(:=]|\s(?:is|are|of|at|with|has|have)(?![a-z])))?"
)
# "of the lecture notes", behind a part: where it is taken from.
_FROM = (
    r"(?:\s(?:out\sof|from|of|in)\s(?:the|our|its|an?|earlier|previous)\s[a-z\-]{3,14}"
    r"(?:\s(?!and|plus|with|then)[a-z\-]{3,14})?)?"
)
_MATERIAL_CHINESE = (
    r"[^\d,;。:()\s]{0,6}?(?:系统提示词?|提示词|指令|模板|规则|历史(?:对话|消息)?|上下文|检索(?:内容|片段|结果)?|文档|正文|片段|问题|提问|"
    r"用户输入|消息|对话|画像|说明|表结构|原文|简历|合同|病历|工单|邮件)"
)
_T = r"(?:[\s\-]?tokens?(?![a-z])|\s?toks?(?![a-z])|\s?个?\s?token)"
_SAME = (
    r"(?:,?\s?\(?(?:(?:that|which)\s(?:(?:is|are|stays?)\s)?(?:never\schanges?|always\s(?:the\ssame|identical)|the\ssame|identical|fixed|constant)|"
    r"(?:always\s)?(?:the\s)?(?:same|identical|fixed)(?:\s(?:in|for|every|each|to|across)(?:\s(?:everybody|everyone|all|every|each|time|request|call|one|users?)(?![a-z])){0,2})?|所有请求都?一样|每次都?一样|固定不变|都?相同)\)?)?"
)
_PART = Gated(
    rf"(?:{_ABOUT}(?P<a>{_N})(?:{_T})?\s(?:of\s)?(?:(?:the|our|its|an?|some)\s)?(?:{_MATERIAL})|"
    rf"(?:{_MATERIAL})(?:,?\s(?:which\s)?(?:(?:is|are|of|at|has|have|takes?|makes?|adds?|with|:|=)\s){{0,2}}|\s?[:=(]\s?|\s)(?:{_ABOUT})(?P<b>{_N})(?:{_T}(?:\sof\s(?:the\s)?{_MATERIAL})?)?(?:\son\saverage)?\)?|"
    rf"{_ABOUT}(?P<e>{_N})(?:{_T})(?:\sof\s[a-z\-]{{3,16}}(?:\s[a-z\-]{{3,16}})?)?(?=\s?(?:plus(?![a-z])|\+))|"
    rf"(?<!每秒)(?<!每秒\s)(?<!每分钟)(?<!每分钟\s)(?<!每小时)(?<!每小时\s)(?<!每天)(?<!每天\s)(?P<c>{_N})(?:{_T})?\s?的?(?:{_MATERIAL_CHINESE})|(?:{_MATERIAL_CHINESE})\s?(?:大?约|平均|是|为|有|:)?\s?(?P<d>{_N})(?:{_T})?){_FROM}{_SAME}"
)
# "2,200 tokens of lore + 300 of player state + call so far 300": any part behind a sign or "plus".
_MORE = Gated(
    rf"(?:{_ABOUT}(?P<a>{_N})(?:{_T})?\sof\s(?:(?:the|our|its|an?|some)\s)?[a-z\-]{{3,16}}(?:\s(?!and|plus|with|then|per|for)[a-z\-]{{3,16}})?(?![a-z])|"
    rf"(?:[a-z][a-z\-]{{1,14}}\s){{1,3}}?(?:(?:of|is|about|~|:|=|\()\s?){{0,2}}(?P<b>{_N})(?:{_T})?\)?|[\u4e00-\u9fff]{{2,8}}\s?(?:大?约|平均|:)?\s?(?P<c>{_N})(?:{_T})?){_SAME}"
)
_ADDED = Gated(r"\+|(?<![a-z])plus(?![a-z])")
_JOINED = Gated(
    r"(?:\s?(?:[,;+&]|\n\s?[-*•]|(?<![a-z])(?:and|plus|then|with|after|on\stop(?:\sof)?|followed\sby|as\swell\sas|beside)(?![a-z])|\.\s(?=our|the|its|on\stop)|加上?|再加|外加|另加|和|及|、|另外|还有)\s?){1,4}"
    r"(?:(?:(?:of\s)?(?:that|it)|there\s(?:is|are)|the|an?|our|its|another|fixed|static|constant|common|shared)\s){0,3}"
)
_OUTPUT = Gated(
    r"(?<![a-z])(?:out(?!\sof(?![a-z]))|thinking|reasoning|outputs?|answers?|repl(?:y|ies)|completions?|responses?|generates?d?|back|summar(?:y|ies)|writes?|returns?|verdicts?)(?![a-z])|输出|回答|回复|答案"
)
_SHARED = Gated(
    r"system\s(?:prompt|message|instruction)|系统提示|(?<![a-z])(?:same|identical|fixed|never\schanges?|constant)(?![a-z])|固定|一样|相同|不变"
)
# "900 + 1,800 + 300": parts whose unit stands behind them.
_ARE_ADDED = Gated(r"[^+,;.]{1,60}(?:\+[^+,;.]{1,60}){1,11}")
# "..., 2,880 tokens in all" behind the parts: their sum.
_TOTAL = Gated(
    rf",?\s?(?:together|in\s(?:total|all)|all\sin\sall|so|=|总共|合计|一共|共|加起来)\s?(?:about|约)?\s?(?P<a>{_N})(?:{_T})|,?\s?(?:makes\s|that's\s)?(?P<b>{_N})(?:{_T})\s(?:together|in\s(?:total|all)|altogether)"
)
_NEAR = 40
_MOST_LISTS, _MOST_PARTS = 40, 12
_LEAST = 16  # tokens: "2 rules and 3 examples" have no length


def with_parts_together(text: str) -> tuple[str, list[str]]:
    """A normalised text with each list of prompt parts as one length, and a note on each."""
    notes: list[str] = []
    position: int = 0
    for _ in range(_MOST_LISTS):
        if (first := _PART.search(text, position)) is None:
            break
        parts = [first]
        while len(parts) < _MOST_PARTS and (joined := _JOINED.match(text, parts[-1].end())) is not None:
            following = _PART.match(text, joined.end()) or (
                _MORE.match(text, joined.end()) if _ADDED.search(joined.group()) else None
            )
            if following is None or _is_of_output(text, following, joined.start()):
                break
            parts.append(following)
        position = parts[-1].end()
        amounts = [_tokens(part) for part in parts]
        if (total := _TOTAL.match(text, position)) is not None and _tokens(total) == sum(amounts):
            position = total.end()
        start = first.start()
        words = text[start:position]
        if len(parts) < 2 or min(amounts) < _LEAST or _is_of_output(text, first, start):
            continue
        if len(parts) == 2 and not _is_sum(text, parts):
            continue
        if "token" not in words.lower() and not (
            _ARE_ADDED.fullmatch(words) and "token" in text[position : position + _NEAR].lower()
        ):
            continue
        shared = sum(amount for part, amount in zip(parts, amounts, strict=True) if _SHARED.search(part.group()))
        length = _length(sum(amounts), shared, words)
        notes.append(f"{' '.join(words.split())[:200]!r} read as an input of {sum(amounts):,.0f} tokens")
        text = f"{text[:start]}{length}{text[position:]}"
        position = start + len(length)
    return text, notes


def _is_sum(text: str, parts: Sequence[re.Match[str]]) -> bool:
    """Whether two parts are of one prompt: words add them, or an output beside them leaves them nothing else to be."""
    between = text[parts[0].end() : parts[1].start()]
    around = f"{text[: parts[0].start()]} {text[parts[1].end() :]}"
    return between.strip(" ,;") != "" or _OUTPUT.search(around) is not None


def _tokens(part: re.Match[str]) -> float:
    words = next(filter(None, (part.groupdict().get(name) for name in "abcde")))
    quantities = find_quantities(f"{words.strip()} tokens")
    return quantities[0].value if quantities else 0.0


def _is_of_output(text: str, part: re.Match[str], start: int) -> bool:
    """Whether an amount is output, by its own words or those right before or behind it."""
    behind = re.split(r"[,;.\n]|\s(?:and|but|while|then)\s", text[part.end() : part.end() + _NEAR])[0]
    before = re.split(r"[,;.\n]", text[max(0, start - _NEAR) : start])[-1]
    return _OUTPUT.search(f"{before} {part.group()} {behind}") is not None


def _length(whole: float, shared: float, words: str) -> str:
    if not words.isascii():
        return f"输入 {whole:.0f} token" + (f", 其中系统提示词 {shared:.0f} token 相同" if shared else "")
    return f"input of {whole:.0f} tokens" + (
        f", with a shared system prompt of {shared:.0f} tokens" if 0 < shared < whole else ""
    )
