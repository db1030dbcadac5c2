"""From a text to the values that may be a proposal: JSON, broken JSON, YAML, tables, flags of engines.

Strict JSON first. Of several candidates the one with the most that a plan holds is taken, of equals the last: people
correct themselves downwards. Bounded: long texts are read as JSON alone, and few places are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...checkpoint import checkpoint
from ...strict_json import parse, parse_each
from ...strict_values import JsonError, cleaned
from .choice import note_choice, note_commands, proposes, recommended_part
from .flags import command_flags, flags_in, sides_in
from .lexicon import concept_of, phase_of
from .notes import Notes, shortened
from .shapes import is_list, is_nested, is_object
from .tables import csv_of, table_of
from .tolerant import OBJECT_CALL, TooDeepError, parse_tolerant

# Beyond it a text that is not strict JSON is not repaired: what takes seconds is refused instead.
MOST_CHARS = 4_000_000
_MOST_YAML = 200_000
_MOST_CANDIDATES = 40
_MOST_TRIES = 2_000
MOST_PROSE = 50_000
# A text inside of a value is read up to this length.
MOST_INNER_CHARS = 200_000
_SCORED_VALUES = 3_000

_FENCE = re.compile(r"^[ \t>]{0,8}(?:```|~~~)[ \t]*([A-Za-z0-9_+-]{0,20})[^\n]{0,100}\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t>]{0,8}(?:```|~~~)[ \t]*$", re.MULTILINE)
_OPENING = re.compile(rf"[{{\[]|\b{OBJECT_CALL.pattern}")
# An alias stands for what its anchor names, however much that is: such YAML is not read.
_ANCHOR = re.compile(r"(?:^|[\s\[{,:])[*&]\w", re.MULTILINE)
_FLAG_ITEM = re.compile(r"^[ \t]{0,40}- [\"']?--[a-z]", re.MULTILINE)
_YAML_LINE = re.compile(r"^[ \t-]{0,40}[\w\u4e00-\u9fff][\w .\u4e00-\u9fff/-]{0,60}[:：](?:[ \t]|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extract:
    """What a text holds: the value that most looks like a proposal, whether it breaks off, and the text around it.

    `holds_keys` says that the text around is the one that the value was read from. `told` is the part of it that tells
    of the one option that it recommends, where it names several.
    """

    value: Any
    is_cut: bool
    prose: str
    repairs: tuple[str, ...] = ()
    holds_keys: bool = False
    told: str | None = None


def extract(text: str, notes: Notes) -> Extract:
    """The candidate of `text` that most looks like a plan; its `value` is `None` where there is none."""
    text = text.lstrip("\ufeff")
    strict = _strict(text.strip())
    if is_object(strict):
        return Extract(strict, False, "")
    if is_list(strict):
        items = strict
        objects = [item for item in items if is_object(item)]
        lines = "\n".join(item for item in items if isinstance(item, str))
        best_object = max(objects, key=score) if objects else None
        note_choice([item for item in objects if proposes(item)], best_object, notes)
        return Extract(best_object, False, lines[:MOST_PROSE])
    if len(text) > MOST_CHARS:
        found = _strict_inside(text)
        if found is None:
            notes.unclear(f"{len(text):,} characters that are not JSON: too long to be repaired", "/")
        return Extract(found, False, "")
    told = recommended_part(text[:MOST_PROSE])
    if told is not None:
        notes.assumed(f"of the options in the text the recommended one: {shortened(told)[:70]}", "/")
        of_option = _best(told, notes)
        is_plan = proposes(of_option.value)
        return replace(of_option, value=of_option.value if is_plan else None, prose=text[:MOST_PROSE], told=told)
    return _best(text, notes)


def _best(text: str, notes: Notes) -> Extract:
    """The candidate of a text that is more than JSON."""
    best: Extract | None = None
    proposals: list[Any] = []
    for candidate in _candidates(text, notes):
        if not candidate.holds_keys and proposes(candidate.value) and candidate.value not in proposals:
            proposals.append(candidate.value)
        if best is None or score(candidate.value) >= score(best.value):
            best = candidate
    sides = sides_in(text[:MOST_PROSE])
    flags = sides or flags_in(text[:MOST_PROSE])
    if best is None or score(best.value) < score(flags):
        best = Extract(flags, False, text[:MOST_PROSE]) if flags else best
    if best is None or score(best.value) == 0:
        return Extract(None, False, text[:MOST_PROSE])
    for repair in best.repairs:
        notes.read(repair, "/")
    note_choice(proposals, best.value, notes)
    if best.value == flags and sides is None:
        note_commands(command_flags(text[:MOST_PROSE]), notes)
    return best


def _strict(text: str) -> Any:
    try:
        return parse(text, "")
    except JsonError:
        return None


def _strict_inside(text: str) -> Any:
    """The first object of a long text that is strict JSON, of the first few places where one may begin."""
    for tried, match in enumerate(re.finditer(r"\{", text[:1_000_000])):
        if tried >= 20:
            break
        try:
            _, value = next(parse_each(text[match.start() :], ""))
        except JsonError:
            continue
        if score(value) > 2:
            return value
    return None


def score(value: object) -> int:
    """How much of `value` speaks of a plan: the different concepts that its keys name."""
    seen: set[str] = set()
    waiting: list[object] = [value]
    for item in waiting:
        if len(waiting) > _SCORED_VALUES:
            break
        if is_object(item):
            for key, member in item.items():
                concept = concept_of(str(key)) or phase_of(str(key))
                if concept not in (None, "aside", "id", "type"):
                    seen.add(str(concept))
                waiting.append(member)
        elif is_list(item):
            if len(item) == 2 and isinstance(item[0], str) and (concept := concept_of(item[0])) is not None:
                seen.add(concept)
            seen.update(_flag_concepts(item))
            waiting.extend(item[:_SCORED_VALUES])
    return len(seen)


def _flag_concepts(words: list[Any]) -> set[str]:
    """What the flags among the separate words of a command line mean."""
    flags = [word for word in words[:_SCORED_VALUES] if isinstance(word, str) and word.startswith("-")]
    found = {concept_of(flag.partition("=")[0]) for flag in flags}
    return {concept for concept in found if concept not in (None, "aside", "id", "type")}


def _candidates(text: str, notes: Notes) -> Iterator[Extract]:
    fences = list(_fences(text))
    around = _FENCE.sub("\n", text[:MOST_PROSE]) if not fences else _without(text, fences)
    found = False
    for start, end in fences:
        for candidate in _objects(text[start:end], around, notes):
            found = True
            yield candidate
        yield from _yaml(text[start:end], around)
    if not found:
        lines: list[Any] = []
        for candidate in _objects(text, text, notes):
            found = found or score(candidate.value) > 1
            lines.append(candidate.value)
            yield candidate
        if len(lines) > 2 and all(is_object(line) and "id" in line for line in lines):
            yield Extract({"nodes": lines}, False, "")
        yield from _yaml(text, text[:MOST_PROSE])
    for reader in (table_of, csv_of):
        if (read := reader(text[:MOST_PROSE])) is not None:
            yield Extract(read, False, text[:MOST_PROSE])


def _fences(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for _ in range(_MOST_CANDIDATES):
        opening = _FENCE.search(text, at)
        if opening is None:
            return
        closing = _FENCE_END.search(text, opening.end())
        end = closing.start() if closing else len(text)
        yield opening.end(), end
        at = closing.end() if closing else len(text)


def _without(text: str, fences: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    at = 0
    for start, end in fences:
        kept.append(text[at:start])
        at = end
    return "\n".join([*kept, text[at:]])[:MOST_PROSE]


def _objects(text: str, around: str, notes: Notes) -> Iterator[Extract]:
    """Every object that `text` holds outside of another, strict or repaired."""
    at, tries, found = 0, 0, 0
    while tries < _MOST_TRIES and found < _MOST_CANDIDATES:
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
            found += 1
            before = text[: min(opening.start(), MOST_PROSE)]
            prose = around if around is not text else before + text[at : at + MOST_PROSE]
            yield Extract(read.value, read.is_cut, prose, repairs=read.repairs)


def _yaml(text: str, around: str) -> Iterator[Extract]:
    """The text as YAML without anchors, where it looks like it: half of its lines state something."""
    lines = [line for line in text[:_MOST_YAML].splitlines() if line.strip() and not line.lstrip().startswith("#")]
    is_one_line = len(lines) < 2
    if _FLAG_ITEM.search(text[:_MOST_YAML]):  # a command line, each of its words in a line of its own
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
            yield Extract(cleaned(document)[0], False, around, holds_keys=around.startswith(text[:MOST_PROSE]))


def parsed(text: str) -> dict[str, Any] | list[Any] | None:
    """A text that is itself JSON, as arguments of a function call are."""
    if text[:1] not in ("{", "[") or len(text) > MOST_INNER_CHARS:
        return None
    value = _strict(text)
    return value if is_nested(value) and value else None
