"""The current plan beside a strategy in words, or beside the plan document of a file that the person names."""

from __future__ import annotations

from pathlib import Path

from ....tools.comparison.result import Comparison
from ....tools.errors import InputError
from ....tools.language.said import Said
from ...compare import Words, compared
from ...languages.say import say
from ...report.compare import render_comparison
from ...stated.words_or_file import is_words
from ..outcome import Outcome
from .work import Work


def compare_with(work: Work, text: str, *, may_read_files: bool) -> Outcome:
    """Set the current plan beside `text`: a strategy in words, or the path of a plan where files may be read.

    Raises:
        InputError: there is no plan, or `text` is neither.
    """
    if not text.strip():
        raise InputError(say('compare with what? Say a strategy, such as "compare TP4 PP2", or the path of a plan'))
    now = work.now
    other = Words(text) if is_words(text) or not may_read_files else Path(text)
    sides = compared(
        work.plan,
        other if isinstance(other, Words) else str(other),
        Said(usd_per_gpu_hour=now.intent.usd_per_gpu_hour),
        titles=(say("the current plan"), text),
        calibration=now.intent.calibration,
    )
    return Outcome("compare", render_comparison(sides, width=work.width), comparison=sides, told=told_of(sides))


def told_of(sides: Comparison) -> dict[str, object]:
    """A comparison in a few words, for a language model."""
    broken = [f"{finding.rule}: {finding.message}" for finding in sides.b.violations if finding.severity == "error"]
    return {
        "a": sides.a.summary,
        "b": sides.b.summary,
        "b_is_valid": sides.b.valid,
        "b_breaks": broken[:5],
        "verdict": list(sides.verdict),
    }
