"""The errors of reading what a person wrote; each message is one line, and what was understood so far rides along."""

from __future__ import annotations

from ..errors import InputError, short_words
from .said import Understood


def _shown(entry: Understood) -> str:
    """A figure or a name as it is; what has parts in the words that stated it."""
    parts: tuple[object, ...] = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    stated = [words for part in parts if isinstance(words := getattr(part, "words", None), str)]
    if stated:
        return " and ".join(map(repr, stated))
    return repr(entry.words) if isinstance(entry.value, dict) and entry.words else str(entry.value)


class RequestError(InputError):
    """A request that contradicts itself, asks the impossible or names what is unknown.

    `understood` lists what had been read when the refusal was decided; `str()` is one line that ends with it. `field`
    is the field of `Said` whose statements contradict each other, if it is a single field.
    """

    def __init__(self, reason: str, understood: tuple[Understood, ...] = (), field: str | None = None) -> None:
        listed = ", ".join(f"{entry.field} = {_shown(entry)}" for entry in understood)
        # Words of the request may stand in the reason, line breaks and all.
        reason = short_words(" ".join(reason.split()))
        super().__init__(" ".join(f"{reason} (understood so far: {listed})".split()) if listed else reason)
        self.reason = reason
        self.understood = understood
        self.field = field


class BriefError(RequestError):
    """A brief that contradicts itself, asks the impossible or cannot be read; the message names the place."""
