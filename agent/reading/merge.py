"""Two readings while they come together: what stands so far, the notes on it, and how a difference is settled."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from ...tools.language.conflicts.evidence import Grade, grade
from ...tools.language.errors import RequestError
from ...tools.language.said import Said
from .found import Found
from .wording import APART, shown, spaced, stands_in, worded

# Words that set a statement against one before it.
_CONTRAST = re.compile(
    r"(?<![a-z])(?:but|however|originally|previously|was|were|used\sto|now|instead|only|rather|no\slonger|changed?|replaced|at\smost|"
    r"correct(?:ed|ion)?|mistake|up\sto|sorry|scratch|actually|wait|make\s(?:it|that))(?![a-z])|之前|原来|改|但|只|不是|最多|按|换成|不对|应该",
    re.IGNORECASE,
)


class AmbiguousError(RequestError):
    """What the text leaves open, or is read in two ways: the person has to say which is meant."""


class Merge(Struct):
    """The reading as it comes together. `base` is the rules', `is_refused` that they refused the whole of `text`,
    `is_whole` that the model read most of what they read.
    """

    base: Said
    is_refused: bool
    is_whole: bool
    text: str
    values: dict[str, Any]
    words: dict[str, str]
    assumed: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])
    clashes: list[str] = field(default_factory=list[str])
    doubts: list[str] = field(default_factory=list[str])

    def take(self, name: str, found: Found, instead: str = "") -> None:
        """Let the model's value stand; `instead` says which reading of the rules it replaces."""
        self.values[name] = found.value
        if found.reason is None:
            self.words[name] = found.quote
            self.notes.append(f"read by the model: {worded(name, found.value)} from {found.quote[:160]!r}{instead}")
            return
        self.words.pop(name, None)
        self.assumed[name] = f"read by the model from {found.quote[:160]!r}: {found.reason[:200]}"
        if instead:
            self.notes.append(f"assumed by the model: {worded(name, found.value)}{instead}")

    def drop(self, name: str) -> None:
        """Let nothing be said of a field."""
        self.values.pop(name, None)
        self.words.pop(name, None)

    def is_plain(self, name: str) -> bool:
        """Whether the rules' words state their value plainly."""
        return grade(name, self.values[name], self.words.get(name, "")) is Grade.PLAIN

    def holds(self, name: str, found: Found) -> bool:
        """Whether the model's words win over the rules': they say it as plainly, hold these, or take them back."""
        rules_words = self.words.get(name, "")
        if self.is_refused or not self.is_plain(name) or stands_in(rules_words, found.quote):
            return True
        is_plain = found.is_worked or grade(name, found.value, found.quote) is Grade.PLAIN
        return is_plain or self.takes_back(rules_words, found.quote)

    def takes_back(self, rules_words: str, quote: str) -> bool:
        """Whether `quote` takes back the rules' words, which stand before it."""
        text, first = spaced(self.text).lower(), next(iter(re.split(r"[;,]\s", rules_words)), "")
        last = spaced(APART.split(quote)[-1]).lower()
        earlier, later = text.find(spaced(first).lower()), text.rfind(last)
        around = text[max(0, earlier - 40) : later + len(last) + 20]
        return 0 <= earlier <= later + len(last) and _CONTRAST.search(around) is not None

    def settle(self, name: str, found: Found) -> None:
        """Settle a field that both state differently: an assumption gives way, the plainer words hold.

        Else it is a doubt where the model read the whole text, and so these words too, and a question where it did not.
        """
        rules_words = self.words.get(name, "")
        if found.reason is not None:
            self.notes.append(f"not taken from the model's reading: {worded(name, found.value)}, which it only assumes")
        elif self.holds(name, found) or self.is_whole:
            instead = f"the rules read {worded(name, self.values[name])} in {rules_words[:80]!r}"
            if not self.holds(name, found):
                self.doubts.append(f"{worded(name, found.value)} from {found.quote[:160]!r}: {instead}")
            self.take(name, found, f" ({instead})")
        else:
            self.clashes.append(
                f"{name.replace('_', ' ')} may be {shown(self.values[name])} ({rules_words[:80]!r}) or "
                f"{shown(found.value)} ({found.quote[:80]!r}); say which is meant"
            )
