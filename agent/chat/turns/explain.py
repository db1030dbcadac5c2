"""A rule, a topic or a question, answered from the knowledge base."""

from __future__ import annotations

from ..outcome import Outcome
from .work import Work


def explain_words(work: Work, text: str) -> Outcome:
    """The passage that answers `text`.

    Raises:
        InputError: nothing is asked, or a rule that does not exist.
    """
    # Reading the base takes as long as a small plan: only who asks pays for it.
    from ...explain import explain
    from ...report.explain import render_explanation

    found = explain(text)
    told = {
        "rule": None if found.rule is None else f"{found.rule.id}: {found.rule.requirement}",
        "passages": [f"{one.citation}: {one.text}"[:1500] for one in found.answers],
        "nearest": list(found.nearest),
    }
    kind = "unknown" if found.exit_status else "explain"
    return Outcome(kind, render_explanation(found, width=work.width), told=told)
