"""What every known engine does by itself, and what it can be told to do, as the relaxations that stand for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..catalog.architecture import Architecture
from .names import ENGINES, engine_name, names_known

if TYPE_CHECKING:
    from ..plan.document import Relaxation

# vLLM, SGLang and TensorRT-LLM alike: their embedding and LM head are parallel over the tensor ranks, and their fused
# experts are cut over the same ranks where expert parallelism is off.
_VOCABULARY = "the engine splits the vocabulary over its tensor ranks by itself"
_EXPERTS = "the engine cuts experts over its ranks where expert parallelism is off"
_CACHE = "the engine can cut the KV cache along the sequence in decode"
_GROUPS = "the engine can give each attention group requests of its own"
_COPIES = "the engine can hold popular experts twice"


def engine_relaxations(engine: str | None, architecture: Architecture) -> dict[Relaxation, str]:
    """The relaxations that naming `engine` brings for a model, each with the reason; none for an unknown engine."""
    if not names_known(engine):
        return {}
    relaxations: dict[Relaxation, str] = {"vocab_parallel": _VOCABULARY}
    if architecture.is_moe:
        relaxations["tp_in_expert"] = _EXPERTS
    return relaxations


def possible_relaxations(engine: str | None, architecture: Architecture) -> dict[Relaxation, str]:
    """All relaxations that `engine` has for a model, those that naming it brings among them, each with the reason."""
    reasons = engine_relaxations(engine, architecture)
    if reasons:
        reasons["kv_sequence_decode"] = _CACHE
    if reasons and architecture.is_moe:
        reasons |= {"attention_dp": _GROUPS, "redundant_experts": _COPIES}
    name = engine_name(engine)
    return reasons if name is None else {kind: why for kind, why in reasons.items() if kind not in ENGINES[name].lacks}
