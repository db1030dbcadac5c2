"""Questions that every operation answers in no time, for whoever asks them: the library, HTTP, MCP."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

SMALL = {"model": "Llama-3.1-8B", "hardware": "1x2:h100-sxm", "input_tokens": 512, "output_tokens": 64}
REQUEST = "Llama-3.1-8B on 2 H100, 512 in, 64 out"
_PROMPTS = count(4096)
COMMAND = "vllm serve meta-llama/Llama-3.1-8B -tp 2"


def long_question() -> dict[str, Any]:
    """A question that is searched for ten seconds and more; another each time, as the same is answered sooner."""
    return {
        "model": "DeepSeek-V3", "hardware": "512x8:h100-sxm", "precision": "any", "input_tokens": next(_PROMPTS),
        "output_tokens": 512, "concurrency": 4096, "sensitivity": True, "time_limit_s": 100,
    }  # fmt: skip


def questions(plan: dict[str, Any] | str) -> dict[str, dict[str, Any]]:
    """A question by operation; `plan` is a document, or what stands for one."""
    return {
        "plan": {"request": REQUEST},
        "search": {**SMALL, "top": 3},
        "validate": {"plan": plan},
        "fix": {"proposal": "TP2", "request": REQUEST},
        "estimate": {"plan": plan if isinstance(plan, str) else json.dumps(plan)},
        "compare": {"a": plan, "b": COMMAND},
        "export": {"plan": plan, "to": "vllm"},
        "import": {"source": COMMAND, "hardware": "1x2:h100-sxm"},
        "show": {"plan": plan, "form": "mermaid"},
        "rules": {"id": "pp003"},
        "models": {"name": "qwen3-32b"},
        "hardware": {},
        "explain": {"question": "pipeline bubble"},
    }
