"""Strict, bounded parsing of the JSON and YAML of a brief: plain values, with line and comment of each YAML one.

It refuses duplicate keys, anchors and aliases, NaN and infinity, and nesting deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct, field

from ...input.strict_json import parse
from ...input.strict_values import MAX_DEPTH, TOO_DEEP, JsonError, check_value
from ..errors import BriefError

MAX_YAML_EVENTS = 60_000

Path = tuple[str | int, ...]


class Parsed(Struct, frozen=True):
    """One structured document: its value, and by path the line (from 1) and the trailing comment of each scalar.

    `remarks` are the comments that have a line of their own, by that line; `titles` those behind the key of an object.
    """

    value: Any
    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    comments: dict[Path, str] = field(default_factory=dict[Path, str])
    remarks: dict[int, str] = field(default_factory=dict[int, str])
    titles: dict[Path, str] = field(default_factory=dict[Path, str])


def parse_json(name: str, text: str) -> Parsed:
    """The JSON value of `text`.

    Raises:
        BriefError: not strict JSON; the message says where.
    """
    try:
        return Parsed(parse(text, name))
    except JsonError as error:
        raise BriefError(str(error)) from None


def parse_yaml(name: str, text: str) -> tuple[Parsed, ...]:
    """The YAML documents of `text`.

    Raises:
        BriefError: not YAML, an anchor or alias, a key twice, a value that is not finite, or nested too deep.
    """
    import yaml

    try:
        _check_events(name, text)
        nodes = list(yaml.compose_all(text, Loader=_loader()))
        documents = tuple(_YamlReader(name, text).document(node) for node in nodes)
        remarks = ((line, _REMARK.fullmatch(words)) for line, words in enumerate(text.split("\n"), start=1))
        for document in documents[:1]:
            document.remarks.update({line: remark[1].strip() for line, remark in remarks if remark})
        for document in documents:
            check_value(document.value, name)
        return documents
    except JsonError as error:
        raise BriefError(str(error)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" line {mark.line + 1}" if mark else ""
        problem = " ".join((error.problem or error.context or "unreadable").split())
        raise BriefError(f"{name}{place}: not YAML ({problem[:120]})") from error
    except yaml.YAMLError as error:
        raise BriefError(f"{name}: not YAML ({' '.join(str(error).split())[:120]})") from error


def _loader() -> Any:
    """The safe loader, the fast one where it is built."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check_events(name: str, text: str) -> None:
    """Refuse what could blow up, before anything is built."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_loader())):
        where = f"{name} line {(event.start_mark.line if event.start_mark else 0) + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BriefError(f"{where}: anchors and aliases are not read; write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise BriefError(f"{where}: {TOO_DEEP}")
        if count > MAX_YAML_EVENTS:
            raise BriefError(f"{where}: more than {MAX_YAML_EVENTS} keys and values; a brief is shorter")


_INT = re.compile(r"[+-]?(?:0|[1-9][0-9_]{0,30})")
_FLOAT = re.compile(r"[+-]?(?:\d[\d_]{0,30})?\.?\d{1,30}(?:[eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_COMMENT = re.compile(r"^[^\n#]{0,200}?(?<=\s)#\s*([^\n]{1,200})")
_REMARK = re.compile(r"\s{0,200}#+\s*([^\n#][^\n]{0,399})")


def plain_scalar(words: str, where: str) -> Any:
    """A value without quotes: nothing, a yes or no, a number or a text.

    Raises:
        BriefError: a number that is not finite.
    """
    lowered = words.lower()
    if lowered in ("", "~", "null", "none"):
        return None
    if lowered in _BOOLEANS:
        return _BOOLEANS[lowered]
    if lowered.lstrip("+-") in (".nan", ".inf"):
        raise BriefError(f"{where}: {words} is not a finite figure")
    if _INT.fullmatch(words):
        return int(words.replace("_", ""))
    if _FLOAT.fullmatch(words):
        value = float(words.replace("_", ""))
        if not math.isfinite(value):
            raise BriefError(f"{where}: {words[:40]} is not a finite figure")
        return value
    return words


class _YamlReader:
    """Builds plain values from composed nodes; dates, sexagesimals and octals of YAML 1.1 stay text."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text_lines = text.split("\n")
        self._lines: dict[Path, int] = {}
        self._comments: dict[Path, str] = {}
        self._titles: dict[Path, str] = {}

    def document(self, node: Any) -> Parsed:
        return Parsed(self._value(node, ()), self._lines, self._comments, titles=self._titles)

    def _value(self, node: Any, path: Path) -> Any:
        self._lines[path] = node.start_mark.line + 1
        if node.id == "mapping":
            return self._mapping(node, path)
        if node.id == "sequence":
            return [self._value(child, (*path, i)) for i, child in enumerate(node.value)]
        if comment := self._comment_behind(node):
            self._comments[path] = comment
        return node.value if node.style else plain_scalar(node.value, f"{self._name} line {node.start_mark.line + 1}")

    def _comment_behind(self, node: Any) -> str:
        """The comment behind a scalar that ends in its line, "" where there is none."""
        end: int = node.end_mark.line
        line = self._text_lines[end] if end < len(self._text_lines) else ""
        match = _COMMENT.match(line[node.end_mark.column :]) if node.start_mark.line == end else None
        return match[1].strip() if match else ""

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            where = f"{self._name} line {key_node.start_mark.line + 1}"
            if key_node.id != "scalar":
                raise BriefError(f"{where}: a key must be plain text")
            key = str(key_node.value)
            if key in result:
                raise BriefError(f"{where}: the key {key[:60]!r} stands twice in one mapping; keep one of the two")
            if value_node.id == "mapping" and value_node.start_mark.line > key_node.end_mark.line:
                self._titles[(*path, key)] = self._comment_behind(key_node)
            result[key] = self._value(value_node, (*path, key))
        return result
