"""Questions that every operation answers quickly, for tests of the library, HTTP and MCP."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

SMALL = {"model": "Llama-3.1-8B", "hardware": "1x2:h100-sxm", "input_tokens": 512, "output_tokens": 64}
REQUEST = "Llama-3.1-8B on 2 H100, 512 in, 64 out"
_PROMPTS = count(4096)
COMMAND = "vllm serve meta-llama/Llama-3.1-8B -tp 2"


def long_question() -> dict[str, Any]:
    """A question whose search takes ten seconds or more; a new one each time, as repeats are answered sooner."""
    return {
        "model": "DeepSeek-V3", "hardware": "512x8:h100-sxm", "precision": "any", "input_tokens": next(_PROMPTS),
        "output_tokens": 512, "concurrency": 4096, "sensitivity": True, "time_limit_s": 100,
    }  # fmt: skip


def questions(plan: dict[str, Any] | str) -> dict[str, dict[str, Any]]:
    """A question for each operation, by name; `plan` is a document or a reference to one."""
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
