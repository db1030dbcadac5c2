"""Keeps secrets out of all that can be seen: server texts, exceptions, replies, log lines.

A secret is found in every form that somebody may read: verbatim, in upper or lower case, in base64, and below any
number of escapes (`escapes.py`). So a text may be redacted before or after it is decoded. A server's own encryption is
not seen through, nor a secret split over two texts; one that our own code joins is found where the joined text leaves.
Placeholders for keys of local servers, and values too short for a secret, are left alone: they occur in honest text.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote_plus

from .escapes import Layer, hides_letters, layers

REDACTED = "[redacted]"
# Shorter values occur in ordinary words, and protect nothing.
MIN_SECRET_CHARACTERS = 6
# A longer beginning of a secret is so disguised that it is redacted unfinished.
MOST_HELD_BACK = 4096
_MOST_LOOKED_AT = 2 * MOST_HELD_BACK
_PLACEHOLDERS = frozenset(
    {"ollama", "not-needed", "no-key", "no-api-key", "sk-no-key-required", "no key is configured"}
)
_BEGUN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9A-Fa-f]{0,3})?)\Z")
# Loggers of HTTP libraries, which log whole URLs.
_HTTP_LOGGERS = ("openai", "httpx", "httpx2", "httpcore", "httpcore2")
# Our logger of tools that failed on a model's input.
_TOOLS_LOGGER = "shardwright.agent.toolset.toolset"
_HTTP_LOGGER_CHILDREN = ("connection", "http11", "http2", "proxy", "socks", "_base_client", "_response")


class Redactor:
    """Replaces every known secret in a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if _is_secret(secret) for form in _forms(secret)}
        self._forms = sorted(forms)
        self._longest = max(map(len, self._forms), default=0)

    def text(self, text: str) -> str:
        """`text` without secrets, however they are escaped in it."""
        pieces: list[str] = []
        at = 0
        for start, end in self.spans(text):
            pieces += (text[at:start], REDACTED)
            at = end
        return "".join((*pieces, text[at:])) if pieces else text

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, names included."""
        return redacted_value(value, self.text)

    def held_back(self, text: str) -> int:
        """How many characters at the end of `text` may be the beginning of a secret, or of an escape."""
        # Only the end is searched: a text full of begun escapes is not read anew for each of them.
        text = text[-_MOST_LOOKED_AT:]
        known = text
        while (
            len(text) - len(known) <= MOST_HELD_BACK
            and self._forms
            and (begun := next(filter(None, map(_unfinished, layers(known))), None)) is not None
        ):
            known = known[: begun[0]]
        start = len(known)
        for layer in layers(known) if self._forms else ():
            folded = layer.folded
            tail = max(0, len(folded) - self._longest + 1)
            at = next((at for at in range(tail, len(folded)) if self._is_beginning(folded[at:])), None)
            if at is not None:
                start = min(start, layer.source(at, len(folded))[0])
        return len(text) - start

    def _may_hold(self, text: str) -> bool:
        """Whether the escapes of `text` need undoing; nearly no text's do."""
        if not self._forms:
            return False
        bare = Layer(None, text).folded.replace("\\", "")
        return any(form.replace("\\", "") in bare for form in self._forms) or hides_letters(text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The parts of `text` that hold secrets, in order, without overlaps."""
        if not self._may_hold(text):
            return []
        matches = (
            layer.source(at, at + len(form))
            for layer in layers(text)
            for folded in (layer.folded,)
            for form in self._forms
            for at in _places(form, folded)
        )
        spans: list[tuple[int, int]] = []
        for first, end in sorted(matches):
            start = first - _begun_escape(text, first)
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        return spans

    def _is_beginning(self, text: str) -> bool:
        # In sorted order, texts that begin with `text` follow right after it.
        at = bisect_left(self._forms, text)
        return at < len(self._forms) and self._forms[at].startswith(text)


def redacted_value(value: Any, redact: Callable[[str], str], own: Callable[[], frozenset[str]] = frozenset[str]) -> Any:
    """A JSON value with its texts and names redacted; itself if nothing changes.

    Words in `own()` stay: a key may be a word of our format.
    """
    text = json.dumps(value, ensure_ascii=False)
    if redact(text) == text:
        return value
    known = own()
    return _through(value, lambda word: word if word in known else redact(word))


def words_of(*values: Any) -> frozenset[str]:
    """All texts in JSON values, names included."""
    texts: set[str] = set()
    for value in values:
        _through(value, lambda word: texts.add(word) or word)
    return frozenset(texts)


def _through(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [_through(member, redact) for member in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {redact(str(key)): _through(member, redact) for key, member in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value


class RedactedStream:
    """A text in pieces, redacted even if a secret is cut between two pieces."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._pending = ""

    def feed(self, piece: str) -> str:
        """The part that may be shown once `piece` has come."""
        text = self._pending + piece
        at = len(text) - self._redactor.held_back(text)
        # A secret may be the beginning of a longer one, or overlap the next.
        at = min((start for start, end in self._redactor.spans(text) if start < at < end), default=at)
        is_too_much = len(text) - at > MOST_HELD_BACK
        self._pending = "" if is_too_much else text[at:]
        return self._redactor.text(text[:at]) + REDACTED * is_too_much

    def end(self) -> str:
        """The text held back so far, redacted."""
        pending, self._pending = self._pending, ""
        return self._redactor.text(pending)


def _is_secret(text: str) -> bool:
    return len(text) >= MIN_SECRET_CHARACTERS and text.lower() not in _PLACEHOLDERS


def _forms(secret: str) -> set[str]:
    """The searched forms: the secret and its base64, in lower case, verbatim and with escapes undone."""
    data = secret.encode("utf-8", errors="replace")
    written = {secret, quote_plus(secret)}
    for before in range(3):
        # Base64 differs at each of three alignments; characters that neighbours would change are left out.
        core = base64.b64encode(b"\0" * before + data).decode()[(0, 2, 3)[before] :]
        core = core.rstrip("=")[: -1 if (before + len(data)) % 3 else None]
        written |= {core, core.replace("+", "-").replace("/", "_")}
    forms = {layer.folded for form in written for layer in layers(form)}
    return {form for form in forms if len(form) >= MIN_SECRET_CHARACTERS}


def _unfinished(layer: Layer) -> tuple[int, int] | None:
    """The part of the original text in which an escape has begun at the end; `None` if none has."""
    at = layer.unfinished
    return None if at is None else layer.source(at, len(layer.text))


def _begun_escape(text: str, at: int) -> int:
    """How many characters before `at` belong to an escape that runs into it: cutting it would break the JSON."""
    match = _BEGUN_ESCAPE.search(text, max(0, at - 64), at)
    return 0 if match is None else len(match[1])


def _places(form: str, text: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


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
    """Keep the secrets of `redactor` out of the logs of its requests and answers, for as long as it lives."""
    _LOG_FILTER.redactors.add(redactor)
    logging.getLogger(_TOOLS_LOGGER).addFilter(_LOG_FILTER)
    for name in _HTTP_LOGGERS:
        for logger in (name, *(f"{name}.{child}" for child in _HTTP_LOGGER_CHILDREN)):
            logging.getLogger(logger).addFilter(_LOG_FILTER)
