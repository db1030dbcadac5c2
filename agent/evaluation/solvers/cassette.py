"""Replays a recorded run without network or key: the same agent, the same answers, the same scores.

A run with a request that is not recorded, or without one that is, differs from the recorded run: that is an error with
the case and the place in its name, not a failed endpoint that the built-in proposer would make good.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
from msgspec import Struct
from openai import DefaultHttpxClient

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError
from ....tools.input.files import read_bounded, shown_path
from ...loop.agent_options import AgentOptions
from ...model.client import EndpointError, ModelClient, OnText
from ...model.deadline import Deadline
from ...model.endpoint import EndpointClient
from ...model.messages import ModelRequest, Reply
from ...model.settings import EndpointSettings
from ..marks import Solution
from ..posed import PosedCase
from .recorder import HTTP
from .tape import (
    HEADER_NAME,
    MAX_FILE_BYTES,
    Cassette,
    CassetteError,
    RecordedExchange,
    RecordingHeader,
    cassette_path,
    first_difference,
    normalised,
    place_of,
    read_kept,
)

# An invalid host: no request can leave.
_NOWHERE = "http://recording.invalid/v1"
# A retry-after so long that nobody waits: no further try followed this answer.
_NEVER_S = "1000000000"
_UNPLAYED = {"error": {"message": "unplayed"}}


class _Tape:
    """The exchanges of a cassette, each played once; `fault` names a request that is not on it."""

    def __init__(self, exchanges: tuple[RecordedExchange, ...]) -> None:
        self._remaining = [(normalised(exchange.request), exchange) for exchange in exchanges]
        self.played = 0
        self.fault: str | None = None

    @property
    def remaining(self) -> int:
        """The number of exchanges not yet asked for."""
        return len(self._remaining)

    def take(self, body: Any) -> RecordedExchange | None:
        """The first remaining exchange of that request."""
        request_body = normalised(body)
        differences = [first_difference(request, request_body) for request, _ in self._remaining]
        at = next((at for at, difference in enumerate(differences) if difference is None), None)
        if at is None:
            why = f"the next of {self.remaining} differs at {differences[0]}" if differences else "no more was recorded"
            self.fault = self.fault or f"request {self.played + 1} is not in the recording: {why}"
            return None
        self.played += 1
        return self._remaining.pop(at)[1]


class _RecordedBody(HTTP.SyncByteStream):
    """The recorded body of an answer, with its failure if it broke off."""

    def __init__(self, exchange: RecordedExchange, request: Any) -> None:
        self._exchange, self._request = exchange, request

    def __iter__(self) -> Iterator[bytes]:
        yield self._exchange.body.encode(self._exchange.encoding)
        if self._exchange.failure is not None:
            raise _failure(self._exchange, self._request)


def _failure(exchange: RecordedExchange, request: Any) -> Exception:
    kind = HTTP.ReadTimeout if exchange.failure == "timeout" else HTTP.ReadError
    return kind("as it was recorded", request=request)


class _Transport(HTTP.BaseTransport):
    """Answers from a tape in place of a network."""

    def __init__(self, tape: _Tape) -> None:
        self._tape = tape

    def handle_request(self, request: Any) -> Any:
        """The recorded answer."""
        exchange = self._tape.take(json.loads(request.read() or b"null"))
        if exchange is None:
            return HTTP.Response(400, json=_UNPLAYED)
        if exchange.status is None:
            raise _failure(exchange, request)
        headers = {**exchange.headers, **({"retry-after": _NEVER_S} if exchange.gave_up else {})}
        return HTTP.Response(exchange.status, headers=headers, stream=_RecordedBody(exchange, request))


class PlayedClient:
    """The recorded model."""

    def __init__(self, header: RecordingHeader, cassette: Cassette, place: str) -> None:
        self._tape, self._place = _Tape(cassette.exchanges), place
        http = DefaultHttpxClient(transport=_Transport(self._tape), follow_redirects=False, trust_env=False)
        settings = EndpointSettings(
            base_url=_NOWHERE,
            model=header.model,
            stream=header.stream,
            transport_attempts=header.transport_attempts,
            max_answer_bytes=max(10_000, header.max_answer_bytes),
        )
        sdk = openai.OpenAI(base_url=_NOWHERE, api_key="not-needed", max_retries=0, http_client=http)
        self._client = EndpointClient(settings, sdk, sleep=lambda seconds: None, seed=0)

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._client.name

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The recorded answer.

        Raises:
            EndpointError: the recorded request failed.
            CassetteError: the request was not recorded.
        """
        try:
            return self._client.complete(request, deadline, on_text)
        except EndpointError:
            if self._tape.fault is None:
                raise
        raise CassetteError(f"{self._place}: {self._tape.fault}")

    def finish(self) -> None:
        """Check the end of the run.

        Raises:
            CassetteError: not all of the recording was played.
        """
        if self._tape.remaining:
            raise CassetteError(
                f"{self._place}: {self._tape.remaining} of {self._tape.remaining + self._tape.played} recorded "
                "requests were not made; record the run again"
            )


class Played(Struct, frozen=True):
    """The recording in `folder`; make it with `of`, which reads its header. `digest` covers all its files."""

    folder: Path
    header: RecordingHeader
    digest: str = ""
    calibration: CustomCalibration | None = None
    is_deterministic: bool = True
    why_fixed: str = "a recording answers one way of asking; take a live model, a script or a persona"

    @classmethod
    def of(cls, folder: Path) -> Played:
        """The solver that plays `folder`.

        Raises:
            InputError: it holds no recording.
        """
        path = folder / HEADER_NAME
        if not path.is_file():
            raise InputError(f"{shown_path(folder)}: no recording: there is no {HEADER_NAME} in it")
        digest = hashlib.sha256()
        for file in sorted(folder.glob("*.json")):
            name = shown_path(file)
            digest.update(file.name.encode("utf-8", "replace") + b"\0" + read_bounded(file, MAX_FILE_BYTES, name))
        return cls(folder, read_kept(RecordingHeader, path), digest.hexdigest())

    @property
    def name(self) -> str:
        """`cassette`, and the recorded model."""
        return f"cassette:{self.header.model}"

    @property
    def reads(self) -> bool:
        """Whether the model reads requests too, if a case asks for it."""
        return self.options.reader == "model"

    @property
    def options(self) -> AgentOptions:
        """The options of the recorded run."""
        return self.header.options.agent_options()

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """The recorded model in this case.

        Raises:
            CassetteError: the case is not recorded, has changed, or was cut off by the clock.
            InputError: its cassette cannot be read.
        """
        place, path = place_of(found, epoch), cassette_path(self.folder, found.case.id, epoch)
        if not path.is_file():
            raise CassetteError(f"{place}: not recorded: there is no {shown_path(path)}")
        cassette = read_kept(Cassette, path)
        if (cassette.case, cassette.epoch) != (found.case.id, epoch):
            raise CassetteError(f"{place}: {shown_path(path)} is of case {cassette.case!r}, epoch {cassette.epoch}")
        if cassette.case_digest != found.case.digest:
            raise CassetteError(f"{place}: the case was changed since it was recorded; record it again")
        if cassette.is_cut_off:
            raise CassetteError(f"{place}: the recorded run was cut off by the clock; record it again with more time")
        return PlayedClient(self.header, cassette, place)

    def finish(self, found: PosedCase, epoch: int, client: ModelClient | None, solution: Solution) -> None:
        """Check that all of the recording was played.

        Raises:
            CassetteError: it was not.
        """
        if isinstance(client, PlayedClient):
            client.finish()
            return
        path = cassette_path(self.folder, found.case.id, epoch)
        if path.is_file() and read_kept(Cassette, path).exchanges:
            raise CassetteError(
                f"{place_of(found, epoch)}: no model is asked any more, but one was when it was recorded"
            )
