"""Markdown (or plain text) briefs: headings, lists, tables, `key: value` lines, fenced JSON or YAML, to statements.

Sentences are understood in `fields.py`, not here. HTML in the text has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..engine.launched import with_commands_in_words
from ..errors import BriefError
from ..patterns.gated import Gated
from .boxes import with_boxes_in_words
from .forms import with_fields_in_lines
from .keys import forbidden_under
from .launch import plain_lines
from .layout import is_paragraph, says_something
from .statements import MAX_CHARS, Source, Statement, check_statement, join_sources
from .structured import read_json, read_settings, read_yaml
from .tables import rows_of_table

if TYPE_CHECKING:
    from markdown_it.token import Token

_KEY_VALUE = Gated(
    r"^\s*([^:：=。!?\n]{1,80}?)\s*(?:(?<!\s\d)(?<!\s\d\d):(?!//)|:(?!//|[0-5]\d(?!\d))|：|\s\|\s|(?<![<>!])={1,2}(?![=>])|\s—\s|\s–\s|\s-\s|\s->\s|→|\s\.{3,80}\s)\s*(.*)$",
    re.DOTALL,
)
# "[09:02] priya: ...", "priya 10:02: ...": when a line of a chat was written.
_TIME_OF_DAY = Gated(
    r"^([ \t]{0,8}(?:[^\s:：|#\[\d][^\s:：|]{0,20},?\s(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s)?)?)"
    r"[\[(]?(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?[\])]?[ \t]*(?=[:：]|\S)",
    re.MULTILINE,
)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.{0,50000}?)\n---[ \t]*\n", re.DOTALL)
_WRAP_COLUMNS = 60  # a shorter line was not broken for being full; a Chinese sign is two wide
# "h3. Traffic", "||Metric||Value||"
_WIKI_HEADING = re.compile(r"^[ \t]{0,3}h([1-6])\.[ \t]+", re.MULTILINE)
_WIKI_HEADER = re.compile(r"^[ \t]{0,3}(\|\|[^\n]{1,400}\|\|)[ \t]*$", re.MULTILINE)
# Between two keys of one line: "Type: Task          Priority: High", "Not in scope: the reranker. In scope: …".
_NEXT_COLUMN = re.compile(
    r"(?<=\S)[ \t]{3,}(?=[A-Za-z][\w ]{1,24}:\s)|(?<=[.;])[ \t]{1,2}(?=(?:In|Out of) scope:\s)|"
    r"(?<=[。;；])(?=(?:本次)?范围[内外]?[:：])"
)
# The rest of a sentence, with a colon in it: "debug queue, sorry: was three".
_GOES_ON = re.compile(r"[a-z][^:：\n]{0,60},\s[^:：\n]{1,20}[:：]\s")
_TASK_BOX = re.compile(r"^\[[ xX]\]\s*")


def read_markdown(name: str, text: str) -> Source:
    """The statements of a Markdown or plain-text brief.

    Raises:
        BriefError: it is too long, or a fenced JSON or YAML block is neither.
    """
    if len(text) > MAX_CHARS:
        raise BriefError(f"{name}: more than {MAX_CHARS} characters of text; a brief is a few pages")
    text = with_fields_in_lines(with_boxes_in_words(_TIME_OF_DAY.sub(r"\1", _from_wiki(text))))
    sources: list[Source] = []
    offset = 0
    if match := _FRONT_MATTER.match(text):
        sources.append(read_yaml(name, match.group(1)))
        offset = text[: match.end()].count("\n")
        text = text[match.end() :]
    sources.append(_Reader(name, offset).read(plain_lines(with_commands_in_words(text)[0])))
    return join_sources(sources)


def _from_wiki(text: str) -> str:
    """A ticket in the markup of Jira as Markdown: its headings and tables; any other text as it is."""
    if not _WIKI_HEADING.search(text) and not _WIKI_HEADER.search(text):
        return text
    text = _WIKI_HEADER.sub(lambda row: _table_head(row[1].strip("|").split("||")), text)
    return _WIKI_HEADING.sub(lambda heading: f"{'#' * int(heading[1])} ", text)


def _table_head(cells: Sequence[str]) -> str:
    return f"\n|{'|'.join(cells)}|\n|{'---|' * len(cells)}"


def split_key(line: str) -> tuple[str, str]:
    """A line as (key, value); the key is empty where the line is a sentence."""
    match = _KEY_VALUE.match(line)
    key = match.group(1) if match else ""
    # "4 per host, hosts: 6" is two things; a key does not hold the first of them.
    if match is None or len(key.split()) > 9 or re.search(r"\d[^,，]*[,，]", key):
        return "", line.strip()
    return match.group(1).strip(" *_`"), match.group(2).strip()


class _Reader:
    def __init__(self, name: str, line_offset: int) -> None:
        self._name = name
        self._offset = line_offset
        self._has_title = False
        self._headings: list[tuple[int, str]] = []
        self._list_keys: list[str] = []
        self._statements: list[Statement] = []
        self._blocks: list[Source] = []

    def read(self, text: str) -> Source:
        from markdown_it import MarkdownIt

        tokens = MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable("table").parse(text)
        titles = [tokens[i + 1] for i, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1"]
        # The one title of a document says what it is about, not what each statement under it means.
        self._has_title = len(titles) == 1 and len(_plain(titles[0]).split()) > 3
        stream = iter(tokens)
        for token in stream:
            self._token(token, stream)
        return join_sources([Source(tuple(self._statements)), *self._blocks])

    def _token(self, token: Token, stream: Iterator[Token]) -> None:
        line = (token.map[0] if token.map else 0) + 1 + self._offset
        if token.type == "heading_open":
            text = _plain(next(stream))
            if token.markup in "-=" and is_paragraph(text):
                self._lines(text, line)
            else:
                self._heading(int(token.tag[1]), text, line)
        elif token.type == "list_item_open":
            self._list_keys.append("")
        elif token.type == "list_item_close":
            self._list_keys.pop()
        elif token.type == "inline":
            self._lines(_plain(token), line)
        elif token.type == "table_open":
            self._table(stream)
        elif token.type == "fence":
            self._fence(token, line)
        elif token.type == "code_block":
            self._lines(token.content, line)

    def _path(self) -> tuple[str, ...]:
        return (*(text for _, text in self._headings), *(key for key in self._list_keys if key))

    def _heading(self, level: int, text: str, line: int) -> None:
        self._open(level)
        if says_something(text):
            key, value = split_key(text)
            self._say((*self._path(), key) if key else self._path(), value or key, line, keyed=bool(key and value))
        self._statements.append(Statement(self._path(), text, f"{self._name} line {line}", keyed=False, heading=True))
        if not (level == 1 and self._has_title):
            self._headings.append((level, text))

    def _lines(self, text: str, line: int) -> None:
        under = ""  # a line of its own that ends with a colon is a heading for what follows it
        for i, words in _unwrapped(text):
            key, value = split_key(words)
            if key and not value:
                under = key
                if any(c.isdigit() for c in key):  # it says something itself ("For the 2 x 8 H100 pool:")
                    self._say(self._path(), key, line + i, keyed=False)
                if self._list_keys and not i:
                    self._list_keys[-1] = key
                elif not self._list_keys:
                    self._open(9, key)  # a paragraph that is only `Hardware:`
                continue
            if self._list_keys and not i and not self._list_keys[-1]:
                self._list_keys[-1] = key or words[:80]
                path = (*(t for _, t in self._headings), *(k for k in self._list_keys[:-1] if k))
            else:
                path = self._path()
            path = (*path, *((under,) if under and path[-1:] != (under,) else ()), *((key,) if key else ()))
            self._say(path, value, line + i, keyed=bool(key))

    def _open(self, level: int, heading: str = "") -> None:
        """End the sections of this level and below it, and begin one where it has a heading."""
        self._headings = [(at, words) for at, words in self._headings if at < level]
        self._headings += [(level, heading)] if heading else []

    def _say(self, path: tuple[str, ...], text: str, line: int, keyed: bool = True) -> None:
        if self._list_keys and path and not keyed:
            text = forbidden_under(path[-1], text)
        check_statement(text, f"{self._name} line {line}", len(self._statements))
        if text.strip(" -–—/"):
            self._statements.append(Statement(path, text, f"{self._name} line {line}", keyed=keyed))

    def _fence(self, token: Token, line: int) -> None:
        info = token.info.strip().lower().split(" ")[0]
        where = f"{self._name} block at line {line}"
        stripped = token.content.lstrip()
        if info in ("json", "json5", "jsonc") or (not info and stripped.startswith("{")):
            source = read_json(where, token.content)
        elif info in ("yaml", "yml"):
            source = read_yaml(where, token.content)
        elif info in ("toml", "ini", "conf", "cfg", "env", "properties") and (
            settings := read_settings(where, token.content)
        ):
            source = settings
        else:
            self._lines(token.content, line + 1)
            return
        path = self._path()
        self._blocks.append(
            replace(source, statements=tuple(replace(s, path=(*path, *s.path)) for s in source.statements))
        )

    def _table(self, stream: Iterator[Token]) -> None:
        rows: list[tuple[int, list[str]]] = []
        for token in stream:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append(((token.map[0] if token.map else 0) + 1 + self._offset, []))
            elif token.type == "inline" and rows:
                rows[-1][1].append(_plain(token).replace("\n", " ").strip())
        if rows and len(rows[0][1]) == 1:
            for line, cells in rows[1:]:
                self._lines(cells[0] if cells else "", line)
        elif rows:
            for row in rows_of_table(rows[0][1], rows):
                self._say((*self._path(), *row.keys), row.text, row.line)


def _unwrapped(text: str) -> list[tuple[int, str]]:
    """The lines of a paragraph with their numbers; a long line that ends inside a sentence goes on in the next."""
    lines: list[tuple[int, str]] = []
    last = ""
    parts = ((i, part) for i, line in enumerate(text.split("\n")) for part in _NEXT_COLUMN.split(line))
    for i, raw in parts:
        words = _TASK_BOX.sub("", raw.strip())
        is_long = len(last.encode("gb18030")) >= _WRAP_COLUMNS and not last.endswith(
            (".", ":", ";", "!", "?", "。", "：", "；")
        )
        if words and lines and is_long and (not split_key(words)[0] or _GOES_ON.match(words)):
            lines[-1] = (lines[-1][0], f"{lines[-1][1]} {words}")
        elif words:
            lines.append((i, words))
        last = words
    return lines


def _plain(inline: Token) -> str:
    """The text of an inline token without its markup."""
    parts: list[str] = []
    for child in inline.children or ():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)
