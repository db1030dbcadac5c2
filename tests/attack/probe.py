"""Makes the calls of an attack in turn and records their faults.

A call of the package may return, or refuse with a `ShardwrightError` of one printable line. Anything else is a
traceback; whatever a check itself calls wrong is a contradiction. Both are recorded, and the next call is made.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct

from shardwright.tools.errors import ShardwrightError

Sort = Literal["traceback", "slow", "large", "contradiction"]
SORTS: tuple[Sort, ...] = ("traceback", "slow", "large", "contradiction")
# Longer messages are no line.
MOST_MESSAGE_LETTERS = 4000
_ROOT = Path(__file__).parents[2]
_T = TypeVar("_T")


class Case(Struct, frozen=True):
    """An input of an attack: its `text`, how it was made (`about`), and out of what (`seed`)."""

    kind: str
    text: str
    about: str = ""
    seed: str = ""


class Fault(Struct, frozen=True):
    """A fault of a call; faults of the same kind have the same `cause`, `detail` is specific."""

    sort: Sort
    call: str
    cause: str
    detail: str = ""


class Refused:
    """The answer of a call that refused its input properly."""

    def __init__(self, error: ShardwrightError) -> None:
        self.message = str(error)


class FailedError(Exception):
    """A call ended in a fault, which the probe recorded; checks that need its answer are skipped."""


class Probe:
    """Makes calls and records their faults; `announce` gets the name of each call before it is made."""

    def __init__(self, announce: Callable[[str], None] | None = None) -> None:
        self._announce = announce or (lambda _: None)
        self.faults: list[Fault] = []
        self.notes: list[str] = []

    def call(self, name: str, function: Callable[[], _T]) -> _T | Refused:
        """The result of `function`, or that it refused.

        Raises:
            FailedError: it raised what it should not.
        """
        self._announce(name)
        try:
            return function()
        except ShardwrightError as error:
            self._judge_line(name, error)
            return Refused(error)
        except MemoryError as error:
            self.faults.append(Fault("large", name, f"MemoryError at {innermost_frame(error)}"))
        except FailedError:
            raise
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - what escapes is what is looked for, panics of extensions too
            cause = f"{type(error).__name__} at {innermost_frame(error)}"
            self.faults.append(Fault("traceback", name, cause, repr(str(error))[:300]))
        raise FailedError(name)

    def must(self, name: str, function: Callable[[], _T], why: str) -> _T:
        """As `call`, but a refusal is a contradiction.

        Raises:
            FailedError: it refused, or raised what it should not.
        """
        answer = self.call(name, function)
        if isinstance(answer, Refused):
            self.wrong(name, f"refused, though {why}", answer.message)
            raise FailedError(name)
        return answer

    def wrong(self, name: str, cause: str, detail: object = "") -> None:
        """Record a contradiction."""
        self.fault("contradiction", name, cause, ascii(str(detail)))

    def fault(self, sort: Sort, name: str, cause: str, detail: str = "") -> None:
        """Record a fault that no call of the probe raised."""
        self.faults.append(Fault(sort, name, cause, detail[:400]))

    def _judge_line(self, name: str, error: ShardwrightError) -> None:
        message = str(error)
        where = innermost_frame(error)
        if len(message.splitlines()) > 1:
            self.wrong(name, f"an error of several lines from {where}", message)
        if len(message) > MOST_MESSAGE_LETTERS:
            self.wrong(name, f"an error of more than {MOST_MESSAGE_LETTERS} letters from {where}", message)
        if any(0xD800 <= ord(letter) <= 0xDFFF for letter in message):
            self.wrong(name, f"an error that is not valid Unicode from {where}", message)


def innermost_frame(error: BaseException) -> str:
    """The innermost place of the project's code in the traceback of `error`: `tools/validate.py:12 name`."""
    place = "outside of the project"
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(_ROOT) and not path.is_relative_to(_ROOT / "tests") and ".venv" not in path.parts:
            place = f"{path.relative_to(_ROOT).as_posix()}:{frame.lineno} {frame.name}"
    return place


def attempt(check: Callable[[Case, Probe], None], case: Case, announce: Callable[[str], None] | None = None) -> Probe:
    """The probe after `check` of `case`, with its faults and notes."""
    probe = Probe(announce)
    with contextlib.suppress(FailedError):
        check(case, probe)
    return probe
