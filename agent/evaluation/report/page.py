"""The report of an evaluation as one self-contained HTML page: no network, no other file, no foreign script.

Requests and proposals are untrusted: every text is escaped, pictures are images that cannot run anything, and the
page's policy admits only its own script. What would make it too long is left out and named.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from ..results import Kept
from .markup import Html, element, joined, text
from .page_cases import case_table
from .page_scores import scores
from .summary import Summary

# Limit of all pictures, before base64: a page for 250 cases stays under 10 MB.
MOST_PICTURE_BYTES = 5_500_000


def render_page(summary: Summary, records: Sequence[Kept]) -> str:
    """The page of a run: its scores, a table of all cases, and the details of each."""
    title = f"{summary.header.solver} on {summary.header.dataset}"
    flipped = _flipped(summary)
    pictured = _pictured(records, flipped)
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    body = joined(
        element("header", element("h1", f"Evaluation: {title}")),
        element("main", scores(summary, records), case_table(records, flipped, pictured)),
    )
    return Template(_part("page.html")).substitute(
        policy=policy, title=text(f"Evaluation: {title}"), style=style, script=script, body=body
    )


def _flipped(summary: Summary) -> frozenset[str]:
    changes = summary.comparison.changes if summary.comparison is not None else ()
    return frozenset(case for change in changes for case in (*change.lost, *change.gained))


def _pictured(records: Sequence[Kept], flipped: frozenset[str]) -> frozenset[int]:
    """The places of the cases whose picture is on the page: unsolved and flipped ones first."""
    order = sorted(
        range(len(records)),
        key=lambda place: (records[place].result.is_solved, records[place].result.id not in flipped, place),
    )
    bytes_left, shown = MOST_PICTURE_BYTES, set[int]()
    for place in order:
        detail = records[place].detail
        size = len(detail.picture.encode()) if detail is not None else 0
        if 0 < size <= bytes_left:
            bytes_left -= size
            shown.add(place)
    return frozenset(shown)


def _part(name: str) -> Html:
    """A part of the page that ships with the package."""
    return Html(files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8").strip())


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
