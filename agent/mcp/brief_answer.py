"""An answer that fits into the context of a model: documents by their handles, figures to four digits, long lists cut.

What is cut keeps its type, so that the brief answer is still one of the schema of the tool, and is named.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, field

from ..loop.shorten import rounded
from .shears import cut_to
from .shelf import Shelf

# Letters of the JSON of a brief answer, and of a whole one.
MOST_BRIEF_CHARACTERS = 16_000
MOST_WHOLE_CHARACTERS = 16 << 20
# Letters of a text for people, as the report of a large deployment, and of the beginning of a longer one: a part of a
# script or of a page is of no use.
MOST_TEXT_CHARACTERS = 20_000
_BEGINNING_CHARACTERS = 2_000
# A document of a plan has one of these; a finding has nodes too, but they are names.
_OF_A_PLAN = ("model", "hardware", "workload", "strategy")


class Brief(Struct):
    """An answer that was cut: `kept` are handles of its documents by where they stood, `cut` says what is shorter."""

    answer: dict[str, Any] | None
    kept: dict[str, str] = field(default_factory=dict[str, str])
    cut: list[str] = field(default_factory=list[str])

    def structured(self) -> dict[str, Any]:
        """The answer of a tool for programs."""
        answer = {} if self.answer is None else {"answer": self.answer}
        return {**answer, "kept": self.kept, "cut": self.cut}


def whole_answer(answer: dict[str, Any], shelf: Shelf) -> Brief:
    """All of an answer, with handles for its documents beside it; nothing where that is more than is ever sent."""
    handles: dict[str, str] = {}
    _with_handles(answer, shelf, handles)
    size = len(json.dumps(answer, ensure_ascii=False))
    if size > MOST_WHOLE_CHARACTERS:
        return Brief(None, handles, [f"answer: all of its {size:,} characters; ask for less"])
    return Brief(answer, handles)


def brief_answer(answer: dict[str, Any], shelf: Shelf) -> Brief:
    """The part of an answer that a model can use."""
    handles: dict[str, str] = {}
    shown = rounded(_with_handles(answer, shelf, handles))
    cut = cut_to(shown, MOST_BRIEF_CHARACTERS)
    return Brief(None, handles, ["answer: all of it"]) if cut is None else Brief(shown, handles, cut)


def short_report(text: str, shelf: Shelf) -> str:
    """A text for people, or its beginning and where the whole of it is."""
    if len(text) <= MOST_TEXT_CHARACTERS:
        return text
    handle = shelf.keep("text", text)
    where = "" if handle is None else f"; all of it is the resource {handle}"
    return f"{text[:_BEGINNING_CHARACTERS]}\n… ({len(text) - _BEGINNING_CHARACTERS:,} characters more{where})"


def _with_handles(answer: dict[str, Any], shelf: Shelf, handles: dict[str, str]) -> dict[str, Any]:
    """`answer` with its plan documents put on the shelf and replaced by their handles."""
    shown = dict(answer)
    for name, value in answer.items():
        handle = shelf.keep("plan", value) if is_plan(value) else None
        if handle is not None:
            shown[name] = handles[f"answer.{name}"] = handle
    return shown


def is_plan(value: Any) -> bool:
    """Whether `value`, an object or its JSON text, looks like a plan document, broken or not."""
    if isinstance(value, str):
        value = _of_json(value)
    return isinstance(value, dict) and isinstance(value.get("nodes"), list) and any(map(value.__contains__, _OF_A_PLAN))


def _of_json(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
