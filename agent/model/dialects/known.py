"""The known dialects, and the one of an answer."""

from __future__ import annotations

from typing import Any

from .dialect import Dialect
from .llama_cpp import LLAMA_CPP
from .ollama import OLLAMA
from .openai import OPENAI

DIALECTS = (OPENAI, LLAMA_CPP, OLLAMA)
_LONGEST_SIGNATURE = 100


def dialect_signed(fingerprint: Any) -> Dialect | None:
    """The dialect of a server that signs its answers with `fingerprint`; `None` if unknown."""
    if not isinstance(fingerprint, str) or len(fingerprint) > _LONGEST_SIGNATURE:
        return None
    signed = (kind for kind in DIALECTS if kind.signature is not None and kind.signature.fullmatch(fingerprint))
    return next(signed, None)
