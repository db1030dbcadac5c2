"""The page of a plan: one HTML file that needs nothing else, for any browser, without a network.

What a plan holds is a stranger's: it is in the page as JSON, of which the script makes text and never markup, and the
page's policy lets no script and no style in but its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template

from ..draw.style import COLOURS, LINES
from ..plan.document import Phase
from ..plan.reader import ReadDocument
from .page_data import page_data

# In JSON these stand for themselves, and in HTML they would end the script or begin a comment.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def page(read: ReadDocument, phase: Phase | None = None, labels: Mapping[str, str] | None = None) -> str:
    """The page of a document, of one phase alone where `phase` names it; broken documents are shown too.

    `labels` stand in the place of the English ones, which have `{}` for each number.
    """
    data = page_data(read, phase).model_copy(update={"labels": dict(labels or {})})
    style, script = _style(), _part("page.js")
    # Widths and heights are set on elements by the script, which a policy without styles of elements allows.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return Template(_part("page.html")).substitute(
        policy=policy,
        title=escape(data.title),
        style=style,
        script=script,
        data=data.model_dump_json(exclude_defaults=False).translate(_IN_SCRIPT),
    )


def page_hashes() -> tuple[str, str]:
    """Style and script of every page, as a policy names them: for a page that shows one in a frame."""
    return _hash(_style()), _hash(_part("page.js"))


def _style() -> str:
    return f"{_part('page.css')}{_colours(0)}@media(prefers-color-scheme:dark){{{_colours(1)}}}"


def _colours(place: int) -> str:
    """The colours of boxes and lines on a light page (0) or on a dark one (1), those of all pictures."""
    boxes = "".join(
        f".kind-{kind}{{--fill:{colours[2 * place]};--line:{colours[2 * place + 1]}}}"
        for kind, colours in {**COLOURS, "request": COLOURS["replica"]}.items()
    )
    lines = "".join(
        f".link-{kind}{{stroke:{colours[place]}}}.fill-{kind}{{background:{colours[place]}}}"
        for kind, colours in LINES.items()
    )
    return f"{boxes}{lines}.fill-lit{{background:var(--lit)}}"


def _part(name: str) -> str:
    """A part of the page that ships with the package."""
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8").strip()


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
