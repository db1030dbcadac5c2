"""The worked numbers and example documents in the texts of the knowledge base, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from shardwright.knowledge.index import knowledge

# The figure before a marker: from the last blank, bracket or sign that cannot be part of a figure.
_NUMBER = re.compile(r"(?P<figure>[^\s|(\[=`*“\"]*)<!--= (?P<call>[^>]*?) -->")
_EXAMPLE = re.compile(
    r"^<!-- example: (?P<verdict>[^>\n]*) -->\n+```json\n(?P<json>(?:(?!```).*\n)*)```$", re.MULTILINE
)
_ANY_EXAMPLE = re.compile(r"<!--\s*example")
_ANY_NUMBER = re.compile(r"<!--\s*=")


class WorkedNumber(Struct, frozen=True):
    """A figure of a document and the computation that must give it."""

    place: str
    figure: str
    name: str
    arguments: tuple[str, ...]


class ExampleDocument(Struct, frozen=True):
    """An example document of a section, and the rules that it must break; none if it must be valid."""

    place: str
    breaks: tuple[str, ...]
    json: str


def _bodies() -> Iterator[tuple[str, str]]:
    for document in knowledge().documents:
        for section in document.sections:
            yield f"{section.file}:{section.line} {section.id}", section.body


def worked_numbers() -> list[WorkedNumber]:
    """Every marked figure; raises `ValueError` if a marker is malformed."""
    numbers: list[WorkedNumber] = []
    for place, body in _bodies():
        matches = list(_NUMBER.finditer(body))
        if len(matches) != len(_ANY_NUMBER.findall(body)):
            raise ValueError(f"{place}: a marker is not of the form figure<!--= NAME ARG… -->")
        for match in matches:
            name, *arguments = match["call"].split()
            numbers.append(WorkedNumber(place, match["figure"], name, tuple(arguments)))
    return numbers


def example_documents() -> list[ExampleDocument]:
    """Every example document; raises `ValueError` if a marker is malformed or no JSON block follows."""
    documents: list[ExampleDocument] = []
    for place, body in _bodies():
        matches = list(_EXAMPLE.finditer(body))
        if len(matches) != len(_ANY_EXAMPLE.findall(body)):
            raise ValueError(f"{place}: an example marker must stand on its own line, right before a ```json block")
        for match in matches:
            verdict, *rules = match["verdict"].replace(",", " ").split()
            if (verdict, bool(rules)) not in {("valid", False), ("breaks", True)}:
                raise ValueError(f"{place}: {match['verdict']!r} is neither 'valid' nor 'breaks RULE…'")
            documents.append(ExampleDocument(place, tuple(rules), match["json"]))
    return documents
