"""How alike a question and a section are worded: the neighbouring words that both contain, small words included.

"how many", "is it legal" or 一样吗 show the kind of answer wanted, which single words do not. SQLite's FTS5 ranks the
pairs of neighbours by BM25. It knows nothing of meaning: the search adds a share of it to the score by words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import pairwise

from .words import runs_of_atoms

# More than any question has; a longer text is cut.
_MAX_PHRASES = 240
# Separates sentences, so that their words are no neighbours: no text of the base has this word.
_BREAK = " qzq "


def create(connection: sqlite3.Connection, texts: Iterable[Sequence[Sequence[str]]]) -> None:
    """Write the phrases of each text, given as runs of words; a text's place is its row."""
    connection.execute("CREATE VIRTUAL TABLE phrases USING fts5(wording, tokenize = 'porter unicode61')")
    rows = ((place, _BREAK.join(map(" ".join, runs))) for place, runs in enumerate(texts))
    connection.executemany("INSERT INTO phrases (rowid, wording) VALUES (?, ?)", rows)


def likeness(connection: sqlite3.Connection, question: str) -> dict[int, float]:
    """Place of each text that shares a phrase with `question` → likeness of wording, 1 for the likest."""
    pairs = dict.fromkeys(f'"{a} {b}"' for run in runs_of_atoms(question) for a, b in pairwise(run))
    if not pairs:
        return {}
    sought = " OR ".join(list(pairs)[:_MAX_PHRASES])
    rows = connection.execute("SELECT rowid, -bm25(phrases) FROM phrases WHERE phrases MATCH ?", (sought,)).fetchall()
    most = max((strength for _, strength in rows), default=0.0)
    return {int(place): strength / most for place, strength in rows} if most > 0 else {}
