"""What a chat keeps to itself: secrets of the client and of the environment never reach its session or the screen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from ..model.client import ModelClient
from ..model.redaction import Redactor

_NAMES = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_LEAST_CHARACTERS = 8


def keeper(client: ModelClient | None) -> Callable[[str], str]:
    """A text without the secrets that are known: those of `client`, and those that the environment holds."""
    own: Callable[[str], str] = getattr(client, "redact", str)
    redactor = Redactor(_of_environment())

    def kept(text: str) -> str:
        return redactor.text(own(text))

    return kept


def _of_environment() -> list[str]:
    found = [value for name, value in os.environ.items() if _NAMES.search(name) and len(value) >= _LEAST_CHARACTERS]
    password = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).password if _is_url() else None
    return [*found, *([password] if password else [])]


def _is_url() -> bool:
    try:
        return bool(urlsplit(os.environ.get("OPENAI_BASE_URL", "")).netloc)
    except ValueError:
        return False
