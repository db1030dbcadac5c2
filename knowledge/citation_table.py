"""How each section and each rule is cited, without reading the base: `citations.json`, made by `./check --write`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from msgspec import Struct

FILE = Path(__file__).resolve().parent / "citations.json"


class CitationTable(Struct, frozen=True):
    """The citation of every section by its id, and of the section that says most of each rule by the rule's id."""

    sections: dict[str, str]
    rules: dict[str, str]


@cache
def citation_table() -> CitationTable:
    """The table that ships with the package."""
    return CitationTable(**json.loads(FILE.read_text(encoding="utf-8")))


def generated_table() -> str:
    """The file as it must be by the sections and the index of today."""
    from ..tools.rules.registry import all_rules
    from .index import knowledge
    from .search import search_index

    sections = {section.id: section.citation for section in knowledge().sections}
    rules = {rule.id: search_index().teaching(rule.id)[0].citation for rule in all_rules()}
    return json.dumps({"sections": sections, "rules": rules}, indent=1, ensure_ascii=False) + "\n"
