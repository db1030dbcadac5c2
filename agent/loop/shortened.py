"""A model's answer as it stays in the conversation: without whole documents, which have handles.

The conversation is sent with every request, so a document in it would be paid for each time. The full answer is judged
before it is shortened, and stays in the transcript.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..model.messages import Message, Reply

# Longer arguments or answers are always shortened: no strategy or edit takes as many characters.
LONGEST_KEPT_CHARACTERS = 4_000


def shortened(reply: Reply, handles: Sequence[str | None]) -> Message:
    """The message of `reply` for the conversation; `handles` are of the documents of its calls.

    An answer without calls has one handle, for the document in its text.
    """
    if not reply.tool_calls:
        return Message(role="assistant", content=_text(reply.text, handles[0] if handles else None))
    calls = tuple(
        call.model_copy(update={"arguments": json.dumps({"document": _instead(call.arguments, handle)})})
        if _is_bulky(call.arguments)
        else call
        for call, handle in zip(reply.tool_calls, handles, strict=True)
    )
    return Message(role="assistant", content=_text(reply.text, None), tool_calls=calls)


def _is_bulky(text: str) -> bool:
    """Whether a text holds a graph, or is longer than any other proposal."""
    return len(text) > LONGEST_KEPT_CHARACTERS or '"edges"' in text


def _text(text: str, handle: str | None) -> str:
    return f"({_instead(text, handle)})" if _is_bulky(text) else text


def _instead(text: str, handle: str | None) -> str:
    return f"kept as {handle}" if handle is not None else f"left out: {len(text):,} characters"
