"""The errors of reading what a person wrote; each message is one line, and what was understood so far rides along."""

from __future__ import annotations

from typing import Any

from ..errors import InputError, short_words
from ..input.shapes import is_object
from ..plan.constraints import Constraint
from .said import Understood


def _shown(entry: Understood) -> str:
    """A figure or a name as it is; what has parts in the words that stated it."""
    constraints: tuple[Constraint | dict[str, Any], ...] = entry.value if entry.field == "constraints" else ()
    stated = [each["words"] if isinstance(each, dict) else each.words for each in constraints]
    if stated:
        return " and ".join(map(repr, stated))
    return repr(entry.words) if is_object(entry.value) and entry.words else str(entry.value)


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
