"""Why a request gets no answer: one line, its kind, and the status of HTTP that says the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from starlette.responses import Response

from ...tools.errors import InputError, ServiceError, ShardwrightError
from ..model.client import EndpointError
from ..operations.wording import HTTP, told_to_client
from ..report.safe import short_line

Kind = Literal["input", "too_large", "busy", "timeout", "forbidden", "unauthorized", "service", "not_found"]
# Paths whose errors have the shape that clients of OpenAI read.
OPENAI_PATHS = "/v1/"
_OPENAI_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
                 404: "not_found_error", 413: "invalid_request_error", 429: "rate_limit_error"}  # fmt: skip


class RefusalError(Exception):
    """A request gets no answer; `retry_after_s` says when it may get one. `code` is OpenAI's word for it, if any."""

    def __init__(
        self, status: int, kind: Kind, message: str, *, retry_after_s: int | None = None, code: str | None = None
    ) -> None:
        self.status, self.kind, self.message = status, kind, short_line(message)
        super().__init__(self.message)
        self.retry_after_s, self.code = retry_after_s, code

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer that says so."""
        headers = {"Cache-Control": "no-store"}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(self.retry_after_s)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return headers

    def body(self, path: str) -> bytes:
        """The object that says so to who asked for `path`."""
        if path.startswith(OPENAI_PATHS):
            kind = _OPENAI_TYPES.get(self.status, "server_error")
            error = {"message": self.message, "type": kind, "param": None, "code": self.code}
        else:
            error = {"message": self.message, "kind": self.kind}
        return json.dumps({"error": error}, ensure_ascii=False).encode()

    def response(self, path: str, more: Mapping[str, str] | None = None) -> Response:
        """The answer that says so."""
        headers = {**self.headers, **(more or {})}
        return Response(self.body(path), self.status, headers, media_type="application/json")


def refusal_of(error: ShardwrightError) -> RefusalError:
    """A refusal of the library, as an answer."""
    is_of_service = isinstance(error, (ServiceError, EndpointError)) or not isinstance(error, InputError)
    message = told_to_client(str(error), HTTP)
    return RefusalError(502, "service", message) if is_of_service else RefusalError(400, "input", message)


def no_route(status: int) -> RefusalError:
    """There is nothing there (404), or not for this method (405)."""
    if status == 405:
        return RefusalError(405, "input", "this path is not asked with that method; see /api/openapi.json")
    return RefusalError(404, "not_found", "there is nothing at this path; see /api/openapi.json")


def broken() -> RefusalError:
    """A fault of ours."""
    return RefusalError(500, "service", "a fault of shardwright itself; the log of the server says where")
