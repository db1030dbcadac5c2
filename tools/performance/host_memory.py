"""Whether host memory for the KV cache has an effect on a plan."""

from __future__ import annotations

from ..engines.engine import Engine
from ..plan.kv_offload import KVOffload
from ..plan.prefixes import SharedPrefixes


def without_effect(offload: KVOffload, engine: Engine, prefixes: SharedPrefixes | None) -> str | None:
    """Why `offload` has no effect on `engine` for prompts that share `prefixes`; `None` if it has one."""
    if engine.keeps_in_host is None:
        return f"{offload}: how {engine.title} is told of it is not known here"
    if prefixes is None:
        return (
            f"{offload}: what it is worth depends on what prompts share; say it (a system prompt, turns of "
            "conversations, a trace)"
        )
    return None
