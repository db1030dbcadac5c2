"""What went wrong with one HTTP request: which kind, whether asking again is worth it, and in whose words.

The words are a server's, redacted and cut; a refused key is reported without any, for servers echo it.
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
# Enough of an error's body to find out what it says.
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
    """One failed request. `words` are safe to show; `usage` is what an answer that could not be used took."""

    def __init__(
        self, kind: FaultKind, words: str, *, may_retry: bool, retry_after_s: float | None = None, said: str = ""
    ) -> None:
        super().__init__(words)
        self.kind: FaultKind = kind
        self.words = words
        self.may_retry = may_retry
        self.retry_after_s = retry_after_s
        # What the server said in full (redacted): features are told apart by it.
        self.said = said
        self.usage: Usage | None = None


def unreadable(why: str) -> FaultError:
    """An answer with status 200 that is none; another try may give one."""
    return FaultError("unreadable", why, may_retry=True)


def from_status(status: int, body: str, headers: Mapping[str, str], redactor: Redactor) -> FaultError:
    """The fault that a status of 3xx, 4xx or 5xx is; `body` as far as it was read."""
    said = _whole(redactor.text(whole_characters(server_words(body))), redactor)[:MAX_READ]
    if status in (401, 403):
        return FaultError("key_refused", f"HTTP {status}: the server refuses the key", may_retry=False)
    kind = _kind(status, said)
    retried = status in _RETRIED or (status >= 500 and kind == "server_error")
    if status == 429 and "insufficient_quota" in body:
        retried = False  # an account without money stays so
    words = f"HTTP {status}" + (f": {_line(said)}" if said else "")
    return FaultError(kind, words, may_retry=retried, retry_after_s=retry_after_s(headers), said=said)


def from_error_object(error: Any, redactor: Redactor) -> FaultError:
    """The fault that an error in an answer with status 200 is: servers fail that way, above all in streams."""
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
    """What an error's body says: the message of the object that it is, else the text."""
    try:
        found: Any = parse_answer(body)
    except JsonError:
        return " ".join(body.split())
    while isinstance(found, dict):
        inner = next((found[key] for key in ("error", "message", "detail", "msg") if found.get(key)), None)
        if inner is None:
            break
        found = inner
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _kind(status: int, said: str) -> FaultKind:
    if TOOLS_REFUSED.search(said):
        return "not_supported"
    if status in (400, 413, 422) and TOO_LONG.search(said):
        return "too_long"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server_error" if status >= 500 else "bad_request"


def _whole(said: str, redactor: Redactor) -> str:
    """`said`, which may have been cut off, without the beginning of a secret at its end."""
    begun = redactor.held_back(said)
    return said[: len(said) - begun] if begun >= MIN_SECRET_CHARACTERS else said


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WORDS else f"{line[:MAX_WORDS]}…"
