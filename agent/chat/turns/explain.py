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

    explanation = explain(text)
    told = {
        "rule": None if explanation.rule is None else f"{explanation.rule.id}: {explanation.rule.requirement}",
        "passages": [f"{passage.citation}: {passage.text}"[:1500] for passage in explanation.answers],
        "nearest": list(explanation.nearest),
    }
    kind = "unknown" if explanation.exit_status else "explain"
    return Outcome(kind, render_explanation(explanation, width=work.width), told=told)
