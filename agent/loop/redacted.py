"""What a person wrote without the secrets that a client knows: what a model is asked is what a transcript holds.

Redacted are words, never what was understood of them: model, hardware and load stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from ..intent.intent import Intent


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
