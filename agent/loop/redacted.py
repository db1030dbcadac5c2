"""What goes into a run and what comes out of it without the secrets that a client knows.

Of what a person wrote words are redacted, never what was understood of them: model, hardware and load stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from ..intent.intent import Intent
from ..model.redaction import redacted_value
from ..results import PlanReport


def redacted_report(report: PlanReport, redact: Callable[[str], str], own: Callable[[], frozenset[str]]) -> PlanReport:
    """`report` with all that is said in it as `redact` gives it: words that were put together here, too.

    The words that `own` gives stay.
    """
    whole = report.model_dump(mode="json")
    clean = redacted_value(whole, redact, own)
    return report if clean is whole else PlanReport.model_validate(clean)


def redacted(intent: Intent, redact: Callable[[str], str]) -> Intent:
    """`intent` with the words in it as `redact` gives them."""
    assumptions = (one.model_copy(update={"reason": redact(one.reason)}) for one in intent.assumptions)
    return intent.model_copy(
        update={
            "words": {name: redact(words) for name, words in intent.words.items()},
            "assumptions": tuple(assumptions),
            "readings": tuple(map(redact, intent.readings)),
            "unread": tuple(map(redact, intent.unread)),
        }
    )
