"""A rate curve as it is stated: numbers, a text, a file, or `trace` for the hours of the trace beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from ...tools.errors import InputError, expect
from ...tools.input.strict_values import check_text
from ...tools.plan.rate_curve import MOST_STEPS, RateCurve, hourly
from ...tools.plan.rate_curve_text import curve_of_file, curve_of_rows, curve_of_text, is_curve_text
from ...tools.traffic.trace import Trace

CurveArgument = RateCurve | str | Path | Sequence[float]
OF_TRACE = "trace"
_FILES = (".csv", ".tsv", ".txt")


def stated_curve(curve: CurveArgument, trace: Trace | None) -> RateCurve:
    """The curve that is stated; a text is rates, steps, rows, words, or where it is one word the path of a file.

    Raises:
        InputError: it is none, cannot be read, or contradicts itself.
    """
    expect(curve, (RateCurve, str, Path, Sequence), "rate_curve", "24 rates, a text or the path of a file is expected")
    if isinstance(curve, RateCurve):
        return curve
    if isinstance(curve, Path):
        return curve_of_file(curve)
    if isinstance(curve, str):
        return _of_text(check_text(curve, "rate_curve").strip(), trace)
    for rate in curve[: MOST_STEPS + 1]:
        expect(rate, (int, float), "rate_curve", "rates are numbers")
    return hourly(cast("Sequence[float]", curve), "stated hour by hour")


def _of_text(text: str, trace: Trace | None) -> RateCurve:
    if text == OF_TRACE:
        return _of_trace(trace)
    if "\n" in text:
        return curve_of_rows(text, "stated")
    if is_curve_text(text) or ("=" in text and len(text.split()) == 1):
        return curve_of_text(text, "stated")
    if len(text.split()) == 1 or text.lower().endswith(_FILES):
        return curve_of_file(Path(text))
    from ...tools.language.load.curve import curve_of_words

    return curve_of_words(text)


def _of_trace(trace: Trace | None) -> RateCurve:
    """The hours of a day of the trace.

    Raises:
        InputError: there is no trace, or it does not last a day.
    """
    if trace is None:
        raise InputError("rate curve: trace stands for the hours of a trace, and none is given: name its file")
    if trace.hours_per_s is None:
        raise InputError("rate curve: the trace does not tell the rates of 24 hours; state them in place of trace")
    return hourly(trace.hours_per_s, "the trace's hours, of several days the busiest of each hour")
