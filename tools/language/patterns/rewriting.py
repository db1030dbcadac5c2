"""Tables of rewritings: patterns, each with its replacement or the function that makes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from .gated import Pattern

Workings: TypeAlias = "tuple[tuple[Pattern, Callable[[re.Match[str]], str | None]], ...]"
Rewriting: TypeAlias = "tuple[tuple[Pattern, str | Callable[[re.Match[str]], str]], ...]"


def rewritten(text: str, table: Rewriting) -> str:
    """The text after each pattern of the table in turn: a later one reads what an earlier one wrote."""
    for pattern, written in table:
        text = pattern.sub(written, text)
    return text


def worked_out_by(text: str, table: Workings) -> tuple[str, list[str]]:
    """The text with each match replaced by what is worked out from it, and notes; `None` leaves a match."""
    notes: list[str] = []

    def noted(match: re.Match[str], written: str | None) -> str:
        if written is None:
            return match.group()
        notes.append(f"{' '.join(match.group().split())[:200]!r} worked out as {written.strip()!r}")
        return written

    for pattern, work in table:
        text = pattern.sub(lambda match, work=work: noted(match, work(match)), text)
    return text, notes
