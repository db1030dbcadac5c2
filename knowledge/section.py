"""One section of the knowledge base: a self-contained passage, and its metadata."""

from __future__ import annotations

from msgspec import Struct


class Section(Struct, frozen=True):
    """A passage under one heading of one file.

    `when` are the conditions of a request that include it for a proposer; any one is enough, and one joined by `+`
    needs all its parts. `asked`: how people ask what it answers. `text` is the heading and the passage without
    comments, `body` the passage as in the file, with them. `tokens` is the estimate for `text`; `line` the heading's,
    from 1.
    """

    id: str
    file: str
    title: str
    keywords: tuple[str, ...]
    rules: tuple[str, ...]
    when: tuple[str, ...]
    sources: tuple[str, ...]
    asked: tuple[str, ...]
    text: str
    body: str
    tokens: int
    line: int
    # Whether it opens its file, and so introduces the others.
    is_first: bool = False

    @property
    def citation(self) -> str:
        """The section's name in answers: file § heading."""
        return f"{self.file} § {self.title}"

    @property
    def is_core(self) -> bool:
        """Whether every request includes it."""
        return CORE in self.when


class Document(Struct, frozen=True):
    """One file of the knowledge base. `source` is its whole text, comments included."""

    file: str
    title: str
    introduction: str
    sections: tuple[Section, ...]
    source: str


CORE = "core"
REFERENCE = "reference"
