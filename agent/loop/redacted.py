"""Removes the secrets that a client knows from the input and the output of a run.

Only a person's words are redacted, never the reading of them: model, hardware and load stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from ..intent.intent import Intent
from ..model.redaction import redacted_value
from ..results import PlanReport


def redacted_report(report: PlanReport, redact: Callable[[str], str], ours: Callable[[], frozenset[str]]) -> PlanReport:
    """`report` with all its texts redacted, even words that were combined here.

    Words in `ours` stay.
    """
    content = report.model_dump(mode="json")
    clean = redacted_value(content, redact, ours)
    return report if clean is content else PlanReport.model_validate(clean)


def redacted(intent: Intent, redact: Callable[[str], str]) -> Intent:
    """`intent` with its words redacted."""
    assumptions = (fact.model_copy(update={"reason": redact(fact.reason)}) for fact in intent.assumptions)
    return intent.model_copy(
        update={
            "words": {name: redact(words) for name, words in intent.words.items()},
            "assumptions": tuple(assumptions),
            "readings": tuple(map(redact, intent.readings)),
            "unread": tuple(map(redact, intent.unread)),
        }
    )
