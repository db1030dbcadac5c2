"""Keeps secrets of the client and of the environment out of a chat's session and off the screen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from ..model.client import ModelClient
from ..model.redaction import RedactedStream, Redactor

_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_LEAST_CHARACTERS = 8


class Keeper:
    """Keeps what is known to be secret out of texts: secrets of `client`, and those that the environment holds."""

    def __init__(self, client: ModelClient | None) -> None:
        self._redact_client: Callable[[str], str] = getattr(client, "redact", str)
        self._redactor = Redactor(_of_environment())

    def text(self, text: str) -> str:
        """`text` without secrets."""
        return self._redactor.text(self._redact_client(text))

    def stream(self) -> RedactedStream:
        """A redactor for text that comes in pieces, between which a secret of the environment may be split.

        A client keeps its own secrets out of what it streams.
        """
        return RedactedStream(self._redactor)


def _of_environment() -> list[str]:
    values = [value for name, value in os.environ.items() if _NAMES.search(name) and len(value) >= _LEAST_CHARACTERS]
    password = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).password if _is_url() else None
    return [*values, *([password] if password else [])]


def _is_url() -> bool:
    try:
        return bool(urlsplit(os.environ.get("OPENAI_BASE_URL", "")).netloc)
    except ValueError:
        return False
