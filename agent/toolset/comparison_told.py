"""Two documents side by side: what differs in them, their figures, which is better and by what."""

from __future__ import annotations

from typing import Any

from ...tools.compare import compare
from ...tools.comparison.result import Comparison
from ..loop.shorten import rounded
from .tool import Answer, Bench

_MOST_CHANGES = 16


def comparison(bench: Bench, first: str, second: str) -> Answer:
    """The documents of two handles side by side.

    Raises:
        InputError: there is none of a handle.
    """
    intent, desk = bench.desk.question.intent, bench.desk
    names = (first, second)
    found = compare(
        desk.get(names[0]),
        desk.get(names[1]),
        titles=names,
        calibration=intent.calibration,
        usd_per_gpu_hour=(intent.usd_per_gpu_hour, intent.usd_per_gpu_hour),
    )
    return Answer(rounded(_told(found, names)))


def _told(found: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    sides = {
        letter: {"handle": name, "plan": side.summary, "valid": side.valid}
        for letter, name, side in zip("AB", names, (found.a, found.b), strict=True)
    }
    undecided = "undecided: the difference is within the error of the figures"
    better = {"a": names[0], "b": names[1], "undecided": undecided}.get(found.better or "", found.better)
    return {
        **sides,
        "better": better or "undecided: one of them is not valid or cannot be compared",
        "verdict": list(found.verdict),
        "differs": [[one.what, one.a, one.b] for one in (*found.question, *found.changes)][:_MOST_CHANGES],
        "figures": [
            [one.title, one.unit, one.a, one.b] for one in found.figures if one.better != "same" and one.a != one.b
        ],
    }
