"""The part of a pattern that can match in a text: branches with words that the text lacks are left out.

Only groups, their branches and words are parsed, which takes a small part of the time in which `re` compiles the
pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Characters that match themselves, and that `folded` makes the same wherever `re.IGNORECASE` takes them for the same.
_ITSELF = r"A-Za-z0-9 _,;:'\"/=%&@#~<>!\u3000-\u9fff"
_TIMES = r"(?:(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[?+]?)?"
_ESCAPE = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|N\{[^}]*\}|\d+|.)"
_CLASS = r"\[\^?\]?(?:\\.|[^\]\\])*\]"
_ASIDE = r"\(\?(?:P=\w+|#[^)]*|[a-zA-Z]+)\)"
_LONE = rf"[{_ITSELF}](?=[*+?{{])|[^()|\[\\{_ITSELF}]"
# Words with bars between them; a group of words, and its end; the start of another group; its end; anything else.
_PART = re.compile(
    rf"([{_ITSELF}|]+(?![*+?{{]))"
    rf"|\(\?:([{_ITSELF}|]+)(\){_TIMES})"
    r"|(\((?:\?(?:P<\w+>|[a-z\-]*:|[=!>]|<[=!]|\(\w+\)))?(?!\?))"
    rf"|(\){_TIMES})"
    rf"|((?:(?:{_CLASS}|{_ESCAPE}|{_ASIDE}|{_LONE}){_TIMES})+)",
    re.DOTALL,
)
_MAY_BE_NONE = re.compile(r"\)(?:[*?]|\{0?,|\{0\})")
_UNWANTED = ("(?!", "(?<!")
_EITHER = "(?("
_ALIKE = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
NEVER = "(?!)"


@lru_cache(maxsize=16)
def folded(text: str) -> str:
    """The text in small letters, with those that `re.IGNORECASE` takes for a letter of ASCII as that letter."""
    return text.lower() if text.isascii() else text.translate(_ALIKE).lower()


class Possible:
    """A pattern without the branches and groups whose words the text lacks.

    It matches in the text, and in parts of it, what the pattern does, and has the same groups: a capturing group that
    is left out stays as one that matches nowhere.
    """

    def __init__(self, pattern: str, text: str, others: frozenset[str] = frozenset()) -> None:
        """`pattern`: any without `re.VERBOSE`; `text`: as `folded` gives it; `others`: words that count as in it."""
        self._text = text
        self._others = others
        self._parts = iter(_PART.findall(pattern))
        self.missed: list[str] = []
        """The words that were looked for and are in neither, as far as the pattern depends on them."""
        branches, _, _ = self._branches()
        self.pattern = None if branches is None else "|".join(branches)
        """`None` where nothing can match."""

    def _branches(self) -> tuple[list[str] | None, str, str]:
        """Branches up to the end of the group (`None`: none can match), groups captured in them, the end as written."""
        branches = _Branches(self.missed)
        for words, listed, end_of_list, opening, end, other in self._parts:
            if words:
                for place, word in enumerate(words.split("|")):
                    if place:
                        branches.end()
                    if branches.row is not None:
                        branches.add(word if self._has(word) else None, len(self.missed) - 1)
            elif end:
                branches.end()
                return branches.kept if branches.is_possible else None, branches.captured, end
            elif branches.row is None:
                branches.captured_here += self._passed(opening)[1] if opening else ""
            elif other:
                branches.row += other
            else:
                missed_before = len(self.missed)
                part, captured = self._group(opening) if opening else (self._listed(listed, end_of_list), "")
                branches.captured_here += captured
                branches.add(part, missed_before)
        branches.end()
        return branches.kept if branches.is_possible else None, branches.captured, ""

    def _has(self, word: str) -> bool:
        word = word.lower()
        if word in self._text or word in self._others:
            return True
        self.missed.append(word)
        return False

    def _listed(self, words: str, end: str) -> str | None:
        present = [word for word in words.split("|") if self._has(word)]
        if present:
            return f"(?:{'|'.join(present)}{end}"
        return "" if _MAY_BE_NONE.match(end) else None

    def _group(self, opening: str) -> tuple[str | None, str]:
        """The reduced group that begins here (`None` if it cannot match), and the groups captured in it."""
        if opening.startswith(_EITHER):  # which of its branches is looked for does not follow from the words
            return self._passed(opening)
        branches, captured, end = self._branches()
        captured = _captured(opening) + captured
        if branches is not None:
            return opening + "|".join(branches) + end, captured
        if opening in _UNWANTED or _MAY_BE_NONE.match(end):
            return f"(?:{NEVER}{captured})?" if captured else "", captured
        return None, captured

    def _passed(self, opening: str) -> tuple[str, str]:
        """A group as it is written, and the groups captured in it."""
        written, captured, depth = opening, _captured(opening), 1
        for words, listed, end_of_list, inner, end, other in self._parts:
            written += inner or end or other or words or f"(?:{listed}{end_of_list}"
            if inner:
                captured += _captured(inner)
                depth += 1
            elif end:
                depth -= 1
                if not depth:
                    break
        return written, captured


class _Branches:
    """The branches of a group as they are read."""

    __slots__ = ("captured", "captured_here", "is_possible", "kept", "missed", "missed_before", "row")

    def __init__(self, missed: list[str]) -> None:
        self.kept: list[str] = []
        self.is_possible = False
        self.captured = ""
        self.missed = missed
        self._begin()

    def _begin(self) -> None:
        self.row: str | None = ""
        """The reduced branch so far; `None` where it cannot match."""
        self.captured_here = ""
        self.missed_before = len(self.missed)

    def add(self, part: str | None, missed_before: int) -> None:
        """Append the next part of the branch; with `None` the branch cannot match."""
        if part is None:
            del self.missed[self.missed_before : missed_before]  # what is missed in one part is enough
            self.row = None
        elif self.row is not None:
            self.row += part

    def end(self) -> None:
        """End the branch. A branch that cannot match keeps its capturing groups, and so their numbers."""
        if self.row is not None:
            self.kept.append(self.row)
            self.is_possible = True
        elif self.captured_here:
            self.kept.append(NEVER + self.captured_here)
        self.captured += self.captured_here
        self._begin()


def _captured(opening: str) -> str:
    return f"{opening})" if opening == "(" or opening.startswith("(?P<") else ""
