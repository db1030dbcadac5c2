"""A sentence means the same as a request and as a brief of one line: one reader reads both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.request import read_words
from shardwright.tools.language.said import Said

pytestmark = pytest.mark.thorough

CASES = Path(__file__).parent.parent / "cases"
FILES = (
    "requests", "paraphrases", "unseen_paraphrases", "unseen_paraphrases_2", "unseen_paraphrases_3", "styles",
    "constraint_requests", "alternatives",
)  # fmt: skip
NOTES = {"words", "readings", "unread", "constraints"}


def texts(name: str) -> list[str]:
    rows = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return [row["text"] for row in rows if "text" in row]


def meaning(said: Said) -> dict[str, Any]:
    """The stated fields, without the words and the places that they came from."""
    constraints = sorted(repr(constraint.model_copy(update={"words": None})) for constraint in said.constraints)
    return said.model_dump(exclude_defaults=True, exclude=NOTES) | {"constraints": constraints}


def read(text: str, *, as_brief: bool) -> dict[str, Any] | str:
    try:
        return meaning(read_brief([("brief.txt", text)]) if as_brief else read_words(text))
    except RequestError:
        return "refused"


@pytest.mark.parametrize("name", FILES)
def test_a_request_saved_as_a_brief_is_the_same_deployment(name: str) -> None:
    differing = [text for text in texts(name) if read(text, as_brief=True) != read(text, as_brief=False)]
    assert differing == []
