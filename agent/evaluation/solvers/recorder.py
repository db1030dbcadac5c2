"""A recorded live run: every HTTP exchange of a case goes into a cassette, without secrets.

It is recorded at the SDK's HTTP layer, below retries and parsing, so that a replay repeats those.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from openai import DefaultHttpxClient

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError
from ....tools.input.files import shown_path
from ...loop.agent_options import AgentOptions
from ...model.client import EndpointError, ModelClient, OnText
from ...model.connection import BoundedHttp, own_client, secrets_of
from ...model.deadline import Deadline
from ...model.endpoint import EndpointClient
from ...model.messages import ModelRequest, Reply
from ...model.redaction import Redactor
from ..marks import Solution
from ..posed import PosedCase
from .live import Live
from .scrub import scrubbed
from .tape import (
    HEADER_NAME,
    Cassette,
    RecordedExchange,
    RecordedOptions,
    RecordingHeader,
    cassette_path,
    read_kept,
    write_kept,
)

# The HTTP library of the SDK: `httpx`, or `httpx2`.
HTTP: Any = sys.modules[
    next(base for base in DefaultHttpxClient.__mro__ if base.__name__ == "Client").__module__.partition(".")[0]
]
# Headers about the transfer of an answer, not its content.
_TRANSFER_HEADERS = ("content-encoding", "content-length", "transfer-encoding")


class _Taking:
    """An exchange under way; nothing changes it after its end."""

    def __init__(self, content: bytes) -> None:
        self.gave_up = False
        self._content, self._data, self._lock = content, bytearray(), threading.Lock()
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._failure: str | None = None
        self._is_over = False

    def answered(self, response: Any) -> None:
        with self._lock:
            if not self._is_over:
                self._status, self._headers = response.status_code, dict(response.headers.items())

    def add(self, chunk: bytes) -> None:
        with self._lock:
            if not self._is_over:
                self._data += chunk

    def end(self, failure: str | None = None) -> None:
        with self._lock:
            if not self._is_over:
                self._failure, self._is_over = failure, True

    def exchange(self) -> RecordedExchange:
        data = bytes(self._data)
        try:
            encoding, body = "utf-8", data.decode()
        except UnicodeDecodeError:
            encoding, body = "latin-1", data.decode("latin-1")
        return RecordedExchange.model_validate(
            {
                "request": json.loads(self._content) if self._content else None,
                "status": self._status,
                "headers": self._headers,
                "encoding": encoding,
                "body": body,
                "failure": self._failure,
                "gave_up": self.gave_up,
            }
        )


class _Tape:
    """The exchanges of one client, in order."""

    def __init__(self) -> None:
        self._taken: list[_Taking] = []

    def begin(self, content: bytes) -> _Taking:
        self.settle()
        self._taken.append(_Taking(content))
        return self._taken[-1]

    def settle(self) -> None:
        """End the last exchange: if it is not over, its answer came too late."""
        if self._taken:
            self._taken[-1].end("timeout")

    def give_up(self) -> None:
        if self._taken:
            self._taken[-1].gave_up = True

    def exchanges(self, redactor: Redactor) -> tuple[RecordedExchange, ...]:
        self.settle()
        return tuple(scrubbed(taking.exchange(), redactor) for taking in self._taken)


class _RecordedBody(HTTP.SyncByteStream):
    """The body of an answer, recorded as it is read."""

    def __init__(self, response: Any, taking: _Taking) -> None:
        self._response, self._taking = response, taking

    def __iter__(self) -> Iterator[bytes]:
        with _noting(self._taking):
            for chunk in self._response.iter_bytes():
                self._taking.add(chunk)
                yield chunk
        self._taking.end()

    def close(self) -> None:
        # Closed early by a reader that has all it wants.
        self._taking.end()
        self._response.close()


@contextmanager
def _noting(taking: _Taking) -> Iterator[None]:
    """Record how an exchange failed, if it does."""
    try:
        yield
    except HTTP.TimeoutException:
        taking.end("timeout")
        raise
    except (HTTP.TransportError, HTTP.StreamError):
        taking.end("broken")
        raise


class _RecordingHttp(BoundedHttp):
    """The HTTP client of a live run, with recording."""

    def __init__(self, authorization: str, tape: _Tape) -> None:
        super().__init__(authorization)
        self._tape = tape

    def send(self, request: Any, **options: Any) -> Any:
        """Send `request`; the response reads as without a recording."""
        taking = self._tape.begin(request.content)
        with _noting(taking):
            response = super().send(request, **options)
        taking.answered(response)
        headers = [
            (name, text) for name, text in response.headers.multi_items() if name.lower() not in _TRANSFER_HEADERS
        ]
        return type(response)(
            response.status_code, headers=headers, stream=_RecordedBody(response, taking), request=response.request
        )


class RecordingClient:
    """The model, and a tape of its exchanges."""

    def __init__(self, live: Live) -> None:
        settings = live.settings()
        self._tape = _Tape()
        self._sdk = own_client(settings, lambda authorization: _RecordingHttp(authorization, self._tape))
        self._client = EndpointClient(settings, self._sdk)
        self._redactor = Redactor([*settings.secrets(), *secrets_of(self._sdk)])

    @property
    def name(self) -> str:
        """The model's name."""
        return self._client.name

    def redact(self, text: str) -> str:
        """`text` without the secrets of the endpoint."""
        return self._client.redact(text)

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The answer of the model.

        Raises:
            EndpointError: no usable one came.
        """
        try:
            return self._client.complete(request, deadline, on_text)
        except EndpointError:
            self._tape.give_up()
            raise
        finally:
            self._tape.settle()

    def finish(self) -> tuple[RecordedExchange, ...]:
        """The exchanges, without secrets; no more are recorded."""
        self._sdk.close()
        return self._tape.exchanges(self._redactor)


class Recorder(Struct, frozen=True):
    """A live solver whose exchanges are kept in `folder`; make it with `into`, which prepares the folder."""

    live: Live
    folder: Path
    dataset_hash: str = ""
    is_deterministic: bool = False
    why_fixed: str = "a recording is of one way of asking; take the live model without recording it"

    @classmethod
    def into(cls, folder: Path, live: Live, dataset_hash: str = "") -> Recorder:
        """The recorder of `live`; continues a partial recording of the same run in the folder.

        Raises:
            InputError: the folder cannot be written, or holds a recording of something else.
        """
        settings = live.settings()
        header = RecordingHeader(
            dataset_hash=dataset_hash,
            model=live.model,
            stream=settings.stream,
            transport_attempts=settings.transport_attempts,
            max_answer_bytes=settings.max_answer_bytes,
            options=RecordedOptions.of(live.options),
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{shown_path(folder)}: cannot be made: {error.strerror or error}") from None
        path = folder / HEADER_NAME
        if not path.exists():
            write_kept(path, header)
        elif read_kept(RecordingHeader, path) != header:
            raise InputError(f"{shown_path(folder)}: holds a recording of another run; name a new folder")
        return cls(live, folder, dataset_hash)

    @property
    def name(self) -> str:
        """The live solver's name."""
        return self.live.name

    @property
    def digest(self) -> str:
        """The live solver's digest with the folder: a case in another folder is not recorded yet."""
        return f"{self.live.digest} {self.folder.absolute()}"

    @property
    def reads(self) -> bool:
        """Whether the model reads requests too, if a case asks for it."""
        return self.options.reader == "model"

    @property
    def options(self) -> AgentOptions:
        """The live solver's options."""
        return self.live.options

    @property
    def calibration(self) -> CustomCalibration | None:
        """The live solver's calibration."""
        return self.live.calibration

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """The model, with recording."""
        return RecordingClient(self.live)

    def finish(self, found: PosedCase, epoch: int, client: ModelClient | None, solution: Solution) -> None:
        """Write the cassette of the case.

        Raises:
            InputError: it cannot be written.
        """
        if not isinstance(client, RecordingClient):
            return
        case = found.case
        cassette = Cassette(
            dataset_hash=self.dataset_hash,
            case=case.id,
            case_digest=case.digest,
            epoch=epoch,
            is_cut_off=solution.status == "time_spent",
            exchanges=client.finish(),
        )
        write_kept(cassette_path(self.folder, case.id, epoch), cassette)
