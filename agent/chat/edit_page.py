"""One follow-up while it is read: what is understood is taken out of its text, and shown or asked back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...tools.errors import InputError
from ...tools.plan.document import Relaxation
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ..languages.say import say
from .edits import Spoken
from .figures import FIGURES, WHOLE, title

# Fields of `Said` that say one thing together.
_COUNTS = ("gpus", "nodes", "gpus_per_node", "gpus_open")
_FORMATS = ("weights", "kv_cache", "activations", "precisions")
TOGETHER: dict[str, tuple[str, ...]] = {
    "gpus": _COUNTS,
    "nodes": _COUNTS,
    "precision": _FORMATS,
    **{limit.field: (limit.field, limit.statistic) for limit in LATENCY_LIMITS},
    "input_tokens": ("input_tokens", "input_tokens_range"),
    "output_tokens": ("output_tokens", "output_tokens_range"),
}


class EditPage:
    """One follow-up while it is read: what is understood is taken out of the text."""

    def __init__(self, text: str, spoken: Sequence[Spoken]) -> None:
        self.text = text
        self.spoken = spoken
        self.now = spoken[-1] if spoken else None
        self.stated: dict[str, Any] = {}
        self.words: dict[str, str] = {}
        self.dropped: list[str] = []
        self.forbidden: list[Relaxation] = []
        self.whole_attention = False
        self.readings: list[str] = []
        self.questions: list[str] = []

    def take(self, match: re.Match[str]) -> str:
        """Take the words of a match out of the text."""
        self.text = f"{self.text[: match.start()]} ; {self.text[match.end() :]}"
        return match.group().strip()

    def state(self, name: str, value: float, said_as: str, how: str = "") -> None:
        """State a figure; `how` is the sum that it came from."""
        if name in WHOLE and value != int(value):
            odd = "{said!r} makes {title} {value:g}, which is no whole number"
            raise InputError(say(odd, said=said_as, title=title(name), value=value))
        if how and value <= 0:
            none_left = "{said!r} makes {title} {sum}: there must be something left"
            raise InputError(say(none_left, said=said_as, title=title(name), sum=how))
        self.stated[name] = int(value) if name in WHOLE else value
        self.words[name] = said_as
        self.read_as(said_as, f"{title(name)} {how or f'{value:g}'}")

    def read_as(self, said_as: str, meant: str) -> None:
        """Tell how words were read."""
        self.readings.append(say("{said!r} read as {meant}", said=said_as, meant=meant))

    def ask(self, question: str, **values: object) -> None:
        """Ask back."""
        self.questions.append(say(question, **values))

    def value(self, name: str) -> float | None:
        """The current value of a figure, as changed by this text so far; `None` if it is open."""
        if name in self.stated:
            return self.stated[name]
        return FIGURES[name](self.now.intent) if self.now is not None and name in FIGURES else None

    def drop(self, name: str, said_as: str) -> None:
        """Take back what was stated of a field."""
        if name == "gpus":
            self.stated["gpus_open"] = True
            self.words["gpus_open"] = said_as
        self.dropped += [field for field in TOGETHER.get(name, (name,)) if field not in self.stated]
