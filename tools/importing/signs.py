"""What a text that starts an engine has, for those who read many texts that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .spans import Started

# Without one of them no text starts an engine.
_SIGNS = ("vllm", "sglang", "trtllm", "tensorrt_llm", "tensor_parallel_size")


def may_launch(text: str) -> bool:
    """Whether a text may start an engine."""
    return any(sign in text for sign in _SIGNS)


def not_planned(text: str) -> tuple[str, ...]:
    """What launch commands in `text` say that no plan holds."""
    if not may_launch(text):
        return ()
    from .spans import not_planned as found_in

    return found_in(text)


def with_commands_in_words(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` with words in place of its launch commands, and how those were read; as it is where that is not known."""
    if not may_launch(text):
        return text, ()
    from .spans import in_place  # the readers of commands are loaded where there may be one

    return in_place(text)


def started_by(text: str) -> Started | None:
    """What launch commands in `text` start; `None` where there are none, or where that is not known."""
    if not may_launch(text):
        return None
    from .spans import started_by as found_by

    return found_by(text)
