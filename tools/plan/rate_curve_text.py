"""Reads rate curves from text or files: 24 rates, steps FROM-TO=RATE, or rows of a time and a rate."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from ..errors import InputError
from ..input.files import read_bounded, shown_path, utf8_text
from .rate_curve import DAY_H, MOST_STEPS, RateCurve, RateStep, Span, checked_curve, clock, hourly

MAX_FILE_BYTES = 256 << 10
MAX_CHARACTERS = 20_000
FORMS = "24 rates, one an hour (2,2,…), or steps FROM-TO=RATE that make a day (0-8=2,8-18=20,18-24=5)"
_TIME = r"\d{1,2}(?::\d{2}|\.\d{1,4})?"
_STEP = re.compile(rf"(?P<begins>{_TIME})\s?[-–]\s?(?P<ends>{_TIME})\s?[=:]\s?(?P<rate>\d[\d.eE+-]*)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LIST = re.compile(r"[\d\s.,;:=eE+–-]+")


def is_curve_text(text: str) -> bool:
    """Whether a text is written as rates or steps, and not in words."""
    return _LIST.fullmatch(text.strip()) is not None


def curve_of_text(text: str, source: str) -> RateCurve:
    """The curve of a list of rates or steps. Raises InputError: it is malformed."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"rate curve: {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    parts = [part for part in re.split(r"[,;\s]+", re.sub(r"\s*([-–=])\s*", r"\1", text.strip())) if part]
    if any("=" in part for part in parts):
        return curve_of_spans([_span(part) for part in parts], source)
    return hourly([_rate(part) for part in parts], source)


def curve_of_file(path: Path) -> RateCurve:
    """The curve in a file: 24 rates, steps as on the command line, or CSV rows of when a step begins and its rate.

    Raises InputError: it cannot be read, or is malformed.
    """
    name = shown_path(path)
    text = utf8_text(read_bounded(path, MAX_FILE_BYTES, name), name).removeprefix("\ufeff")
    try:
        return curve_of_rows(text, name)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def curve_of_rows(text: str, source: str) -> RateCurve:
    """The curve of the text of a file. Raises InputError: it is malformed."""
    if is_curve_text(text) and ("=" in text or not _has_two_columns(text)):
        return curve_of_text(text, source)
    dialect = csv.excel_tab if "\t" in text else csv.excel
    delimiter = ";" if ";" in text and "," not in text else dialect.delimiter
    rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter) if any(cell.strip() for cell in row)]
    if rows and not _NUMBER.fullmatch(rows[0][-1].strip()):
        rows = rows[1:]  # the names of the columns
    if not rows or len(rows) > MOST_STEPS:
        raise InputError(f"rate curve: {len(rows):,} rows; 1 to {MOST_STEPS:,} are read")
    wrong = next((place for place, row in enumerate(rows, 1) if len(row) != 2), None)
    if wrong is not None:
        raise InputError(f"rate curve: row {wrong} is not a time and a rate (08:00,20); or give {FORMS}")
    steps = [RateStep.model_construct(begins_h=_hours(row[0]), requests_per_s=_rate(row[1])) for row in rows]
    return checked_curve(steps, source)


def curve_of_spans(spans: Sequence[Span], source: str) -> RateCurve:
    """The curve of spans that together make a day; a span that ends before it begins crosses midnight.

    Raises InputError: a part of the day has no rate, or two.
    """
    parts: list[Span] = []
    for span in spans:
        if span.ends_h > span.begins_h:
            parts.append(span)
        else:
            halves = (span.begins_h, float(DAY_H)), (0.0, span.ends_h)
            parts += [Span(begins, ends, span.requests_per_s) for begins, ends in halves if ends > begins]
    parts.sort(key=lambda part: part.begins_h)
    ends = [Span(0.0, 0.0, 0.0), *parts, Span(DAY_H, DAY_H, 0.0)]
    for earlier, later in pairwise(ends):
        if later.begins_h != earlier.ends_h:
            what = "no rate" if later.begins_h > earlier.ends_h else "two rates"
            begins_h, ends_h = sorted((earlier.ends_h, later.begins_h))
            raise InputError(f"rate curve: {clock(begins_h)}-{clock(ends_h)} has {what}; steps must make a day")
    steps = [RateStep.model_construct(begins_h=part.begins_h, requests_per_s=part.requests_per_s) for part in parts]
    return checked_curve(steps, source)


def _has_two_columns(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and all(len(re.findall(r"[^\s,;]+", line)) == 2 for line in lines)


def _span(part: str) -> Span:
    match = _STEP.fullmatch(part)
    if match is None:
        raise InputError(f"rate curve: {part[:60]!r} is no step FROM-TO=RATE such as 8-18=20")
    return Span(hours_of(match["begins"]), hours_of(match["ends"]), _rate(match["rate"]))


def _rate(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise InputError(f"rate curve: {text.strip()[:60]!r} is no rate in requests/s; give {FORMS}")
    return float(text)


def _hours(text: str) -> float:
    if not re.fullmatch(_TIME, text.strip()):
        raise InputError(f"rate curve: {text.strip()[:60]!r} is no time of a day such as 08:30")
    return hours_of(text.strip())


def hours_of(text: str) -> float:
    """Hours after midnight of `8`, `08:30` or `8.5`. Raises InputError: a day has no such time."""
    whole, _, minutes = text.partition(":")
    hours = float(whole) + (float(minutes) / 60.0 if minutes else 0.0)
    if hours > DAY_H or (minutes and float(minutes) >= 60.0):
        raise InputError(f"rate curve: a day has no {text[:20]}; it ends at {DAY_H}:00")
    return hours
