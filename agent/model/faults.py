"""The fault of one HTTP request: its kind, whether a retry is useful, and its message.

The message is the server's, redacted and cut; a refused key is reported without it, since servers echo the key.
"""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from typing import Any

from ...tools.input.strict_json import parse_answer
from ...tools.input.strict_values import JsonError, whole_characters
from .client import FaultKind
from .features import TOO_LONG, TOOLS_REFUSED
from .messages import Usage
from .redaction import MIN_SECRET_CHARACTERS, Redactor

MAX_WORDS = 300
# Enough of an error's body to find its message.
MAX_READ = 4_000
_NUMBERS = frozenset(map(str, range(400, 600)))
_RETRIED = {408, 409, 425, 429}
_BY_STATUS: dict[int, FaultKind] = {
    401: "key_refused",
    403: "key_refused",
    404: "unknown_model",
    408: "timeout",
    409: "server_error",
    413: "too_long",
    425: "server_error",
    429: "rate_limited",
    501: "not_supported",
}


class FaultError(Exception):
    """One failed request. `words` are safe to show; `usage` is of an answer that could not be used."""

    def __init__(
        self, kind: FaultKind, words: str, *, may_retry: bool, retry_after_s: float | None = None, said: str = ""
    ) -> None:
        super().__init__(words)
        self.kind: FaultKind = kind
        self.words = words
        self.may_retry = may_retry
        self.retry_after_s = retry_after_s
        # The server's full message (redacted), by which features are recognised.
        self.said = said
        self.usage: Usage | None = None


def unreadable(why: str) -> FaultError:
    """An unreadable answer with status 200; another try may succeed."""
    return FaultError("unreadable", why, may_retry=True)


def from_status(status: int, body: str, headers: Mapping[str, str], redactor: Redactor) -> FaultError:
    """The fault of a status of 3xx, 4xx or 5xx; `body` as far as it was read."""
    server_text = _whole(redactor.text(whole_characters(server_words(body))), redactor)[:MAX_READ]
    if status in (401, 403):
        return FaultError("key_refused", f"HTTP {status}: the server refuses the key", may_retry=False)
    kind = _kind(status, server_text)
    retried = status in _RETRIED or (status >= 500 and kind == "server_error")
    if status == 429 and "insufficient_quota" in body:
        retried = False  # an account without money stays so
    words = f"HTTP {status}" + (f": {_line(server_text)}" if server_text else "")
    return FaultError(kind, words, may_retry=retried, retry_after_s=retry_after_s(headers), said=server_text)


def from_error_object(error: Any, redactor: Redactor) -> FaultError:
    """The fault of an error object in an answer with status 200, as servers send above all in streams."""
    code = error.get("code") if isinstance(error, dict) else None
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code in _NUMBERS) else 500
    status = number if 400 <= number < 600 else 500
    fault = from_status(status, json.dumps({"error": error}), {}, redactor)
    fault.words = f"an error in an answer with status 200: {_line(fault.said) or 'without words'}"
    return fault


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait (RFC 9110 §10.2.3: seconds or a date), never below zero."""
    value = headers.get("retry-after", "").strip()[:64]
    try:
        return max(0.0, float(value)) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def server_words(body: str) -> str:
    """The message in an error's body: that of its JSON object, else the text."""
    try:
        content: Any = parse_answer(body)
    except JsonError:
        return " ".join(body.split())
    while isinstance(content, dict):
        inner = next((content[key] for key in ("error", "message", "detail", "msg") if content.get(key)), None)
        if inner is None:
            break
        content = inner
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _kind(status: int, words: str) -> FaultKind:
    if TOOLS_REFUSED.search(words):
        return "not_supported"
    if status in (400, 413, 422) and TOO_LONG.search(words):
        return "too_long"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server_error" if status >= 500 else "bad_request"


def _whole(words: str, redactor: Redactor) -> str:
    """`words`, which may be cut off, without the beginning of a secret at its end."""
    begun = redactor.held_back(words)
    return words[: len(words) - begun] if begun >= MIN_SECRET_CHARACTERS else words


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WORDS else f"{line[:MAX_WORDS]}…"
