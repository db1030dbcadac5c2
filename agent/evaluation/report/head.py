"""The first lines of the report: what was run, how much of it is solved, and whose merit that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...report.text import count_text
from ..results import Kept
from .summary import Summary

# Most cases listed with their failure; the page and the JSON have all.
MOST_LISTED = 25


def percent(share: float) -> str:
    """A share in whole percent; less than all is never 100%, and more than nothing never 0%."""
    shown = round(share * 100)
    if (shown == 100 and share < 1) or (shown == 0 and share > 0):
        return f"{share * 100:.1f}%"
    return f"{shown}%"


def listed(cases: Sequence[str]) -> str:
    """Cases by name, capped with a count of the rest."""
    shown = ", ".join(cases[:MOST_LISTED])
    return shown if len(cases) <= MOST_LISTED else f"{shown} and {len(cases) - MOST_LISTED} more"


def solved_words(summary: Summary) -> str:
    """How many cases are solved; those that the tools decide before anyone is asked are no proposer's merit."""
    decided = summary.cases - summary.put
    if not decided:
        return f"{summary.solved} of {summary.cases} ({percent(summary.solved / summary.cases)})"
    of_tools = (
        f"{summary.solved - summary.put_solved} of {decided} that the tools decide before a proposer is asked (no plan "
        "is possible, or a refusal)"
    )
    if not summary.put:
        return of_tools
    share = percent(summary.put_solved / summary.put)
    return f"{summary.put_solved} of {summary.put} put to {summary.header.solver} ({share}); {of_tools}"


def head(summary: Summary, records: Sequence[Kept]) -> Iterator[str]:
    """What was run, and how much of it is solved, by whom."""
    header = summary.header
    families = len({record.result.family for record in records})
    epochs = f" × {header.epochs} epochs" if header.epochs > 1 else ""
    yield (
        f"{header.dataset}: {count_text(summary.cases, 'case')}{epochs} in "
        f"{count_text(families, 'family', 'families')}; solver {header.solver}; shardwright {header.shardwright}"
    )
    yield f"Dataset {header.dataset_hash[:16]}, results {summary.digest[:16]}"
    yield f"Solved: {solved_words(summary)}"
    yield (
        "Solved is a right answer in every epoch: read as meant, the proposer's own, keeping every hard rule, no worse "
        "than the golden by the performance model. Another plan than the golden may be as good."
    )
    asked = {record.result.id for record in records if record.result.passed("own") is not None}
    if asked:
        yield (
            f"Of {count_text(len(asked), 'case')} in which it was asked, {summary.own} end with a plan of its own; in "
            "the others a user gets the built-in proposer's, whose marks stand under `at the end`."
        )
    if summary.beaten:
        yield (
            f"Look at the golden of {listed(summary.beaten)}: the proposer's own plan is no worse than it, and the "
            "built-in one, which a user gets, is better than both."
        )
    if summary.unreachable:
        yield f"The model could not be reached in {count_text(summary.unreachable, 'case')}."
    if summary.without_golden:
        lone = count_text(summary.without_golden, "case")
        yield f"{lone} without a golden: only reading and legality are marked there."
