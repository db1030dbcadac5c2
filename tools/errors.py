"""The errors that the tools raise on purpose. Each message is one line: what, where, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# A word that is quoted is no longer than this; paths nearly never are.
MOST_WORD_CHARACTERS = 400
_LONG_WORD = re.compile(rf"\S{{{MOST_WORD_CHARACTERS + 1},}}")
_KEPT_CHARACTERS = 100


def short_words(text: str) -> str:
    """`text` with the middle of its longest words left out."""
    return _LONG_WORD.sub(_shortened, text)


def _shortened(word: re.Match[str]) -> str:
    left_out = len(word[0]) - 2 * _KEPT_CHARACTERS
    return f"{word[0][:_KEPT_CHARACTERS]}…({left_out:,} characters left out)…{word[0][-_KEPT_CHARACTERS:]}"


class ShardwrightError(Exception):
    """Base of every error that a person can mend; the command prints its message and exits with `exit_status`."""

    exit_status: int = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, for another process: made anew of its message alone it would miss what its class is made of."""
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[ShardwrightError], told: tuple[Any, ...], fields: dict[str, Any]) -> ShardwrightError:
    error = kind.__new__(kind, *told)
    error.__dict__.update(fields)
    return error


class InputError(ShardwrightError, ValueError):
    """The call or the input is wrong: an unreadable file, an unknown name, an impossible figure.

    `path` is the JSON Pointer of what is wrong in a plan document, where whoever raised it knows.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(short_words(message))
        self.path = path


def expect(value: object, kinds: type | tuple[type, ...], name: str, wanted: str) -> None:
    """Check that an argument, which errors call `name`, is of `kinds`; `wanted` says these in words.

    Raises InputError: it is not.
    """
    if not isinstance(value, kinds):
        raise InputError(f"{name}: {wanted}, not {type(value).__name__}")


class UnknownNameError(InputError):
    """A model or an accelerator that the catalogue does not have; carries the nearest known names."""

    def __init__(self, kind: str, name: str, nearest: tuple[str, ...]) -> None:
        name = name if len(name) <= _KEPT_CHARACTERS else f"{name[:_KEPT_CHARACTERS]}…"
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        super().__init__(f"unknown {kind} {name!r}{hint}")
        self.kind = kind
        self.name = name
        self.nearest = nearest


class UnknownArgumentError(InputError, TypeError):
    """A keyword argument that a function does not take; the message names the nearest, or all that there are."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        from difflib import get_close_matches

        names = dict.fromkeys(known)
        near = get_close_matches(name[:_KEPT_CHARACTERS], names, n=1)
        # Of two names of one argument the shorter is shown.
        shown = [word for word in names if not (word.endswith("_max") and word.removesuffix("_max") in names)]
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(shown)}"
        super().__init__(f"no argument {name[:_KEPT_CHARACTERS]!r}; {hint}")


class UnreadableFieldError(InputError):
    """One `field` of a config cannot be read; the message says why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class MissingFieldError(UnreadableFieldError):
    """A field that the arithmetic needs and the config does not have."""

    def __init__(self, field: str, where: str, why: str = "") -> None:
        super().__init__(field, f"{where}: field {field!r} is missing{': ' + why if why else ''}")


class ServiceError(ShardwrightError):
    """A service that was asked for failed: a cluster that cannot be reached, a worker that cannot work."""

    exit_status = 3
