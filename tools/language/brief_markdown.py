"""Markdown (or plain text) briefs: headings, lists, tables, `key: value` lines, fenced JSON or YAML, to statements.

Sentences are understood in `brief_fields.py`, not here. HTML in the text has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .brief_keys import KEPT_BACK, forbidden_under, says_unused
from .brief_launch import plain_lines
from .brief_layout import is_paragraph, says_something
from .brief_statements import MAX_CHARS, OUT_OF_SCOPE, Source, Statement, check_statement, join_sources
from .brief_structured import read_json, read_yaml
from .errors import BriefError
from .gated import Gated
from .key_words import key_words
from .launched import with_commands_in_words
from .statement_rank import rank_of

if TYPE_CHECKING:
    from markdown_it.token import Token

# Words in a table row by which it counts for nothing.
_GONE = Gated(
    r"(?<![a-z])(?:(?:(?:is|are|being|already|to\sbe|was|were)\s)+(?:decommissioned|retired|scrapped|sold|withdrawn|dropped|rejected|phased\sout)|"
    r"(?:for|listed\sfor)\s(?:completeness|reference|information)(?:\sonly)?|not\s(?:available|ours|for\sus|in\sscope)|none(?=\s?(?:\(|$|until|till|before))|out\sof\sscope|obsolete|decommissioned|retired|not\s(?:to\sbe\s|being\s)?(?:counted|planned|included|used)|cold\s(?:dr|stand-?by|spare))(?![a-z])"
    r"|退役|下线|淘汰|仅供参考|不可用|不参与",
)
# Column headers that name no quantity of their own: the row's label does.
_GENERIC_HEADER = Gated(
    r"(?:the )?(?:values?|figures?|settings?|amounts?|choice|answer|content|details?|description|spec(?:ification)?s?"
    r"|requirements?|targets?|limits?|goals?|numbers?|degrees?|sizes?|counts?|data|notes?|comments?|"
    r"remarks?|statistics?|stat|percentiles?|值|数值|取值|参数|参数值|规格值|内容|要求|目标|说明|备注|描述|配置|规格|指标值|统计口径|口径|)"
)
# Tables with a row for each time: the busiest by its load column is planned for.
_TIME_HEADER = Gated(
    r"(?:hours?|times?(?: of (?:the )?day)?|periods?|(?:time )?slots?|(?:time )?windows?|shifts?|weekdays?|days?"
    r"|months?|seasons?|时段|时间段?|小时|月份|日期|班次)"
)
_LOAD_HEADER = Gated(r".*(?:requests?|calls|queries|qps|rps|arrivals|volume|load|concurren\w+|请求|调用|并发|话务).*")
_IN_THAT_TIME = Gated(
    r"(?P<what>[a-z ]+?) (?:in|within|during) (?:that|the|this|each|one) (?P<time>hour|minute|second|day)",
)
# A column with the usable part of what another column counts: "nodes 2 … available to us 1 node".
_AVAILABLE = Gated(r"(?:available|usable|free)(?: (?:to|for) (?:us|this|the project))?|ours|(?:我们)?可用")
_OURS = Gated(r"\d{1,4}\s(?P<what>node|server|machine|gpu|card)s?$")
_COUNT_CELL = re.compile(r"\d{1,4}")
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
_PHASE = re.compile(r"(?:prefill\w*|decod\w+|预填充|解码)(?: (?:phase|stage|side|阶段))?")
_UNIT_HEADER = re.compile(r"(?:units?|单位)")
_REMARK = re.compile(r"(?:remarks?|comments?|notes?|sources?|备注|说明|来源)")
# A column that numbers the rows.
_NUMBERING = Gated(r"(?:ref(?:erence)?|no|nr|number|id|pos(?:ition)?|item|req(?:uirement)?|index|序号|编号|)")
_NUMBER_OF_ROW = re.compile(r"[A-Z]{0,6}[\-.#]?\d{1,4}(?:\.\d{1,3}){0,3}[.)]?")
# Columns of what holds today, and of what is planned.
_NOW_HEADER = Gated(r"now|today|current(?:ly)?|as is|existing|before|old|actual|现状|目前|当前|现有|改造前")
_TARGET_HEADER = Gated(
    r"target|from \w{3,9}|planned?|to be|new|future|after|goal|wanted|required|目标|规划|计划|改造后|新"
)
_LABEL_HEADER = Gated(
    r"(?:items?|requirements?|dimensions?|parameters?|param|keys?|metrics?|fields?|propert(?:y|ies)|names?|settings?|"
    r"topics?|what|attributes?|项|项目|参数|指标|名称|字段|属性|类别|)"
)
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
_WRAP_BYTES = 60  # a shorter line was not broken for being full
# "h3. Traffic", "||Metric||Value||"
_WIKI_HEADING = re.compile(r"^[ \t]{0,3}h([1-6])\.[ \t]+", re.MULTILINE)
_WIKI_HEADER = re.compile(r"^[ \t]{0,3}(\|\|[^\n]{1,400}\|\|)[ \t]*$", re.MULTILINE)
_BRACKETED = re.compile(r"\s?\([^()]{0,60}\)")
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
    text = _TIME_OF_DAY.sub(r"\1", _from_wiki(text))
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
        if rows:
            self._table_rows(rows[0][1], rows)

    def _table_rows(self, header: Sequence[str], rows: list[tuple[int, list[str]]]) -> None:
        numbers = [cells[0] for _, cells in rows[1:] if cells]
        if (
            len(header) > 2
            and numbers
            and _NUMBERING.fullmatch(key_words(header[0]))
            and all(map(_NUMBER_OF_ROW.fullmatch, numbers))
        ):
            header, rows = header[1:], [(line, cells[1:]) for line, cells in rows]
        words = [key_words(cell) for cell in header]
        # Markdown has no table without a header: a header whose second cell is a figure is a row.
        is_head = bool(words[0]) and _LABEL_HEADER.fullmatch(words[0]) is not None
        if not is_head and any(re.search(r"\d", cell) and not re.search(r"\bp\d\d\b", cell) for cell in words[1:2]):
            words, body = [""] * len(words), rows
        else:
            body = rows[1:]
        single_column = len(words) == 1
        # Columns of one row are its keys, where none only describes the row.
        is_record = (
            len(body) == 1
            and len(words) > 2
            and not any(_LABEL_HEADER.fullmatch(word) or _GENERIC_HEADER.fullmatch(word) for word in words)
        )
        former = _former_columns(header, words)
        busiest = _busiest(words, body)
        for line, cells in body:
            if single_column:
                self._lines(cells[0] if cells else "", line)
            elif (why := _why_aside(words, cells, is_busiest=busiest in (None, line))) is not None:
                self._say((*self._path(), f"{OUT_OF_SCOPE}{why}"), " | ".join(cells), line)
            elif is_record and cells:
                for key, cell in zip(header, cells, strict=False):
                    self._say((*self._path(), key), cell, line)
            elif cells:
                self._row(header, words, cells, line, former)

    def _row(self, header: Sequence[str], words: Sequence[str], cells: list[str], line: int, former: set[int]) -> None:
        path, label = self._path(), cells[0]
        is_label = bool(_LABEL_HEADER.fullmatch(words[0])) or any(_GENERIC_HEADER.fullmatch(w) for w in words[1:])
        own_path = (*path, *((label,) if label else ()))
        if not is_label:
            own_path = (*path, f"{header[0]} {label}")
        unit = next((c for w, c in zip(words, cells, strict=False) if _UNIT_HEADER.fullmatch(w)), "")
        joined: list[str] = []
        ours = next((_OURS.match(c) for w, c in zip(words, cells, strict=False) if _AVAILABLE.fullmatch(w)), None)
        for i in range(1, min(len(words), len(cells))):
            is_all = ours is not None and re.fullmatch(rf"{ours['what']}s?", words[i]) is not None
            if is_all or _UNIT_HEADER.fullmatch(words[i]) or i in former or not cells[i].strip(" -–—"):
                continue
            cell = f"{cells[i]} {unit}".strip() if not joined else cells[i]
            if _GENERIC_HEADER.fullmatch(words[i]) or former:
                joined.append(cell)
            elif _PHASE.fullmatch(words[i]) and label:
                self._say((*path, header[i], label), cell, line)
            elif (of_time := _IN_THAT_TIME.fullmatch(header[i])) is not None:
                joined.append(f"{cell} {of_time['what']} per {of_time['time']}")
            else:
                joined.append(f"{_BRACKETED.sub('', header[i])}{':' * bool(_COUNT_CELL.fullmatch(cell))} {cell}")
        if joined:
            self._say(own_path, ", ".join(joined), line)


def _why_aside(words: Sequence[str], cells: Sequence[str], *, is_busiest: bool) -> str | None:
    """What says that a row does not count; what is kept back ("cold standby") does."""
    if not is_busiest:
        return "states less load than another row"
    gone = next((match.group() for cell in cells[1:] if (match := _GONE.search(cell)) is not None), None)
    if gone is None or KEPT_BACK.search(key_words(cells[0])):
        gone = says_unused(zip(words, cells, strict=False))
    return None if gone is None else f"says {gone!r}"


def _busiest(words: Sequence[str], body: Sequence[tuple[int, list[str]]]) -> int | None:
    """The line of the row with the most load, where rows state one quantity at different times; else `None`."""
    column = next((i for i, word in enumerate(words) if i and _LOAD_HEADER.fullmatch(word)), None)
    if column is None or len(body) < 2 or not _TIME_HEADER.fullmatch(words[0]):
        return None
    loads: dict[int, float] = {}
    for line, cells in body:
        figure = _FIGURE.search(cells[column]) if column < len(cells) else None
        if figure is None:
            return None
        loads[line] = float(figure.group().replace(",", ""))
    return max(loads, key=lambda line: loads[line])


def _former_columns(header: Sequence[str], words: Sequence[str]) -> set[int]:
    """The columns of a table that no longer count, or count less than another: "v2 (old)" beside "v3 (valid)"."""
    ranks = {
        i: rank_of(header[i])
        for i in range(1, len(words))
        if not _UNIT_HEADER.fullmatch(words[i]) and not _REMARK.fullmatch(words[i])
    }
    if any(_TARGET_HEADER.fullmatch(words[i]) for i in ranks):
        return {i for i in ranks if _NOW_HEADER.fullmatch(words[i])}
    least = min(ranks.values(), default=0)
    return {i for i, rank in ranks.items() if rank > max(least, 0) or (least < 0 and rank > least)}


def _unwrapped(text: str) -> list[tuple[int, str]]:
    """The lines of a paragraph with their numbers; a long line that ends inside a sentence goes on in the next."""
    lines: list[tuple[int, str]] = []
    last = ""
    parts = ((i, part) for i, line in enumerate(text.split("\n")) for part in _NEXT_COLUMN.split(line))
    for i, raw in parts:
        words = _TASK_BOX.sub("", raw.strip())
        is_long = len(last.encode()) >= _WRAP_BYTES and not last.endswith((".", ":", ";", "!", "?", "。", "：", "；"))
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
