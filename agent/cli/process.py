"""The process around a command: its standard streams, and what an interrupt does from its first moment to its last.

Everything that is printed, by us or by a library, goes through the two streams that `begin` puts in place. They write
UTF-8 whatever the locale is. A reader that went away is no error. What else cannot be written to standard output is an
`InputError`, once; what cannot be written to standard error is dropped: there is nowhere left to say so.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from ...tools.errors import InputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EXIT_INTERRUPTED = 130
_OUTPUT, _ERRORS = 1, 2
# What a scheduler sends before it kills, or a closed terminal: after such an interrupt nothing goes on.
_ENDS = (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))
_AGAIN_AFTER_S = 0.01
_STARTS_WORKERS = os.path.join("multiprocessing", "process.py")  # noqa: PTH118 - the end of a file name
_failures: list[str] = []
# Most objects of a command live as long as it does: looking for garbage among them is time lost.
_OBJECTS_BETWEEN_COLLECTIONS = 200_000


def begin() -> None:
    """Take the standard streams and the interrupts of this process, and spare it what only long-lived ones need."""
    interrupts.listen()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # Else pydantic reads the metadata of every installed package, looking for plugins that no command uses.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    # Else NumPy starts a thread for each core to multiply large matrices, which no command has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    is_open = [_is_stream_open(number) for number in (0, _OUTPUT, _ERRORS)]
    if not is_open[0]:
        sys.stdin = None
    sys.stdout = _text(_Stream(_OUTPUT, is_open=is_open[_OUTPUT]), errors="replace", by_line=False)
    sys.stderr = _text(_Stream(_ERRORS, is_open=is_open[_ERRORS]), errors="backslashreplace", by_line=True)


def end() -> None:
    """The exit status is known: an interrupt no longer changes it, and does not disturb the interpreter's end."""
    interrupts.taken()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    # The system takes all memory back: looking through it for what could be freed is time lost.
    gc.freeze()


def unwritten() -> str | None:
    """Why standard output could not be written, if so: who got that error may have gone on, as a chat does."""
    return _failures[0] if _failures else None


def _is_stream_open(number: int) -> bool:
    """Whether a standard stream is open. Where it is not, no file that is opened later may take its number."""
    try:
        os.fstat(number)
        return True
    except OSError:
        handle = os.open(os.devnull, os.O_RDWR)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
        os.set_inheritable(number, True)
        return False


def _text(stream: _Stream, *, errors: str, by_line: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(stream), "utf-8", errors, newline="\n", line_buffering=by_line)


class _Stream(io.FileIO):
    """Standard output or standard error, down to the system's own write."""

    def __init__(self, number: int, *, is_open: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._is_open = is_open
        self._is_given_up = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write `data`, or drop it where an earlier write failed; how many bytes are done with.

        Raises:
            InputError: standard output cannot be written.
        """
        if self._is_given_up:
            return memoryview(data).nbytes
        try:
            return self._written(data)
        except OSError as error:
            # Else what is left in the buffers would be written, and fail, once more when the interpreter ends.
            self._is_given_up = True
            if self.fileno() == _OUTPUT and not isinstance(error, BrokenPipeError):
                _failures.append(f"standard output: {error.strerror or error}")
                raise InputError(_failures[0]) from None
            return memoryview(data).nbytes

    def _written(self, data: ReadableBuffer) -> int:
        if not self._is_open:
            raise OSError("is closed")
        while (done := super().write(data)) is None:  # a pipe that does not wait is full
            from select import select

            select([], [self], [])
        return done


class Interrupts:
    """Interrupts of this process: each is a `KeyboardInterrupt` that comes again until it is handled.

    Some code makes another error of it or drops it: a finalizer, a serializer that a library calls and whose errors it
    replaces. One that is neither being handled nor `taken` a moment later was lost there. Some must not be broken off:
    an import, the start of a process. There it waits.
    """

    def __init__(self) -> None:
        self.is_pending = False
        self.is_last = False
        self._raised: KeyboardInterrupt | None = None

    def taken(self) -> None:
        """The one that came is handled, and the command goes on or ends in its own way."""
        self.is_pending = False
        if self._come_again():
            signal.setitimer(signal.ITIMER_REAL, 0)

    def listen(self) -> None:
        """Handle interrupts from here on, unless who started this process (nohup, a script) has it ignore them."""
        taken = [number for number in _ENDS if signal.getsignal(number) is signal.SIG_DFL]
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            taken.append(signal.SIGINT)
        for number in taken:
            signal.signal(number, self._on_signal)
        if taken and self._come_again():
            signal.signal(signal.SIGALRM, self._on_signal)
            sys.unraisablehook = self.on_unraisable

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT or number in _ENDS:
            self.is_pending = True
            self.is_last = self.is_last or number in _ENDS
        elif not self.is_pending:
            return
        if self._come_again():
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_AFTER_S)
            if _is_undivided(frame) or self._is_handled():
                return
        self._raised = KeyboardInterrupt()
        raise self._raised

    def _is_handled(self) -> bool:
        """Whether the one that was raised is on its way, through `finally` and `except`."""
        around = [sys.exc_info()[1]]
        while around:
            error = around.pop()
            if error is not None and error is self._raised:
                return True
            if error is not None:
                around += [error.__cause__, error.__context__]
        return False

    def on_unraisable(self, raised: sys.UnraisableHookArgs) -> None:
        """Show what a finalizer raised, unless it is an interrupt: that comes again, behind the finalizer."""
        if not issubclass(raised.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(raised)

    @staticmethod
    def _come_again() -> bool:
        """Whether this system can send a signal later."""
        return hasattr(signal, "setitimer")


def _is_undivided(frame: FrameType | None) -> bool:
    """Whether this is within an import, the start of a worker process or the hook for what finalizers raise.

    The first two are done whole or leave a half; what the last one raises is shown with a traceback.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code is Interrupts.on_unraisable.__code__:
            return True
        if code.co_name == "start" and code.co_filename.endswith(_STARTS_WORKERS):
            return True
        frame = frame.f_back
    return False


interrupts = Interrupts()
