"""Two documents compared: their differences, their figures, and the better one."""

from __future__ import annotations

from typing import Any

from ...tools.compare import compare
from ...tools.comparison.result import Comparison
from ..loop.shorten import rounded
from .tool import Answer, Bench

_MOST_CHANGES = 16


def comparison(bench: Bench, first: str, second: str) -> Answer:
    """The documents of two handles compared.

    Raises:
        InputError: no such handle.
    """
    intent, desk = bench.desk.question.intent, bench.desk
    names = (first, second)
    compared = compare(
        desk.get(names[0]),
        desk.get(names[1]),
        titles=names,
        calibration=intent.calibration,
        usd_per_gpu_hour=(intent.usd_per_gpu_hour, intent.usd_per_gpu_hour),
    )
    return Answer(rounded(_content(compared, names)))


def _content(compared: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    sides = {
        letter: {"handle": name, "plan": side.summary, "valid": side.valid}
        for letter, name, side in zip("AB", names, (compared.a, compared.b), strict=True)
    }
    undecided = "undecided: the difference is within the error of the figures"
    better = {"a": names[0], "b": names[1], "undecided": undecided}.get(compared.better or "", compared.better)
    return {
        **sides,
        "better": better or "undecided: one of them is not valid or cannot be compared",
        "verdict": list(compared.verdict),
        "differs": [[line.what, line.a, line.b] for line in (*compared.question, *compared.changes)][:_MOST_CHANGES],
        "figures": [
            [row.title, row.unit, row.a, row.b] for row in compared.figures if row.better != "same" and row.a != row.b
        ],
    }
