"""Flags of a command as an engine's own parser takes them, by the concepts of the engine's vocabulary.

Names are compared as engines do: `-` equals `_`, and `--a.b 1`, `--a '{"b": 1}'` and `a: {b: 1}` in a file of options
mean the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..engines.release import Release
from ..engines.vocabulary import HOST_CACHE, LONGEST_NAME, VALUELESS, Vocabulary, is_open
from ..errors import InputError
from ..input.bounds import USABLE_SHARE
from ..input.shapes import is_list, is_object
from .options import object_in

_MOST_WORDS = 2_000
_MOST_DEPTH = 4
_POSITIONAL = "the model"
# An unknown flag takes no value if its name reads like a switch.
_SWITCH_LIKE = re.compile(r"(?:enable|disable|no|use|trust|skip|allow)-")
_COUNT = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?([kKmM]?)")
_SCALES = {"": 1, "k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}
# Values that leave a length to the model and the cache.
LEFT_OPEN = (None, "auto", "-1")
_FALSE = frozenset({"false", "0", "no", "off", "none", "null", ""})


class Flags(Struct, frozen=True):
    """The flags of a command: `values` by concept as written, each with its flag in `written`.

    `unknown` are flags or values without a known meaning; `unplanned` is what the estimate does not cover; `known` are
    the names of all other flags, each as it stands in the command.
    """

    values: Mapping[str, str]
    written: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    unplanned: tuple[str, ...] = ()
    known: Mapping[str, str] = {}

    def lacking(self, vocabulary: Vocabulary, release: Release | None = None) -> dict[str, str]:
        """Flags that a release of the engine does not have, each with the releases that do; `None`: its version."""
        names = (name for name in self.known if vocabulary.lacks(name, release))
        return {self.known[name].partition(".")[0]: vocabulary.releases(name) for name in names}

    def text(self, concept: str) -> str | None:
        """The value as written; `None` if it is not stated, or a variable that the text does not set."""
        value = self.values.get(concept)
        return None if value is None or is_open(value) else value

    def count(self, concept: str) -> int | None:
        """A whole number; `32k` is 32,000 and `32K` 32,768, as vLLM reads them.

        Raises InputError: it is no whole number, or a variable is left for the caller to fill in.
        """
        value = self.values.get(concept)
        if value is None:
            return None
        if is_open(value):
            raise InputError(f"{self.written[concept]} is {value[:80]}, which the text does not set: put the number in")
        match = _COUNT.fullmatch(value)
        number = None if match is None else float(f"{match[1]}.{match[2] or 0}") * _SCALES[match[3]]
        if number is None or not number.is_integer():
            raise InputError(f"{self._shown(concept)}: a whole number is expected")
        return int(number)

    def degree(self, concept: str) -> int:
        """A count of parts, 1 if not stated. Raises InputError: as `count`; or it is below 1."""
        value = self.count(concept)
        if value is not None and value < 1:
            raise InputError(f"{self.written[concept]} is {value}: at least 1 is expected")
        return value or 1

    def share(self, concept: str) -> float | None:
        """A share between 0 and 1; `None` if not stated, or a variable.

        Raises InputError: it is no such number.
        """
        number = self._number(concept)
        if number is not None and not USABLE_SHARE.hold(number):
            raise InputError(f"{self._shown(concept)}: a share from {USABLE_SHARE.least:g} to 1 is expected")
        return number

    def figure(self, concept: str) -> float | None:
        """A number above 0; `None` if not stated, a variable, or 0, which turns its feature off.

        Raises InputError: it is no such number.
        """
        number = self._number(concept)
        if number is not None and not 0.0 <= number < 1e18:
            raise InputError(f"{self._shown(concept)}: a number is expected")
        return number or None

    def _number(self, concept: str) -> float | None:
        """The stated number, NaN if it is none; `None` if not stated, or a variable."""
        value = self.text(concept)
        try:
            return None if value is None else float(value)
        except ValueError:
            return math.nan

    def _shown(self, concept: str) -> str:
        value = self.values[concept]
        return f"{self.written[concept]} {'has no value' if value == VALUELESS else f'is {value[:80]!r}'}"

    def on(self, concept: str) -> bool:
        """Whether a switch is on."""
        value = self.values.get(concept)
        return value is not None and value.lower() not in _FALSE


def read_flags(words: Sequence[str], vocabulary: Vocabulary, options: Mapping[str, Any] | None = None) -> Flags:
    """The flags of a command by their concepts; `options` are those of a file that it names."""
    stated = list(_flags(words[:_MOST_WORDS], vocabulary))
    filed = list(_flattened("", options or {}, _MOST_DEPTH))
    values: dict[str, str] = {}
    written: dict[str, str] = {}
    unknown: dict[str, None] = {}
    unplanned: dict[str, None] = {}
    # The last statement counts.
    for name, value, shown in [*stated, *filed] if vocabulary.in_file else [*filed, *stated]:
        concept = vocabulary.concepts.get(name)
        if value.startswith("{") and shown != _POSITIONAL and not is_open(value):
            unknown[f"{shown} {value[:LONGEST_NAME]} (no JSON object)"] = None
        elif (why := vocabulary.refuses(name, value)) is not None:
            unknown[f"{shown} ({why})"] = None
        elif concept is not None:
            # A flag wins over a positional word.
            if shown != _POSITIONAL or concept not in values:
                values[concept], written[concept] = value, shown
        elif name in vocabulary.turned_on:
            if value.lower() not in _FALSE:
                unplanned[vocabulary.turned_on[name]] = None
        elif (what := vocabulary.turned_on.get(f"{name}={value.lower()}")) is not None:
            unplanned[what] = None
        elif not vocabulary.is_beside(name):
            unknown[f"{shown}{vocabulary.meant(name)}"] = None
    if "host_cache" in values:
        unplanned.pop(HOST_CACHE, None)
    other = {_POSITIONAL, *(words.partition(" ")[0] for words in unknown)}
    known = {name: shown for name, _, shown in stated if shown not in other}
    return Flags(values, written, tuple(unknown), tuple(unplanned), known)


class Spoken(Struct, frozen=True):
    """A flag: its full `name`, its value, its name as `shown` in the command, and all of its `words`."""

    name: str
    value: str
    shown: str
    words: tuple[str, ...]


def spoken(words: Sequence[str], vocabulary: Vocabulary) -> Iterator[Spoken]:
    """Each flag of a command in order; the first positional word is the model, others have no name."""
    place, positional = 0, False
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-") or len(word) < 2 or word[1].isdigit():
            is_model = not positional and bool(word) and not word.startswith(("[", "`"))
            positional |= is_model
            yield Spoken("model" if is_model else "", word, _POSITIONAL, (word,))
            continue
        shown, has_value, value = word.partition("=")
        name = vocabulary.whole(shown.lstrip("-").replace("_", "-").lower())
        turned_off = vocabulary.turned_off(name)
        if turned_off is not None:
            yield Spoken(turned_off, "false", shown, (shown,))
            continue
        is_switch = name in vocabulary.valueless or (not vocabulary.takes_value(name) and _SWITCH_LIKE.match(name))
        follows = words[place] if place < len(words) else "-"
        is_value = not follows.startswith("-") or follows[1:2].isdigit()
        if (not has_value and not is_switch and is_value) or (
            not has_value and is_switch and follows.lower() in ("true", "false")
        ):
            value = follows
            place += 1
        elif not has_value:
            yield Spoken(name, VALUELESS, shown, (shown,))
            continue
        yield Spoken(name, value, shown, (shown, value))


def _flags(words: Sequence[str], vocabulary: Vocabulary) -> Iterator[tuple[str, str, str]]:
    """Each flag with its value and as written; the members of an object as flags of their own."""
    for flag in filter(lambda flag: flag.name, spoken(words, vocabulary)):
        parsed = None if flag.shown == _POSITIONAL else object_in(flag.value)
        if parsed is None:
            yield flag.name, flag.value, flag.shown
            continue
        yield flag.name, "true", flag.shown
        # An object of all options stands for a file of them.
        before = "" if vocabulary.concepts.get(flag.name) == "options" else f"{flag.name}."
        inside = _flattened(before, parsed, _MOST_DEPTH)
        yield from ((inner, text, f"{flag.shown}.{key}") for inner, text, key in inside)


def _flattened(before: str, options: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str, str]]:
    """Options of a file or an object, nested names joined by points; each is shown by its own key."""
    for key, value in list(options.items())[:_MOST_WORDS]:
        name = before + str(key).replace("_", "-").lower()
        if is_object(value) and depth > 0:
            yield from _flattened(f"{name}.", value, depth - 1)
        elif is_list(value) and depth > 0 and any(map(is_object, value)):
            for member in filter(is_object, value[:_MOST_WORDS]):
                yield from _flattened(f"{name}.", member, depth - 1)
        elif is_list(value):
            yield name, ",".join(map(str, value[:_MOST_WORDS])), str(key)
        elif value is not None:
            yield name, str(value), str(key)


def most_tokens_taken(flags: Flags) -> int | None:
    """The most tokens of a request that a command states; `None` if it states none."""
    return None if flags.text("max_tokens") in LEFT_OPEN else flags.count("max_tokens")
