"""Signs that a text starts an engine, for readers of many texts that do not."""

from __future__ import annotations

from ..engines.names import ENGINES

# A text without any of them starts no engine and is no file of options.
_SIGNS = (*{word for facts in ENGINES.values() for word in (*facts.programs, *facts.modules)}, "tensor_parallel_size")


def may_launch(text: str) -> bool:
    """Whether a text may start an engine."""
    return any(sign in text for sign in _SIGNS)
