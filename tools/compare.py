"""Compares two plan documents: each is validated and estimated as it stands, then they are set side by side.

It proposes nothing and mends nothing: a plan that breaks a rule is compared all the same, and said to break it.
"""

from __future__ import annotations

from .calibration.custom import CustomCalibration
from .comparison.changes import changes, questions
from .comparison.figures import figures
from .comparison.result import Comparison
from .comparison.side import Document, judged
from .comparison.words import concluded
from .errors import expect


def compare(
    a: Document,
    b: Document,
    *,
    titles: tuple[str, str] = ("A", "B"),
    calibration: CustomCalibration | None = None,
    usd_per_gpu_hour: float | None = None,
) -> Comparison:
    """Set two plan documents side by side: each a `Plan`, an object, a JSON text, or the path of a file.

    Raises:
        InputError: one of them cannot be read as a plan document. That it breaks rules is reported, not raised.
    """
    expect(titles, tuple, "titles", "two texts are expected")
    for title in titles:
        expect(title, str, "titles", "two texts are expected")
    first = judged(a, titles[0], calibration, usd_per_gpu_hour)
    second = judged(b, titles[1], calibration, usd_per_gpu_hour)
    objective = first.side.workload.objective
    found = Comparison(
        a=first.side,
        b=second.side,
        question=tuple(questions(first.side, second.side)),
        changes=tuple(changes(first.side, second.side)),
        figures=tuple(figures(first, second)),
        objective=objective if objective == second.side.workload.objective else None,
    )
    return concluded(found)
