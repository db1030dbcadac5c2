"""What every known engine does by itself and cannot be told not to do, as the relaxations that stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog.architecture import Architecture
from .names import names_known

if TYPE_CHECKING:
    from ..plan.document import Relaxation

# vLLM, SGLang and TensorRT-LLM alike: their embedding and LM head are parallel over the tensor ranks, and their fused
# experts are cut over the same ranks where expert parallelism is off.
_VOCABULARY = "the engine splits the vocabulary over its tensor ranks by itself"
_EXPERTS = "the engine cuts experts over its ranks where expert parallelism is off"


def engine_relaxations(engine: str | None, architecture: Architecture) -> dict[Relaxation, str]:
    """The relaxations that naming `engine` brings for a model, each with the reason; none where it is not known."""
    if not names_known(engine):
        return {}
    found: dict[Relaxation, str] = {"vocab_parallel": _VOCABULARY}
    if architecture.is_moe:
        found["tp_in_expert"] = _EXPERTS
    return found
