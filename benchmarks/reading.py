"""How requests of a labelled set are read: by the rules alone, and by the rules with recorded answers of a model.

    python benchmarks/reading.py SET.json [ANSWERS] [--show]

SET is a list of {"id", "kind", "text", "expect", "fields", "constraints"}: `kind` is "brief" or any other word for a
request, `fields` are those of `Said` that the text states, `constraints` lines such as "tp <= 4"; `expect` "asked"
or "refused" says that the text has to be asked about. ANSWERS is a folder with <id>.json, the structured answer of a
model. A request is right where all of it is, asked where it was refused or asked about though it can be read, else
silently wrong. --show lists what was not right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shardwright.agent.evaluation.rungs.reading import ASKED, reading_mark
from shardwright.agent.reading.answer import ReadingAnswer, read_answer
from shardwright.agent.reading.reader import read_by_both
from shardwright.agent.reading.source import Source
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.said import Said

_TO_ASK = ("asked", "ask", "refused", "refuse", "question")


def read(case: Mapping[str, Any], answer: ReadingAnswer | None) -> Said | str:
    """What a case is read as, or the line that refuses it or asks."""
    kind = "brief" if case.get("kind") == "brief" else "words"
    source = Source(kind=kind, texts=((f"{case['id']}", case["text"]),))
    rules = source.rules()
    try:
        said = read_by_both(source, rules, answer) if answer is not None else rules
    except RequestError as error:
        said = error
    return said.reason if isinstance(said, RequestError) else said


def answer_of(folder: Path, name: str) -> ReadingAnswer | None:
    """The recorded answer to a case, if there is one that can be read."""
    path = folder / f"{name}.json"
    return read_answer(path.read_text(encoding="utf-8")) if path.is_file() else None


def main() -> int:
    """Print both scores; 1 where a case has no recorded answer that can be read."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--show", action="store_true", help="list what was not right")
    arguments = parser.parse_args()
    folder: Path | None = arguments.answers
    cases: list[dict[str, Any]] = json.loads(arguments.cases.read_text(encoding="utf-8"))
    missing = 0
    for who in ("rules alone", "model and rules") if folder is not None else ("rules alone",):
        counts, shares = Counter[str](), list[float]()
        for case in cases:
            answer = None if folder is None or who == "rules alone" else answer_of(folder, case["id"])
            missing += who != "rules alone" and answer is None
            is_open = str(case.get("expect", "")).lower() in _TO_ASK
            fields, lines = ({}, ()) if is_open else (case.get("fields") or {}, case.get("constraints") or ())
            mark = reading_mark(fields, lines, read(case, answer))
            outcome = "right" if mark.passed else "asked" if mark.why.startswith(ASKED) else "silently wrong"
            counts[outcome] += 1
            shares.append(mark.value or 0.0)
            if arguments.show and not mark.passed:
                print(f"  {case['id']}: {mark.why}")
        text = ", ".join(f"{counts[name]} {name}" for name in ("right", "silently wrong", "asked"))
        facts = sum(shares) / max(1, len(shares))
        print(f"{arguments.cases.name}, {who}: {text} of {len(cases)}; {facts:.1%} of facts right, request by request")
    if missing:
        print(f"{missing} cases have no recorded answer that can be read: the rules read them alone")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
