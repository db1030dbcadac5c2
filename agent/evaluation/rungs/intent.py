"""Rung: the request was read as its words mean."""

from __future__ import annotations

from typing import Any

from ..marks import Mark, Solution
from ..posed import PosedCase
from .rung import AnswerRung

_ABSENT = object()


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    wanted = asked.case.intent
    if not wanted:
        return None
    if asked.intent is None:
        return Mark(passed=False, value=0.0, why=f"the request was refused: {asked.refusal}"[:300])
    # What an engine does by itself is no reading of the words.
    whole = {**asked.intent.model_dump(mode="json"), "relaxations": [*asked.intent.stated_relaxations]}
    wrong = [
        f"{path} is {_shown(whole, path)}, not {value}" for path, value in wanted.items() if not _is(whole, path, value)
    ]
    return Mark(passed=not wrong, value=1 - len(wrong) / len(wanted), why="; ".join(wrong)[:300])


def _at(whole: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(whole, dict) or name not in whole:
            return _ABSENT
        whole = whole[name]
    # A card of one's own has its name inside.
    return whole.get("id", whole) if isinstance(whole, dict) and path.endswith("accelerator") else whole


def _is(whole: Any, path: str, wanted: Any) -> bool:
    found = _at(whole, path)
    if isinstance(wanted, list) and isinstance(found, list):
        return sorted(map(str, wanted)) == sorted(map(str, found))
    if isinstance(wanted, int | float) and isinstance(found, int | float) and not isinstance(wanted, bool):
        return abs(found - wanted) <= 1e-6 * max(abs(wanted), 1.0)
    return found == wanted


def _shown(whole: Any, path: str) -> str:
    found = _at(whole, path)
    return "no field of an intent" if found is _ABSENT else str(found)[:80]


RUNG = AnswerRung("intent", "were model, hardware, load, limits and formats read as they were meant?", _mark)
