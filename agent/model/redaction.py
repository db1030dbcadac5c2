"""Keeps secrets out of everything that can be seen: text of servers, exceptions, replies, log lines.

A secret is found as it is, in URL-encoded, JSON-escaped and base64 form, in upper or lower case. Placeholders that
local servers are given for a key, and values too short to be a secret, are left alone: they occur in honest text.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import weakref
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
# Shorter values occur in ordinary words, and protect nothing.
MIN_SECRET_CHARACTERS = 6
_PLACEHOLDERS = frozenset(
    {"ollama", "not-needed", "no-key", "no-api-key", "sk-no-key-required", "no key is configured"}
)
# Loggers of the libraries that speak HTTP for us; they write whole URLs.
_HTTP_LOGGERS = ("openai", "httpx", "httpx2", "httpcore", "httpcore2")
_HTTP_LOGGER_CHILDREN = ("connection", "http11", "http2", "proxy", "socks", "_base_client", "_response")


class Redactor:
    """Replaces every known secret in a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if _is_secret(secret) for form in _forms(secret)}
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None
        self._lower = sorted({form.lower() for form in forms})
        self._longest = len(ordered[0]) if ordered else 0

    def text(self, text: str) -> str:
        """`text` without secrets."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(one) for key, one in value.items()}
        return value

    def held_back(self, text: str) -> int:
        """How many characters at the end of `text` may be the beginning of a secret."""
        tail = text[-(self._longest - 1) :].lower() if self._longest > 1 else ""
        return next((len(tail) - at for at in range(len(tail)) if self._is_beginning(tail[at:])), 0)

    def _is_beginning(self, text: str) -> bool:
        # Of sorted texts, those that begin with `text` come first after it.
        at = bisect_left(self._lower, text)
        return at < len(self._lower) and self._lower[at].startswith(text)


class RedactedStream:
    """A text that comes piece by piece, without secrets even where one is cut between two pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept = ""

    def feed(self, piece: str) -> str:
        """What may be shown after `piece` has come."""
        text = self._redactor.text(self._kept + piece)
        kept = self._redactor.held_back(text)
        self._kept = text[len(text) - kept :]
        return text[: len(text) - kept]

    def end(self) -> str:
        """What was held back."""
        rest, self._kept = self._kept, ""
        return rest


def _is_secret(text: str) -> bool:
    return len(text) >= MIN_SECRET_CHARACTERS and text.lower() not in _PLACEHOLDERS


def _forms(secret: str) -> set[str]:
    data = secret.encode("utf-8", errors="replace")
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    forms |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    for before in range(3):
        # Base64 looks different at each of three alignments; the characters that neighbours would change are left out.
        core = base64.b64encode(b"\0" * before + data).decode()[(0, 2, 3)[before] :]
        core = core.rstrip("=")[: -1 if (before + len(data)) % 3 else None]
        forms |= {core, core.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= MIN_SECRET_CHARACTERS}


class _LogFilter(logging.Filter):
    """Rewrites records before any handler sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the message and the traceback of `record`; every record passes."""
        message = record.getMessage()
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else record.exc_text
        for redactor in list(self.redactors):
            message = redactor.text(message)
            trace = redactor.text(trace) if trace else trace
        record.msg, record.args, record.exc_info, record.exc_text = message, (), None, trace
        return True


_LOG_FILTER = _LogFilter()


def guard_logs(redactor: Redactor) -> None:
    """Keep the secrets of `redactor` out of what the HTTP libraries log, for as long as it lives."""
    _LOG_FILTER.redactors.add(redactor)
    for name in _HTTP_LOGGERS:
        for logger in (name, *(f"{name}.{child}" for child in _HTTP_LOGGER_CHILDREN)):
            logging.getLogger(logger).addFilter(_LOG_FILTER)
