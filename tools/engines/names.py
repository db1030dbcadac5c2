"""The serving engines whose rules are known, however they are spelled."""

from __future__ import annotations

from typing import Literal

Engine = Literal["vllm", "sglang", "trtllm"]

TITLES: dict[Engine, str] = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
_SPELLINGS: dict[str, Engine] = {"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm", "tensorrt": "trtllm"}
# Starts one of the engines above, and does not say which.
_FRONT = "dynamo"
_MAX_READ = 200


def _letters(text: str | None) -> str:
    return "".join(letter for letter in (text or "")[:_MAX_READ].lower() if letter.isalnum())


def engine_of(text: str | None) -> Engine | None:
    """The engine that `text` names however it is spelled; `None` where it names none, an unknown one, or several."""
    letters = _letters(text)
    found: set[Engine] = {engine for spelling, engine in _SPELLINGS.items() if spelling in letters}
    return found.pop() if len(found) == 1 else None


def names_known(text: str | None) -> bool:
    """Whether `text` names one of the engines, or what starts one of them."""
    return engine_of(text) is not None or _FRONT in _letters(text)
