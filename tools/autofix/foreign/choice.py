"""Chooses among several proposals in a text: the one with most of a plan, or the option that the text recommends.

None is judged; the choice is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...input.shapes import is_list, is_object
from .lexicon import DEGREE_NAMES, any_case, concept_of, phase_of
from .notes import Notes, shortened

# "Option A", "Plan 2", "方案一".
_LABEL = (
    r"(?:options?|plans?|variants?|alternatives?|proposals?|candidates?|choices?|strategy|方案|选项|策略)"
    r"[ \t]?(?P<name>[A-Ha-h](?![A-Za-z])|\d{1,2}(?!\d|\.\d)|[一二三四五六])"
)
_HEADING = re.compile(rf"^[ \t>#*_(\d.]{{0,12}}{_LABEL}[ \t]{{0,3}}[*_]{{0,2}}[ \t]{{0,3}}(?:[:：.)\-–—(（]|$)",
                      re.IGNORECASE | re.MULTILINE)  # fmt: skip
_PRAISE = (
    r"recommend(?:ed|ation|s)?|prefer(?:red|ence|s)?|choose|chosen|choice|pick|go(?:ing)? with|would use|best|final|"
    r"suggest(?:ed|ion)?|select(?:ed)?|推荐|建议|选择?|采用|最终|最优|更好"
)
_RECOMMENDED = any_case(
    rf"(?P<before>[^\n.!?。！？]{{0,60}})(?:{_PRAISE})[^\n.!?。！？]{{0,40}}?(?<![A-Za-z]){_LABEL}"
    rf"|(?<![A-Za-z]){_LABEL.replace('name', 'first')}[^\n.!?。！？]{{0,30}}?(?:{_PRAISE}|wins)"
)
_AGAINST = any_case(r"(?:\b(?:not|never|less|rather than|instead of|over|against)\b|n't\b|不|勿)")
_MOST_VALUES = 3_000
_MOST_RIVALS = 40
_PROPOSED = (DEGREE_NAMES - {"replicas", "cp"}) | {"stages", "nodes"}
# Concepts that any object may hold.
_ORDINARY = {None, "aside", "id", "type"}


def score(value: object) -> int:
    """How much of a plan `value` holds: the number of concepts that its keys, pairs and flags name."""
    named: set[str | None] = set()
    for part in _parts(value):
        if is_object(part):
            named.update(concept_of(key) or phase_of(key) for key in map(str, part))
        elif is_list(part):
            flags = [word for word in part[:_MOST_VALUES] if isinstance(word, str) and word.startswith("-")]
            pair = part[:1] if len(part) == 2 and isinstance(part[0], str) else []
            named.update(concept_of(word.partition("=")[0]) for word in flags)
            named.update(map(concept_of, pair))
    return len(named - _ORDINARY)


def proposes(value: object) -> bool:
    """Whether `value` states a split: a degree, stages or nodes."""
    return any(concept_of(str(key)) in _PROPOSED for part in _parts(value) if is_object(part) for key in part)


def recommended_part(text: str) -> str | None:
    """The part of `text` on the option that it recommends by name; `None` if it recommends none or several."""
    headings = list(_HEADING.finditer(text))
    names = [heading["name"].lower() for heading in headings]
    if len(set(names)) < 2:
        return None
    praised = [match for match in _RECOMMENDED.finditer(text) if not _AGAINST.search(match[0])]
    chosen = {(match["name"] or match["first"]).lower() for match in praised} & set(names)
    places = [place for place, name in enumerate(names) if name in chosen]
    if len(places) != 1:
        return None
    ends = [heading.start() for heading in headings[places[0] + 1 :]]
    return text[headings[places[0]].end() : ends[0] if ends else len(text)]


def note_choice(proposals: list[Any], taken: object, notes: Notes) -> None:
    """Note how many of `proposals` there were beside `taken`, without its parts and what contains it."""
    parts = list(_parts(taken))
    rivals = [
        rival
        for rival in proposals[:_MOST_RIVALS]
        if rival not in parts and not any(part == taken for part in _parts(rival))
    ]
    if rivals and proposes(taken):
        count = f"of {len(rivals) + 1} proposals in the text the one that says most"
        notes.assumed(f"{count}: {shortened(taken)[:70]}", "/")


def note_commands(flags: Iterable[tuple[str, str]], notes: Notes) -> None:
    """Note flags with different values in the command lines of one text: the first value was taken."""
    values: dict[str, dict[str, None]] = {}
    for name, value in flags:
        if concept_of(name) in DEGREE_NAMES | {"model"}:
            values.setdefault(name, {})[value] = None
    several = [f"{name} {' and '.join(options)}" for name, options in values.items() if len(options) > 1]
    if several:
        notes.assumed(f"of several command lines in the text the first counts: {', '.join(several)}", "/")


def _parts(value: object) -> Iterator[object]:
    """`value` and everything inside it, up to some thousands of values."""
    waiting = [value]
    for part in waiting:
        yield part
        if len(waiting) <= _MOST_VALUES and is_object(part):
            waiting.extend(part.values())
        elif len(waiting) <= _MOST_VALUES and is_list(part):
            waiting.extend(part[:_MOST_VALUES])
