"""Reads a Markdown file of the knowledge base into sections; refuses any other form.

The form: `# Title`, a paragraph on what the file answers, then sections: `## Heading`, directly followed by a comment
`<!-- section … -->` with YAML metadata, then the passage. No deeper headings; marks of headings or comments inside a
code block do not count. An error names file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ..tools.errors import InputError
from .section import CORE, REFERENCE, Document, Section
from .situation import CONDITIONS
from .tokens import estimate_tokens

if TYPE_CHECKING:
    from markdown_it.token import Token

_METADATA = re.compile(r"<!-- section\n(?P<yaml>.*?)\n-->\s*\Z", re.DOTALL)
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)+")
_RULE = re.compile(r"[A-Z]{2}[0-9]{3}")
_FIELDS = ("id", "keywords", "rules", "when", "sources", "asked")


class KnowledgeError(InputError):
    """A file of the knowledge base is malformed."""


def without_comments(text: str) -> str:
    """`text` without comments, as a reader sees it; a comment's lines go if nothing else is on them. Linear time.

    Raises:
        KnowledgeError: a comment does not end.
    """
    parts: list[str] = []
    place, at_line_start = 0, True
    while (start := text.find("<!--", place)) >= 0:
        end = text.find("-->", start) + 3
        if end < 3:
            raise KnowledgeError(f"a comment does not end: {text[start:][:40]!r}")
        before = text[place:start]
        line = before.rpartition("\n")
        is_alone = not line[2].strip() and (bool(line[1]) or at_line_start) and text.startswith("\n", end)
        parts.append(before)
        place, at_line_start = end + is_alone, is_alone
    text = "".join((*parts, text[place:]))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def read_document(file: str, source: str) -> Document:
    """The document `file` (its path inside the base) with the text `source`.

    Raises:
        KnowledgeError: it is malformed; names the file and the line.
    """
    lines = source.split("\n")
    headings = list(_headings(file, source))
    if not headings or headings[0][:2] != (1, 0):
        raise KnowledgeError(f"{file}:1: the first line must be '# Title'")
    (_, _, title), *section_headings = headings
    ends = [line for _, line, _ in section_headings] + [len(lines)]
    introduction = without_comments("\n".join(lines[1 : ends[0]]))
    if not introduction:
        raise KnowledgeError(f"{file}:1: a paragraph that says what the file answers must follow the title")
    sections: list[Section] = []
    for (level, line, heading), end in zip(section_headings, ends[1:], strict=True):
        if level != 2:
            raise KnowledgeError(f"{file}:{line + 1}: heading of level {level}; sections are '## Heading', not deeper")
        section = _section(f"{file}:{line + 1}", heading, "\n".join(lines[line + 1 : end]))
        sections.append(section if sections else replace(section, is_first=True))
    if not sections:
        raise KnowledgeError(f"{file}:1: no section ('## Heading')")
    return Document(file, title, introduction, tuple(sections), source)


def _headings(file: str, source: str) -> Iterator[tuple[int, int, str]]:
    """Level, line (from 0) and text of each heading, in order."""
    from markdown_it import MarkdownIt

    # Only blocks matter; inline text is not parsed.
    tokens: list[Token] = MarkdownIt("commonmark").disable("inline").parse(source)
    for token, content in pairwise(tokens):
        if token.type != "heading_open" or token.map is None or token.level:
            continue
        if token.markup not in {"#", "##", "###", "####", "#####", "######"}:
            raise KnowledgeError(f"{file}:{token.map[0] + 1}: a heading underlined with {token.markup}; write '## …'")
        yield int(token.tag[1]), token.map[0], content.content.strip()


def _section(place: str, heading: str, body: str) -> Section:
    file, line = place.rsplit(":", 1)
    comment_end = body.find("-->")
    match = _METADATA.match(body[: comment_end + 3]) if comment_end >= 0 else None
    if match is None:
        raise KnowledgeError(f"{place}: '## {heading}' must be followed at once by a comment '<!-- section … -->'")
    metadata = _metadata(place, match["yaml"])
    try:
        passage = without_comments(body)
    except KnowledgeError as error:
        raise KnowledgeError(f"{place}: {error}") from None
    if not passage:
        raise KnowledgeError(f"{place}: '## {heading}' says nothing")
    text = f"## {heading}\n\n{passage}"
    return Section(
        id=cast("str", metadata["id"]),
        file=file,
        title=heading,
        keywords=_words(metadata, "keywords", place),
        rules=_words(metadata, "rules", place),
        when=_words(metadata, "when", place),
        sources=_words(metadata, "sources", place),
        asked=_words(metadata, "asked", place),
        text=text,
        body=body[comment_end + 3 :].strip("\n"),
        tokens=estimate_tokens(text),
        line=int(line),
    )


def _metadata(place: str, text: str) -> dict[str, Any]:
    """The metadata of the section at `place`, checked field by field."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # As safe as `safe_load`, and ten times faster.
        metadata = yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1} of the comment" if mark is not None else ""
        raise KnowledgeError(f"{place}: the metadata is not YAML{where}: {getattr(error, 'problem', error)}") from None
    if not isinstance(metadata, dict):
        raise KnowledgeError(f"{place}: the metadata must be 'field: value' lines")
    fields = cast("dict[str, Any]", metadata)
    for wrong in (*(name for name in fields if name not in _FIELDS), *(name for name in _FIELDS if name not in fields)):
        verb = "is missing" if wrong in _FIELDS else f"is none of {', '.join(_FIELDS)}"
        raise KnowledgeError(f"{place}: field {wrong!r} {verb}")
    if not isinstance(fields["id"], str) or not _ID.fullmatch(fields["id"]):
        raise KnowledgeError(f"{place}: id {fields['id']!r} is not of the form topic.sub-topic in lower case")
    for rule in _words(fields, "rules", place):
        if not _RULE.fullmatch(rule):
            raise KnowledgeError(f"{place}: {rule!r} is not a rule id")
    for condition in _words(fields, "when", place):
        unknown = [part for part in condition.split("+") if part not in (*CONDITIONS, CORE, REFERENCE)]
        if unknown or ("+" in condition and {CORE, REFERENCE} & set(condition.split("+"))):
            raise KnowledgeError(f"{place}: {condition!r} is no condition; there are {', '.join(CONDITIONS)}")
    for name in ("keywords", "when", "sources", "asked"):
        if not fields[name]:
            raise KnowledgeError(f"{place}: field {name!r} is empty")
    return fields


def _words(metadata: dict[str, Any], name: str, place: str) -> tuple[str, ...]:
    value = metadata[name]
    if not isinstance(value, list) or not all(
        isinstance(item, str) and item.strip() for item in cast("list[Any]", value)
    ):
        raise KnowledgeError(f"{place}: field {name!r} must be a list of words")
    return tuple(item.strip() for item in cast("list[str]", value))
