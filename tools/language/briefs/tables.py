"""Tables of briefs as statements: a row by its label, with its remarks, unless something says it does not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from ...input.shapes import is_list, is_object
from ..conflicts.statement_rank import rank_of
from ..patterns.gated import Gated
from .key_words import KEPT_BACK, key_words
from .keys import GONE, says_unused, says_used
from .launch import tells_former
from .statements import OUT_OF_SCOPE

# Column headers that name no quantity of their own: the row's label does.
_GENERIC_HEADER = Gated(
    r"(?:the )?(?:values?|entry|entries|figures?|settings?|amounts?|choice|answer|content|details?|description"
    r"|spec(?:ification)?s?"
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
_NUMBERING = Gated(
    r"(?:ref(?:erence)?|no|nr|number|id|pos(?:ition)?|item|req(?:uirement)?|index|#|lot|quote|offer|option|line|序号|编号"
    r"|报价|方案|)"
)
_NUMBER_OF_ROW = re.compile(r"[A-Z]{0,6}[\-.#]?\d{1,4}(?:\.\d{1,3}){0,3}[.)]?|[A-Z]|[甲乙丙丁]")
# A source that is no statement: "ADR-12", "[4]", "logs".
_IS_SOURCE = re.compile(r"[A-Z]{2,8}-\d{1,6}|\[\d{1,3}\]")
# Columns of what holds today, and of what is planned.
_NOW_HEADER = Gated(r"now|today|current(?:ly)?|as is|existing|before|old|actual|现状|目前|当前|现有|改造前")
_TARGET_HEADER = Gated(
    r"target|from \w{3,9}|planned?|to be|new|future|after|goal|wanted|required|目标|规划|计划|改造后|新"
)
_REVISION_HEADER = Gated(r"(?:rev(?:ision)?|version|draft|版本|修订)(?: no| number|号)?")
_LABEL_HEADER = Gated(
    r"(?:items?|requirements?|dimensions?|parameters?|param|keys?|metrics?|fields?|propert(?:y|ies)|names?|settings?|"
    r"topics?|what|attributes?|项|项目|参数|指标|名称|字段|属性|类别|内容|)"
)
_BRACKETED = re.compile(r"\s?\([^()]{0,60}\)")


class Row(Struct, frozen=True):
    """What a row of a table states: the keys that it adds to those above the table, its words and its line."""

    keys: tuple[str, ...]
    text: str
    line: int


def names_rows(header: Sequence[str]) -> bool:
    """Whether a column names what each row states, and the next holds it: "Field", "Value"."""
    label, value = (key_words(cell) for cell in header[:2])
    is_first = _LABEL_HEADER.fullmatch(label) is not None and _GENERIC_HEADER.fullmatch(value) is not None
    return is_first or _label_column(header) > 0


def is_remark_header(cell: str) -> bool:
    """Whether a column holds remarks."""
    return _REMARK.fullmatch(key_words(cell)) is not None


def _label_column(header: Sequence[str]) -> int:
    """The column that names what each row states, where those before it only group or number the rows; else 0."""
    words = [key_words(cell) for cell in header]
    columns = [i for i, word in enumerate(words) if word and not _UNIT_HEADER.fullmatch(word)]
    pairs = (pair for pair in pairwise(columns) if not _REMARK.fullmatch(words[pair[1]]))
    named = (i for i, j in pairs if _LABEL_HEADER.fullmatch(words[i]) and _GENERIC_HEADER.fullmatch(words[j]))
    return max(named, default=0)


def rows_of_table(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> Iterator[Row]:
    """What the rows of a table state, the header the first of `rows`; each has its line, and its sections as keys."""
    label = _label_column(header)
    sections = _sections(header[:label], rows[1:])
    for row in _rows(header[label:], [(line, cells[label:]) for line, cells in rows]):
        yield Row((*sections.get(row.line, ()), *row.keys), row.text, row.line)


def _sections(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> dict[int, tuple[str, ...]]:
    """What each row stands under, by its line; a blank cell goes on with the one above it."""
    counting = {i for i, cell in enumerate(header) if _NUMBERING.fullmatch(key_words(cell))}
    above = [""] * len(header)
    sections: dict[int, tuple[str, ...]] = {}
    for line, cells in rows:
        above = [cell.strip() or last for cell, last in zip(cells, above, strict=False)]
        grouping = (cell for i, cell in enumerate(above) if i not in counting or not _NUMBER_OF_ROW.fullmatch(cell))
        sections[line] = tuple(filter(None, grouping))
    return sections


def _rows(header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> Iterator[Row]:
    numbers = [cells[0] for _, cells in rows[1:] if cells]
    is_numbered = len(header) > 2 and numbers and _NUMBERING.fullmatch(key_words(header[0]))
    if is_numbered and all(map(_NUMBER_OF_ROW.fullmatch, numbers)):
        header, rows = header[1:], [(line, cells[1:]) for line, cells in rows]
    words = [key_words(cell) for cell in header]
    # Markdown has no table without a header: a header whose second cell is a figure is a row.
    is_head = bool(words[0]) and _LABEL_HEADER.fullmatch(words[0]) is not None
    if not is_head and any(re.search(r"\d", cell) and not re.search(r"\bp\d\d\b", cell) for cell in words[1:2]):
        words, body = [""] * len(words), rows
    else:
        body = rows[1:]
    former = _former_columns(header, words)
    busiest = _busiest(words, body)
    counted: list[tuple[int, Sequence[str]]] = []
    valid = _valid_revision(words, body)
    for line, cells in body:
        why = _why_aside(words, cells, is_busiest=busiest in (None, line))
        if (why := why if valid in (None, line) else "is of an earlier revision") is not None:
            yield Row((f"{OUT_OF_SCOPE}{why}",), " | ".join(cells), line)
        elif cells:
            counted.append((line, cells))
    # Columns of one row are its keys, where none only describes the row.
    names_none = not any(_LABEL_HEADER.fullmatch(word) or _GENERIC_HEADER.fullmatch(word) for word in words)
    for line, cells in counted:
        is_record = (is_numbered and len(counted) == 1) or (len(body) == 1 and len(words) > 2)
        if is_record and names_none:
            for key, cell in zip(header, cells, strict=False):
                if not says_used(key_words(key), cell):
                    yield Row((key,), cell, line)
        else:
            yield from _row(header, words, cells, line, former)


def _row(
    header: Sequence[str], words: Sequence[str], cells: Sequence[str], line: int, former: set[int]
) -> Iterator[Row]:
    label = cells[0]
    is_label = bool(_LABEL_HEADER.fullmatch(words[0])) or any(_GENERIC_HEADER.fullmatch(w) for w in words[1:])
    own = f"{header[0]} {label}" if not is_label else label
    unit = next((c for w, c in zip(words, cells, strict=False) if _UNIT_HEADER.fullmatch(w)), "")
    joined: list[str] = []
    ours = next((_OURS.match(c) for w, c in zip(words, cells, strict=False) if _AVAILABLE.fullmatch(w)), None)
    for i in range(1, min(len(words), len(cells))):
        is_all = ours is not None and re.fullmatch(rf"{ours['what']}s?", words[i]) is not None
        if is_all or _UNIT_HEADER.fullmatch(words[i]) or i in former or not cells[i].strip(" -–—"):
            continue
        if _REMARK.fullmatch(words[i]) and tells_former(cells[i]):
            yield Row((f"{OUT_OF_SCOPE}tells what held before",), cells[i], line)
            continue
        if says_used(words[i], cells[i]) or (_REMARK.fullmatch(words[i]) and _IS_SOURCE.fullmatch(cells[i])):
            continue
        cell = _with_unit(cells[i], unit) if not joined else cells[i]
        if _GENERIC_HEADER.fullmatch(words[i]) or former:
            joined.append(cell)
        elif _PHASE.fullmatch(words[i]) and label:
            yield Row((header[i], label), cell, line)
        elif (of_time := _IN_THAT_TIME.fullmatch(header[i])) is not None:
            joined.append(f"{cell} {of_time['what']} per {of_time['time']}")
        else:
            joined.append(f"{_BRACKETED.sub('', header[i])}{':' * bool(_COUNT_CELL.fullmatch(cell))} {cell}")
    if joined:
        yield Row((own,) if own else (), ", ".join(joined), line)


def _with_unit(cell: str, unit: str) -> str:
    """A cell with the unit of its row; what is counted "1/h" comes so many times an hour."""
    return f"{cell}{unit.removeprefix('1')}" if unit.startswith("1/") else f"{cell} {unit}".strip()


def _why_aside(words: Sequence[str], cells: Sequence[str], *, is_busiest: bool) -> str | None:
    """What says that a row does not count; what is kept back ("cold standby") does."""
    if not is_busiest:
        return "states less load than another row"
    gone = next((match.group() for cell in cells[1:] if (match := GONE.search(cell)) is not None), None)
    if gone is None or KEPT_BACK.search(key_words(cells[0])):
        gone = says_unused(zip(words, cells, strict=False), is_listed=True)
    return None if gone is None else f"says {gone!r}"


def _busiest(words: Sequence[str], body: Sequence[tuple[int, Sequence[str]]]) -> int | None:
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


def _valid_revision(words: Sequence[str], body: Sequence[tuple[int, Sequence[str]]]) -> int | None:
    """The line of the row that holds, of a table of revisions: "2 (valid)", or the last; else `None`."""
    if len(body) < 2 or len(words) < 3 or not _REVISION_HEADER.fullmatch(words[0]):
        return None
    return min(reversed(body), key=lambda row: rank_of(row[1][0]))[0]


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


def columns_and_rows(value: Mapping[str, Any]) -> list[str] | None:
    """The keys of a header and of its rows: {"columns": ["item", "value"], "rows": [["model", "…"]]}; else `None`."""
    rows = next((key for key, item in value.items() if is_list(item) and _is_table(item)), None)
    width = len(value[rows][0]) if rows is not None else 0
    columns = next(
        (k for k, v in value.items() if k != rows and is_list(v) and len(v) == width and _are_texts(v)), None
    )
    return None if rows is None or columns is None else [columns, rows]


def rows_in(items: list[Any]) -> list[list[Any]] | None:
    """A list of rows, or of objects that name what they state, as rows under a header; `None` where it is neither."""
    if _is_table(items):
        has_header = len(items) > 1 and _are_texts(items[0]) and names_rows(items[0])
        return items if has_header else [["item", "value", *[""] * (len(items[0]) - 2)], *items]
    keys = list(items[0]) if len(items) > 1 and is_object(items[0]) else []
    is_named = len(keys) > 1 and _are_texts(keys) and names_rows(keys)
    if not is_named or not all(is_object(item) and list(item) == keys for item in items):
        return None
    rows = [list(item.values()) for item in items]
    return [keys, *rows] if _is_table(rows) else None


def _is_table(items: list[Any]) -> bool:
    """Whether a list has rows of plain cells, each behind what it is of."""
    return bool(items) and all(
        is_list(row) and len(row) == len(items[0]) > 1 and isinstance(row[0], str) and not any(map(_has_parts, row))
        for row in items
    )


def _has_parts(value: Any) -> bool:
    return is_object(value) or is_list(value)


def _are_texts(items: list[Any]) -> bool:
    return all(isinstance(item, str) for item in items)
