"""The API as OpenAI, vLLM and SGLang read it: full schemas, references and bounds included."""

from __future__ import annotations

from .dialect import Dialect

OPENAI = Dialect("OpenAI")
