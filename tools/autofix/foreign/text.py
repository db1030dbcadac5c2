"""Finds the value in a text that may be a proposal: JSON, broken JSON, YAML, tables of phases or stages, engine flags.

Strict JSON first. Of several candidates the one that holds most of a plan is taken, of equals the last, since people
correct themselves further down. Bounded: long texts are read as JSON only, and few places are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...checkpoint import checkpoint
from ...input.shapes import is_list, is_nested, is_object
from ...input.strict_json import parse, parse_each
from ...input.strict_values import JsonError, cleaned
from .choice import note_choice, note_commands, proposes, recommended_part, score
from .flags import command_flags, flags_in, launched_in
from .lexicon import DEGREE_NAMES, concept_of, phase_of
from .notes import Notes, shortened
from .tolerant import OBJECT_CALL, TooDeepError, parse_tolerant

# Longer texts that are not strict JSON are refused: repairing them would take seconds.
MOST_CHARS = 4_000_000
_MOST_YAML = 200_000
_MOST_CANDIDATES = 40
_MOST_TRIES = 2_000
MOST_PROSE = 50_000
# Longest text inside a value that is read.
MOST_INNER_CHARS = 200_000

_FENCE = re.compile(r"^[ \t>]{0,8}(?:```|~~~)[ \t]*([A-Za-z0-9_+-]{0,20})[^\n]{0,100}\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t>]{0,8}(?:```|~~~)[ \t]*$", re.MULTILINE)
_OPENING = re.compile(rf"[{{\[]|\b{OBJECT_CALL.pattern}")
# YAML with anchors is not read: an alias may stand for any amount of data.
_ANCHOR = re.compile(r"(?:^|[\s\[{,:])[*&]\w", re.MULTILINE)
_FLAG_ITEM = re.compile(r"^[ \t]{0,40}- [\"']?--[a-z]", re.MULTILINE)
_YAML_LINE = re.compile(r"^[ \t-]{0,40}[\w\u4e00-\u9fff][\w .\u4e00-\u9fff/-]{0,60}[:：](?:[ \t]|$)", re.MULTILINE)


class Extract(Struct, frozen=True):
    """The value in a text that most looks like a proposal, whether it breaks off, and the prose around it.

    `holds_keys`: the prose is the text that the value was read from. `recommended`: its part on the recommended one of
    several options. `written`: the characters that were read as JSON, strict or not, from `line` of the text on.
    """

    value: Any
    is_cut: bool = False
    prose: str = ""
    repairs: tuple[str, ...] = ()
    holds_keys: bool = False
    recommended: str | None = None
    written: str | None = None
    line: int = 1


def extract(text: str, notes: Notes) -> Extract:
    """The candidate in `text` that most looks like a plan; its `value` is `None` if there is none."""
    text = text.lstrip("\ufeff")
    strict = _strict(text.strip())
    if is_object(strict):
        return Extract(strict)
    if is_list(strict):
        objects = [item for item in strict if is_object(item)]
        lines = "\n".join(item for item in strict if isinstance(item, str))
        best = max(objects, key=score, default=None)
        note_choice([item for item in objects if proposes(item)], best, notes)
        return Extract(best, prose=lines[:MOST_PROSE])
    if len(text) > MOST_CHARS:
        value = _strict_inside(text)
        if value is None:
            notes.unclear(f"{len(text):,} characters that are not JSON: too long to be repaired", "/")
        return Extract(value)
    option = recommended_part(text[:MOST_PROSE])
    if option is None:
        return _best(text, notes)
    notes.assumed(f"of the options in the text the recommended one: {shortened(option)[:70]}", "/")
    of_option = _best(option, notes, text.partition(option)[0].count("\n") + 1)
    value = of_option.value if proposes(of_option.value) else None
    return replace(of_option, value=value, prose=text[:MOST_PROSE], recommended=option)


def _best(text: str, notes: Notes, first_line: int = 1) -> Extract:
    """The best candidate in a text that is more than JSON and begins in `first_line` of the whole text."""
    candidates = list(_candidates(text, notes))
    proposals: list[Any] = []
    for candidate in candidates:
        if not candidate.holds_keys and proposes(candidate.value) and candidate.value not in proposals:
            proposals.append(candidate.value)
    beginning = text[:MOST_PROSE]
    best = max(reversed(candidates), key=lambda candidate: score(candidate.value), default=Extract(None))
    launched = launched_in(beginning)
    flags = launched or flags_in(beginning)
    if launched is not None or score(best.value) < score(flags):
        best = Extract(flags, prose=beginning)
    if score(best.value) == 0:
        return Extract(None, prose=beginning)
    _note_mended(best, first_line, notes)
    note_choice(proposals, best.value, notes)
    if best.value == flags and launched is None:
        note_commands(command_flags(beginning), notes)
    return best


def _note_mended(best: Extract, first_line: int, notes: Notes) -> None:
    """Note where the text that was read as JSON is malformed, then the other repairs."""
    try:
        parse(best.written or "{}", "")
    except JsonError as error:
        line = first_line - 1 + best.line + (error.line or 1) - 1
        if not error.is_json:
            notes.mended(f"{error.reason}, read as what was meant", f"line {line}")
    for repair in best.repairs:
        notes.mended(repair, "/")


def _strict(text: str) -> Any:
    try:
        return parse(text, "")
    except JsonError:
        return None


def _strict_inside(text: str) -> Any:
    """The first strict JSON object in a long text, among the first few places where one may begin."""
    for match in islice(re.finditer(r"\{", text[:1_000_000]), 20):
        try:
            _, value = next(parse_each(text[match.start() :], ""))
        except JsonError:
            continue
        if score(value) > 2:
            return value
    return None


def _candidates(text: str, notes: Notes) -> Iterator[Extract]:
    beginning = text[:MOST_PROSE]
    fences = list(_fences(text))
    around = _without(text, fences) if fences else ""
    is_found = False
    for start, end in fences:
        for candidate in _objects(text[start:end], around, notes):
            is_found = True
            yield replace(candidate, line=candidate.line + text.count("\n", 0, start))
        yield from _yaml(text[start:end], around)
    if not is_found:
        lines: list[Any] = []
        for candidate in _objects(text, None, notes):
            lines.append(candidate.value)
            yield candidate
        if len(lines) > 2 and all(is_object(line) and "id" in line for line in lines):
            yield Extract({"nodes": lines})
        yield from _yaml(text, beginning)
    for reader in (table_of, csv_of):
        if (read := reader(beginning)) is not None:
            yield Extract(read, prose=beginning)


def _fences(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for _ in range(_MOST_CANDIDATES):
        opening = _FENCE.search(text, at)
        if opening is None:
            return
        closing = _FENCE_END.search(text, opening.end())
        end, at = (closing.start(), closing.end()) if closing else (len(text), len(text))
        yield opening.end(), end


def _without(text: str, fences: list[tuple[int, int]]) -> str:
    starts, ends = [0, *(end for _, end in fences)], [*(start for start, _ in fences), len(text)]
    return "\n".join(text[start:end] for start, end in zip(starts, ends, strict=True))[:MOST_PROSE]


def _objects(text: str, around: str | None, notes: Notes) -> Iterator[Extract]:
    """Every outermost object in `text`, strict or repaired; its prose is `around`, or the rest of `text`."""
    at, tries, objects = 0, 0, 0
    while tries < _MOST_TRIES and objects < _MOST_CANDIDATES:
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        tries += 1
        try:
            read = parse_tolerant(text, opening.start())
        except TooDeepError:
            notes.unclear("nested too deeply to be a proposal", "/")
            return
        at = max(read.end, opening.end())
        if is_nested(read.value) and read.value and score(read.value) > 0:
            objects += 1
            rest = text[: min(opening.start(), MOST_PROSE)] + text[at : at + MOST_PROSE]
            line, before = text.count("\n", 0, opening.start()) + 1, text.rfind("\n", 0, opening.start()) + 1
            # Blanks in place of the characters before it keep the columns.
            written = " " * (opening.start() - before) + text[opening.start() : at]
            prose = rest if around is None else around
            yield Extract(read.value, read.is_cut, prose, read.repairs, written=written, line=line)


def _yaml(text: str, around: str) -> Iterator[Extract]:
    """The text as YAML without anchors, if at least half of its lines look like it."""
    lines = [line for line in text[:_MOST_YAML].splitlines() if line.strip() and not line.lstrip().startswith("#")]
    is_one_line = len(lines) < 2
    if _FLAG_ITEM.search(text[:_MOST_YAML]):  # a command line, each of its words in another line
        lines = [line for line in lines if not line.lstrip().startswith("- ")] or lines
    if len(text) > _MOST_YAML or is_one_line or _ANCHOR.search(text) or 2 * len(_YAML_LINE.findall(text)) < len(lines):
        return
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe loader, which takes seconds of a text of few letters, with a checkpoint at each token."""

        def fetch_more_tokens(self) -> Any:
            checkpoint()
            return super().fetch_more_tokens()

    try:
        documents: list[Any] = list(yaml.load_all(text, Loader))
    except (yaml.YAMLError, RecursionError, ValueError):  # the library descends without a bound
        return
    for document in documents[:_MOST_CANDIDATES]:
        if is_object(document):
            yield Extract(cleaned(document)[0], prose=around, holds_keys=around.startswith(text[:MOST_PROSE]))


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """The value of a text that is itself JSON, as arguments of a function call are; `None` if it is not."""
    if text[:1] not in ("{", "[") or len(text) > MOST_INNER_CHARS:
        return None
    value = _strict(text)
    return value if is_nested(value) and value else None


_ROW = re.compile(r"^[ \t]{0,20}\|(.{1,2000})\|[ \t]{0,20}$", re.MULTILINE)
_RULE = re.compile(r"[\s:|-]+")
_SEPARATORS = (",", "\t", ";", "|")
_MOST_ROWS = 500


def table_of(text: str) -> dict[str, Any] | None:
    """The contents of the tables of `text`, by phase or by key; `None` if they hold nothing that is known."""
    table: dict[str, Any] = {}
    header: list[str] = []
    for row in [match[1] for match in _ROW.finditer(text)][:_MOST_ROWS]:
        cells = [cell.strip().strip("*`") for cell in row.split("|")]
        if all(_RULE.fullmatch(cell) or not cell for cell in cells):
            continue
        if not header or len(cells) != len(header):
            header = cells
            continue
        name, columns = cells[0], dict(zip(header[1:], cells[1:], strict=True))
        by_phase = {phase: cell for column, cell in columns.items() if (phase := phase_of(column)) is not None}
        if (phase := phase_of(name)) is not None:
            table.setdefault(phase, {}).update(columns)
        elif concept_of(name) is not None and not any(map(phase_of, header)):
            table.setdefault(name, cells[1])
        elif concept_of(name) is not None:
            for phase, cell in by_phase.items():
                table.setdefault(phase, {})[name] = cell
    return table or None


def csv_of(text: str) -> dict[str, Any] | None:
    """Stages by phase from rows below a row of column names, and the pairs of a key and a value above it.

    Cells are separated by commas, semicolons, tabs or bars; the columns are layers and other fields of a stage.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_MOST_ROWS]
    for place, line in enumerate(lines):
        for sign in _SEPARATORS:
            names = _cells(line, sign)
            if len(names) < 3 or not {concept_of(name) for name in names} & {"layers", "layers_first"}:
                continue
            rows = [cells for row in lines[place + 1 :] if len(cells := _cells(row, sign)) == len(names)]
            pairs = [row.split(sign) for row in lines[:place] if row.count(sign) == 1]
            table: dict[str, Any] = {name.strip(): value.strip() for name, value in pairs if concept_of(name)}
            for cells in rows:
                _add_stage(table, dict(zip(names, cells, strict=True)))
            return table if rows else None
    return None


def _cells(row: str, sign: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split(sign)]


def _add_stage(table: dict[str, Any], row: dict[str, str]) -> None:
    """Add a row as a stage to the phase that one of its cells names; `;` separates the parts of a cell."""
    phase = next(filter(None, map(phase_of, row.values())), None)
    part = table if phase is None else table.setdefault(phase, {})
    cells = {name: cell.replace(";", ", ") for name, cell in row.items() if cell and phase_of(cell) is None}
    values = {name: int(cell) if cell.isdigit() and len(cell) < 10 else cell for name, cell in cells.items()}
    degrees = {name for name in values if concept_of(name) in DEGREE_NAMES}
    part.setdefault("stages", []).append({name: value for name, value in values.items() if name not in degrees})
    part.update((name, values[name]) for name in values if name in degrees)
