"""The dialects that are known, and whose an answer is."""

from __future__ import annotations

from typing import Any

from .dialect import Dialect
from .llama_cpp import LLAMA_CPP
from .ollama import OLLAMA
from .openai import OPENAI

DIALECTS = (OPENAI, LLAMA_CPP, OLLAMA)
_LONGEST_SIGNATURE = 100


def dialect_signed(fingerprint: Any) -> Dialect | None:
    """The dialect of a server whose answers are signed by `fingerprint`; `None` where that says nothing."""
    if not isinstance(fingerprint, str) or len(fingerprint) > _LONGEST_SIGNATURE:
        return None
    signed = (one for one in DIALECTS if one.signature is not None and one.signature.fullmatch(fingerprint))
    return next(signed, None)
