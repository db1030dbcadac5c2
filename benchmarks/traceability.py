"""Checks `knowledge/traceability.yaml` against the design documents 000–004 themselves.

    python benchmarks/traceability.py FOLDER          compare; exit 1 where a sentence is missing or one too many
    python benchmarks/traceability.py FOLDER --list   print every normative sentence with its place

FOLDER holds the documents as Markdown files whose names begin with their number. A unit is a bullet, a numbered item,
or a sentence of a paragraph or a quotation; tables and code blocks hold none. A unit is normative where it says so
(must, only, not, never, disallowed, …), or where it is an item under a heading or a lead-in that does ("Rules:",
"The agent MUST reject plans that:"). Units are counted from 1 inside their section; what stands before the first
section is the document's introduction.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from shardwright.knowledge.traceability import Place, read_traceability

_NORMATIVE = re.compile(
    r"\b(must|shall|should|only|never|disallowed|rejected?|required?|requires|not|no|invalid|forbidden|mandatory"
    r"|restricted|exactly)\b|必须|不得",
    re.IGNORECASE,
)
# Headings and lead-ins whose items are rules, whatever words the items use.
_LEAD = re.compile(
    r"\b(rules?|constraints?|must|should|shall|mandatory|assumptions?|not allowed|invalid|principle|hierarchy"
    r"|consequences|closed set|primitive set|node types|edge types|skip)\b|must be rejected",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(?P<marks>#+)\s+(?P<text>.+)")
_NUMBERED = re.compile(r"(?P<number>\d+(?:\.\d+)*)\.?\s")
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*]|\d+\.)\s+(?P<text>.+)")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+(?=[A-Z>*])")


class Unit(Struct, frozen=True):
    """A normative sentence or item: its place, and what it says."""

    place: Place
    text: str


def units_of(number: str, text: str) -> Iterator[Unit]:
    """Every normative unit of the document `number`, in order."""
    section, count, lead, heading_leads = "introduction", 0, False, False
    paragraph: list[str] = []
    fenced = False

    def emit(words: str, inherits: bool) -> Iterator[Unit]:
        nonlocal count
        plain = words.strip().strip("*").strip()
        if plain and (inherits or _NORMATIVE.search(plain)):
            count += 1
            yield Unit(Place(f"{number} {section}", count), plain)

    def flush() -> Iterator[Unit]:
        nonlocal lead
        words = " ".join(paragraph)
        paragraph.clear()
        if not words:
            return
        lead = bool(words.rstrip("*").endswith(":") and _LEAD.search(words))
        for sentence in _SENTENCE.split(words):
            yield from emit(sentence, inherits=False)

    for line in [*text.splitlines(), "# end"]:
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield from flush()
            continue
        if fenced:
            continue
        line = line.lstrip(">").strip() if line.startswith(">") else line.rstrip()
        heading, item = _HEADING.match(line), _ITEM.match(line)
        if heading or item or not line.strip() or line.startswith(("|", "---")):
            yield from flush()
        if heading:
            numbered = _NUMBERED.match(heading["text"] + " ")
            level = len(heading["marks"])
            if numbered:
                section, count = f"§{numbered['number']}", 0
            elif level == 2:
                section, count = heading["text"].strip(), 0
            heading_leads, lead = bool(_LEAD.search(heading["text"])), False
        elif item:
            introduces = item["text"].rstrip().endswith(":")
            yield from emit(item["text"], inherits=(lead or heading_leads) and not introduces)
            lead = lead or (introduces and bool(_LEAD.search(item["text"])))
        elif line.strip() and not line.startswith(("|", "---")):
            paragraph.append(line.strip())


def documents(folder: Path) -> Iterator[tuple[str, str]]:
    """Number and text of each design document in `folder`, in order."""
    for path in sorted(folder.glob("[0-9][0-9][0-9]_*.md")):
        yield path.name[:3], path.read_text(encoding="utf-8")


def main() -> int:
    """Run; 0 where the table lists exactly the normative units of the documents."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="print every normative sentence with its place")
    arguments = parser.parse_args()
    units = [unit for number, text in documents(arguments.folder) for unit in units_of(number, text)]
    if not units:
        print(f"{arguments.folder}: no design document with a normative sentence", file=sys.stderr)
        return 2
    if arguments.list:
        for unit in units:
            print(f"{unit.place.source} #{unit.place.ordinal}: {unit.text}")
        return 0
    listed = {entry.place for entry in read_traceability()}
    texts = {unit.place: unit.text for unit in units}
    for place in sorted(set(texts) - listed):
        print(f"not in the table: {place.source} #{place.ordinal}: {texts[place]}")
    for place in sorted(listed - set(texts)):
        print(f"not in the documents: {place.source} #{place.ordinal}")
    print(f"{len(texts)} normative sentences, {len(listed)} entries")
    return 0 if set(texts) == listed else 1


if __name__ == "__main__":
    sys.exit(main())
