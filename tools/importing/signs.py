"""What a text that starts an engine has, for those who read many texts that do not."""

from __future__ import annotations

from ..engines.names import ENGINES

# Without one of them no text starts an engine, or is a file of options that says so.
_SIGNS = (*{word for one in ENGINES.values() for word in (*one.programs, *one.modules)}, "tensor_parallel_size")


def may_launch(text: str) -> bool:
    """Whether a text may start an engine."""
    return any(sign in text for sign in _SIGNS)
