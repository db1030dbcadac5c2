"""Ollama: its own form of a tool (`api/types.go`), llama.cpp's grammar for answers, and a context that cuts prompts.

A tool's property silently loses all keywords without a field there, `$ref` first of all. Strictness is ignored, calls
arrive whole in a streamed answer, and a request cannot set the model's context.
"""

from __future__ import annotations

import re

from .dialect import Dialect
from .llama_cpp import GRAMMAR_KEYWORDS

OLLAMA = Dialect(
    "Ollama",
    signature=re.compile(r"fp_ollama"),
    tool_keywords=frozenset({"type", "description", "enum", "items", "properties", "required", "anyOf"}),
    answer_keywords=GRAMMAR_KEYWORDS,
    longer_context="start the server with a longer context: OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
)
