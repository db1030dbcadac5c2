"""Strict, bounded parsing of TOML, INI and what is written like it: plain values, with line and comment of each."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from msgspec import Struct, field

from ...input.shapes import is_list, is_object
from ...input.strict_values import JsonError, check_value
from ..errors import BriefError
from .parse import Parsed, Path, plain_scalar
from .statements import MAX_CHARS

_LEAST_ENTRIES = 3
_REMARK = re.compile(r"\s*[#;]+\s*(?P<words>[^\n]*)")
_SECTION = re.compile(
    r"\s*\[(?P<listed>\[?)\s*(?P<name>[\w\"'][^\[\]\n]{1,60})\]{1,2}\s*(?:[#;]+\s*(?P<comment>[^\n]*))?"
)
_ENTRY = re.compile(r"\s*(?P<key>[\w\"'][^=:：\n]{0,60}?)\s*(?:=(?!=)|(?P<colon>[:：])(?=\s|$))\s*(?P<words>[^\n]*)")
_COMMENTED = re.compile(r"(?P<words>(?:\"[^\"\n]*+\"|'[^'\n]*+'|(?!\s[#;])[^\n])*+)(?:\s+[#;]+\s*(?P<comment>[^\n]*))?")
_DOTTED = re.compile(r"[A-Za-z_][\w-]*(?:\s?\.\s?[A-Za-z_][\w-]*)+")
_DOT = re.compile(r"\s?\.\s?")


class _Scan(Struct):
    """The lines of a text by what they are: values with their line; `others` are neither, nor sections nor remarks."""

    values: dict[Path, tuple[int, str]] = field(default_factory=dict[Path, tuple[int, str]])
    comments: dict[Path, str] = field(default_factory=dict[Path, str])
    titles: dict[Path, str] = field(default_factory=dict[Path, str])
    remarks: dict[int, str] = field(default_factory=dict[int, str])
    others: int = 0


def parse_settings(name: str, text: str) -> Parsed | None:
    """The values of a TOML or INI text; `None` where it is neither, as where a section has a key twice.

    Raises:
        BriefError: a value that is not finite, or nested too deep.
    """
    scan = _scan(text) if len(text) <= MAX_CHARS else _Scan()
    if len(scan.values) < (2 if scan.titles else _LEAST_ENTRIES):
        return None
    value = _from_toml(text)
    if value is None and not scan.others:
        value = _from_ini(name, scan.values)
    if value is None:
        return None
    try:
        check_value(value, name)
    except JsonError as error:
        raise BriefError(str(error)) from None
    lines = {at: line for at, (line, _) in scan.values.items()}
    return Parsed(value, lines, scan.comments, scan.remarks, scan.titles)


def _scan(text: str) -> _Scan:
    scan, counts = _Scan(), Counter[Path]()
    above: Path = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if (remark := _REMARK.fullmatch(line)) is not None:
            scan.remarks[number] = remark["words"]
        elif (section := _SECTION.fullmatch(line)) is not None:
            above = _keys(section["name"])
            if section["listed"]:
                counts[above] += 1
                above = (*above, counts[above] - 1)
            scan.titles[above] = section["comment"] or ""
        elif (entry := _ENTRY.fullmatch(line)) is not None:
            at, value = (*above, *_keys(entry["key"])), _COMMENTED.fullmatch(entry["words"])
            words, comment = (value["words"], value["comment"] or "") if value else (entry["words"], "")
            # A key that stands twice; "key: value" without any section is another form.
            scan.others += at in scan.values or (entry["colon"] is not None and not scan.titles)
            scan.values[at] = number, words.strip()
            scan.comments |= {at: comment} if comment else {}
        elif line.strip():
            scan.others += 1
    return scan


def _keys(words: str) -> Path:
    """The keys that a dotted key or the name of a section joins."""
    return tuple(_DOT.split(words.strip())) if _DOTTED.fullmatch(words.strip()) else (words.strip("\"' "),)


def _from_toml(text: str) -> Any:
    import tomllib

    try:
        return _plain(tomllib.loads(text))
    except (ValueError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    """A value of TOML without its dates, which stay text."""
    if is_object(value):
        return {key: _plain(item) for key, item in value.items()}
    if is_list(value):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float) else str(value)


def _from_ini(name: str, values: dict[Path, tuple[int, str]]) -> dict[str, Any] | None:
    """The sections of an INI text with their keys; `None` where a key has a value and others under it."""
    sections: dict[str, Any] = {}
    for (*above, last), (line, words) in values.items():
        inside = sections
        for key in above:
            below: Any = inside.setdefault(str(key), {})
            if not is_object(below):
                return None
            inside = below
        if str(last) in inside:
            return None
        listed = _from_toml(f"v = {words}") if words[:1] in ("[", "{", '"', "'") else None
        inside[str(last)] = listed["v"] if listed else plain_scalar(words, f"{name} line {line}")
    return sections
