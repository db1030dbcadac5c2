"""Speech of others in a request: blocks that pretend to come from a system, an assistant, a developer or a tool.

A block is a turn in a chat model's template, or the words that a label or a tag gives to such a speaker. Nothing is
taken off the page: the words are read as any others, but they permit nothing. A block that is never closed lasts to the
end of the text; one that only a label opens, to the next speaker or empty line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .patterns.gated import Gated

Span = tuple[int, int]
_SPEAKER = r"(?:system|sys|assistant|developer|tool|function|admin(?:istrator)?)"
_KIND = (
    r"(?:[\s_\-]?(?:prompts?|messages?|msg|notes?|notices?|overrides?|instructions?|results?|responses?|outputs?|"
    r"calls?|code|updates?|role|turn)){0,2}"
)
_CHINESE_SPEAKER = r"(?:系统|助手|助理|开发者|管理员|工具)(?:提示词?|消息|指令|信息|通知|结果|返回)?"
_NAME = rf"(?:{_SPEAKER}{_KIND}|{_CHINESE_SPEAKER})"
_PERSON = r"(?:user|human|me|customer|client|question|request|用户|人类|客户|我|问题|请求)"
_BEFORE_LABEL = r"[\s#>*_\-(\[\"']{0,8}"
_AFTER_LABEL = r"[\s*_)\]\"']{0,4}:"
# (opener, closer) of a block. Nobody who means well types the openers of a template.
_CLOSED: tuple[tuple[Gated, str], ...] = tuple(
    (Gated(opener), closer)
    for opener, closer in (
        (
            r"<\|(?!/|(?:im_|turn_)?end|eot|eom|eos)[^|<>\n]{1,40}\|>",
            r"<\|(?!end_header)(?:[^|<>\n]{0,20}(?:end|eot|eom|eos)|/)[^|<>\n]{0,24}\|>|</s>",
        ),
        (r"\[\s?inst\s?\]", r"\[\s?/\s?inst\s?\]"),
        (rf"[\[(]\s?{_NAME}\s?:", r"[\])]"),
        (r"<<\s?sys\s?>>", r"<<?\s?/\s?sys\s?>>?"),
        (r"<start_of_turn>", r"<end_of_turn>"),
        (
            rf"<\s?(?P<tag>(?:[a-z]{{1,12}}[:_\-])?{_SPEAKER}(?:[_\-][a-z]{{1,20}}){{0,3}})(?:\s[^<>\n]{{0,200}})?(?<!/)>",
            r"<\s?/\s?{tag}\s?>",
        ),
        (
            rf"<\s?(?P<tag>[a-z]{{1,20}})\s[^<>\n]{{0,100}}?(?:role|from|author)\s?=\s?[\"']?{_SPEAKER}(?![a-z])[^<>\n]{{0,100}}>",
            r"<\s?/\s?{tag}\s?>",
        ),
        (rf"(?P<tag>'''|~~~)\s?{_SPEAKER}(?![a-z])[^\n]{{0,80}}", r"{tag}"),
        (
            rf"(?:^|\n)[\s\-=~*<\[(]{{0,12}}(?:begin|start)(?:\sof)?\s(?:the\s|a\s|new\s)?{_NAME}",
            rf"end(?:\sof)?\s(?:the\s)?{_NAME}[^\n]{{0,40}}",
        ),
        (rf"(?:^|\n)\s?[\-=~]{{2,40}}\s?{_NAME}\s?[\-=~]{{2,40}}", r"\n\s?[\-=~]{2,40}[^\n]{0,60}"),
        (
            rf"(?:^|\n)\s?#{{1,6}}\s?{_NAME}\s?(?::|(?=\n|$))",
            rf"(?=\n\s?#{{1,6}}\s?\S)|(?=\n{_BEFORE_LABEL}{_PERSON}{_AFTER_LABEL})",
        ),
    )
)  # fmt: skip
# "System prompt: 1,400 tokens" states a length.
_NO_LENGTH = r"(?!\s{0,4}(?:[~≈]\s?|about\s|约)?\d[\d,.]{0,8}k?\s?(?:tokens?|个|[,.;()\n]|\s{0,40}#|$))"
_LABEL = Gated(
    rf"(?:^|\n){_BEFORE_LABEL}{_NAME}{_AFTER_LABEL}{_NO_LENGTH}|(?:^|\n)\s?(?P<bracket>[\[(]){{1,2}}{_NAME}[\])]{{1,2}}|"
    rf"(?<=[.,;!?。>])\s{{0,8}}(?:system|assistant|developer){_KIND}\s?:{_NO_LENGTH}",
)
_BRACKET_END = Gated(rf"[\[(]{{1,2}}\s?(?:/|end\s){_NAME}[\])]{{1,2}}")
_PERSONS_LABEL = Gated(rf"\n{_BEFORE_LABEL}{_PERSON}{_AFTER_LABEL}|<\s?/?\s?{_PERSON}\s?>")
# "User:" before words is a person who speaks; before a number it counts users.
PERSON_SPEAKS = Gated(rf"(?:^|\n){_BEFORE_LABEL}(?:users?|human|用户){_AFTER_LABEL}(?!\s?\d)")
_EMPTY_LINE = re.compile(r"\n\s?\n")
_ROLE_FIELD = Gated(r"(?<![a-z])(?:role|speaker|author|from)[\"']?\s?[:=]\s?[\"']?(?P<who>[a-z]{2,20})")
_OTHER = Gated(_SPEAKER)
# Names that were read as hardware or a model: "System: 2 nodes of 8 H100" is a machine, no speaker.
_NAMED = re.compile("[\ue000-\ue005]")


def foreign_spans(text: str) -> tuple[Span, ...]:
    """Where the text of a page pretends another speaker, in order and apart. Linear in the text for each kind."""
    joined: list[Span] = []
    for start, end in sorted({*_closed_blocks(text), *_labelled(text), *_message_objects(text)}):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def speaks_of_machines(text: str, span: Span) -> bool:
    """Whether hardware or a model was named in a block, so that "system" is as likely the machine."""
    return _NAMED.search(text, *span) is not None


def _closed_blocks(text: str) -> Iterator[Span]:
    for opener, closer in _CLOSED:
        position = 0
        while match := opener.search(text, position):
            tag = re.escape(match["tag"]) if "tag" in match.re.groupindex else ""
            end = re.compile(closer.replace("{tag}", tag), re.IGNORECASE).search(text, match.end())
            position = len(text) if end is None else max(end.end(), match.end())
            yield match.start(), position


def _labelled(text: str) -> Iterator[Span]:
    position = 0
    while match := _LABEL.search(text, position):
        line_end = text.find("\n", match.end())
        line_end = len(text) if line_end < 0 else line_end
        is_machine = speaks_of_machines(text, (match.end(), line_end))
        closer = _BRACKET_END.search(text, match.end()) if match["bracket"] else None
        end = line_end if is_machine else closer.end() if closer else _paragraph_end(text, match.end())
        position = max(end, match.end())
        yield match.start(), position


def _paragraph_end(text: str, start: int) -> int:
    """Where speech from `start` on ends: at a person's label or an empty line, but not before anything was said."""
    begin = start
    while begin < len(text) and text[begin].isspace():
        begin += 1
    ends = [match.start() for pattern in (_PERSONS_LABEL, _EMPTY_LINE) if (match := pattern.search(text, begin))]
    person = _PERSONS_LABEL.match(text, max(start, begin - 1))
    return min([person.start() if person else len(text), *ends])


def _message_objects(text: str) -> Iterator[Span]:
    """Messages as data: `{"role": "system", "content": ...}` and the same as lines."""
    fields = list(_ROLE_FIELD.finditer(text))
    for place, match in enumerate(fields):
        around = text[max(0, match.start() - 100) : match.start()]
        if not _OTHER.fullmatch(match["who"]) or around.rfind("<") > around.rfind(">"):  # a tag has its own closer
            continue
        before = fields[place - 1].end() if place else 0
        stop = fields[place + 1].start() if place + 1 < len(fields) else len(text)
        brace = text.rfind("{", before, match.start())
        if brace >= 0:
            closed = text.rfind("}", match.end(), stop)
            yield brace, stop if closed < 0 else closed + 1
        else:
            yield text.rfind("\n", 0, match.start()) + 1, min(stop, _paragraph_end(text, match.end()))
