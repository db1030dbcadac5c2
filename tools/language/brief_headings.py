"""Which headings of a brief say something themselves: "### p99 TTFT under 900 ms", a paragraph above a signature."""

from __future__ import annotations

import re

from .brief_layout import sets_aside
from .gated import Gated
from .normal_form import normalise
from .quantities import find_quantities

_DEMAND = Gated(
    r"(?<![a-z])(?:must|shall|at (?:most|least)|no more than|keep|never|forbidden|not allowed)(?![a-z])"
    r"|必须|需要|不得|不要|至少|至多",
)
# Statements without a unit: "TP4", "8x H100", "2k in", "Users: 20", "FP8 only".
_STATEMENT = Gated(
    r"(?<![a-z\d])(?:[tpeds]p\s?=?\s?\d|\d{1,4}\s?x?\s?(?:nvidia\s)?[a-z]{1,4}\d{2,3}(?!\d)|\d[\d.,]*\s?(?:k|in|out)(?![a-z]))"
    r"|[:=]\s?\d|(?<![a-z])only(?![a-z])",
)
_SENTENCE = re.compile(r"\n|[.;!。;]\s*$|:\s")


def says_something(heading: str) -> bool:
    """Whether a heading has a figure or a demand; a title with a number ("Phase 2", "Latency (p99)") has none."""
    text = normalise(heading)
    states = _STATEMENT.search(text) or any(quantity.unit != "count" for quantity in find_quantities(text))
    demands = _DEMAND.search(text) and len(text.split()) > 2  # "Must have" is a title
    return bool(states or demands) and not sets_aside(heading)


def is_paragraph(underlined: str) -> bool:
    """Whether the text above a line of dashes is no title: Markdown takes "-- " of a signature for an underline."""
    return _SENTENCE.search(underlined) is not None or says_something(underlined)
