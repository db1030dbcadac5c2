"""Says that a text holds several proposals, and which of them was taken. It does not choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .lexicon import DEGREE_NAMES, concept_of
from .notes import Notes, shortened
from .shapes import is_list, is_object

_MOST_VALUES = 3_000
_MOST_RIVALS = 40
_PROPOSED = (DEGREE_NAMES - {"replicas", "cp"}) | {"stages", "nodes"}


def proposes(value: object) -> bool:
    """Whether `value` says how something is split: a degree, stages or nodes."""
    objects = (part for part in _parts(value) if is_object(part))
    return any(concept_of(str(key)) in _PROPOSED for part in objects for key in part)


def note_choice(proposals: list[Any], taken: object, notes: Notes) -> None:
    """Note how many of `proposals` there were beside `taken`, those apart that are a part of it or hold it."""
    parts = list(_parts(taken))
    rivals = [
        rival
        for rival in proposals[:_MOST_RIVALS]
        if rival not in parts and not any(part == taken for part in _parts(rival))
    ]
    if rivals and proposes(taken):
        notes.assumed(
            f"of {len(rivals) + 1} proposals in the text the one that says most: {shortened(taken)[:70]}", "/"
        )


def note_commands(flags: Iterable[tuple[str, str]], notes: Notes) -> None:
    """Note where command lines of one text differ: of each flag the first was taken."""
    found: dict[str, list[str]] = {}
    for name, value in flags:
        if concept_of(name) in DEGREE_NAMES | {"model"} and value not in found.setdefault(name, []):
            found[name].append(value)
    several = [f"{name} {' and '.join(values)}" for name, values in found.items() if len(values) > 1]
    if several:
        notes.assumed(f"of several command lines in the text the first counts: {', '.join(several)}", "/")


def _parts(value: object) -> Iterator[object]:
    waiting = [value]
    for part in waiting:
        yield part
        if len(waiting) > _MOST_VALUES:
            continue
        if is_object(part):
            waiting.extend(part.values())
        elif is_list(part):
            waiting.extend(part[:_MOST_VALUES])
