"""Markup around words: HTML, Markdown and forum tags are taken off, so that "<u>4096</u> tokens" is a number of tokens.

What a reader of the page would not see (scripts, comments) or sees struck out is not read. Tags that no browser knows
stay: they may pretend a speaker (`roles.py`). It opens no link; of addresses only a model's name on a hub is kept.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from .spelling import visible

_INLINE = (
    "a|abbr|b|bdi|bdo|big|cite|code|dfn|em|font|i|ins|kbd|mark|q|ruby|samp|small|span|strong|sub|tt|u|var|wbr|"
    "label|acronym|center|blink"
)
_BLOCK = (
    "address|article|aside|blockquote|body|br|button|caption|col|colgroup|dd|details|div|dl|dt|fieldset|figcaption|"
    "figure|footer|form|h[1-6]|head|header|hr|html|img|input|legend|li|link|main|meta|nav|ol|option|p|picture|pre|"
    "section|select|summary|svg|table|tbody|textarea|tfoot|thead|title|tr|ul"
)
_ATTRIBUTES = (
    r"""(?:\s{1,9}[\w:.\-]{1,40}\s{0,9}=\s{0,9}(?:"[^"<>]{0,400}"|'[^'<>]{0,400}'|[^\s"'<>=]{1,400})){0,20}\s{0,9}/?"""
)
_HIDDEN = Gated(
    r"<!--(?P<comment>.{0,4000}?)-->|<(?P<tag>script|style|template|noscript)(?:\s[^<>]{0,400})?>(?P<body>.{0,4000}?)</(?P=tag)\s{0,9}>",
    re.IGNORECASE | re.DOTALL,
)
_STRUCK = Gated(
    r"<(del|strike)(?:\s[^<>]{0,200})?>[^<>]{0,400}</\1\s{0,9}>|(?<![~\w])~~(?=[^\s~])[^~\n]{0,200}(?<=[^\s~])~~(?![~\w])",
)
_RAISED = Gated(rf"(?<=\d)<sup{_ATTRIBUTES}>(?P<power>\d{{1,3}})</sup\s{{0,9}}>")
_INLINE_TAG = Gated(rf"</?(?:{_INLINE}|sup){_ATTRIBUTES}>")
_CELL_TAG = Gated(rf"</?(?:td|th){_ATTRIBUTES}>")
_BLOCK_TAG = Gated(rf"<!doctype[^<>]{{0,200}}>|</?(?:{_BLOCK}){_ATTRIBUTES}>")
_FORUM_TAG = Gated(
    r"\[/?(?:b|i|u|code|quote|url|size|color|font|list|\*)(?:=[^\]\n]{1,80})?\]"
)  # fmt: skip
_ENTITY = Gated(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,10}\d{0,2})[;；]")
# Full-width forms of ASCII; the comma and the semicolon stay, which never group digits.
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in "，；"}
_HUB = Gated(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co|modelscope\.c(?:n|om)/models)/"
    r"(?P<name>[\w.\-]{1,60}/[\w.\-]{1,90}(?<![.\-]))[^\s()<>\[\]\"']{0,300}",
)
_ADDRESS = Gated(r"(?:https?|ftp)://[^\s()<>\[\]\"'，。；、]{1,2000}(?:\([^\s()]{0,200}\))?")
_LINK = Gated(r"!?\[(?P<text>[^\[\]\n]{0,300})\]\((?P<target>[^()\s]{0,1000})(?:\s\"[^\"\n]{0,200}\")?\)", flags=0)
_REFERENCE = re.compile(r"\[(?P<text>[^\[\]\n]{1,300})\]\[[^\[\]\n]{0,60}\]")
_EMPHASIS: tuple[re.Pattern[str], ...] = (
    re.compile(r"(?<![\d*])\*\*\*?(?=[^\s*])([^*\n]{1,400}?)(?<=[^\s*])\*\*\*?"),
    re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300}?)(?<=[^\s*])\*(?![\w*])"),
    re.compile(r"(?<!\w)__(?=[^\s_])([^\n]{1,300}?)(?<=[^\s_])__(?!\w)"),
    re.compile(r"(?<!\w)_(?=[^\s_])([^\n]{1,300}?)(?<=[^\s_])_(?!\w)"),
    re.compile(r"(?<!`)`{1,2}(?=[^`\n])([^`\n]{1,300})`{1,2}(?!`)"),
    re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]{1,200})(?<=[^\s=])==(?![=>\w])"),
)


def without_markup(text: str) -> tuple[str, tuple[str, ...]]:
    """The words of a text as a browser would show them, and the beginnings of what it would not show."""
    hidden: list[str] = []

    def hide(match: re.Match[str]) -> str:
        words = " ".join((match["comment"] or match["body"] or "").split())
        if words:
            hidden.append(words[:120])
        return " "

    text = _HIDDEN.sub(hide, visible(text.translate(_NARROW)))
    text = _RAISED.sub(r"^\g<power>", _STRUCK.sub(" ", text))
    text = _INLINE_TAG.sub("", text)
    text = _BLOCK_TAG.sub("\n", _CELL_TAG.sub(" ", text))
    text = _ENTITY.sub(lambda match: _character(match.group()[:-1] + ";"), text)
    text = _without_links(_FORUM_TAG.sub("", text))
    for pattern in _EMPHASIS:
        text = pattern.sub(r"\1", text)
    return text, tuple(dict.fromkeys(hidden))


def _character(entity: str) -> str:
    """The character that an entity stands for, whatever the case of its name."""
    import html  # a table of all entities, which few texts have

    character = html.unescape(entity)
    return character if character != entity else html.unescape(entity.lower())


def _without_links(text: str) -> str:
    """Links as their words; an address alone is a model's name on a hub, or nothing."""
    text = _LINK.sub(lambda match: f"{match['text']} {_name_at(match['target'])}", text)
    text = _REFERENCE.sub(lambda match: match["text"], text)
    return _ADDRESS.sub(" ", _HUB.sub(lambda match: f" {match['name']} ", text))


def _name_at(target: str) -> str:
    hub = _HUB.match(target)
    return hub["name"] if hub else ""
