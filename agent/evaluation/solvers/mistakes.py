"""Typical mistakes of models, made on purpose in a right plan: the material of two personas."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from ...loop.question import Question

# A proposal, as the arguments of `submit_dag`.
Answer = dict[str, Any]

_COLLECTIVES = ("AllReduceNode", "AllGatherNode", "ReduceScatterNode", "AllToAllNode")


def right_answer(question: Question) -> Answer:
    """The built-in proposer's strategy."""
    strategy = question.reference_plan.strategy.model_dump(mode="json", exclude_none=True)
    degrees = ("pp", "tp", "tp_ffn", "ep", "sp", "attention_dp", "replicas")
    phases = {
        phase: {name: strategy[phase][name] for name in degrees if name in strategy[phase]}
        for phase in ("prefill", "decode")
    }
    return {"strategy": {"dp": strategy["dp"], **phases}}


def uneven_degrees(question: Question, chance: Random) -> Answer:
    """A TP that divides no head count of the model."""
    heads = question.model.config.get("num_attention_heads")
    tp = chance.choice([degree for degree in (3, 5, 7) if not (isinstance(heads, int) and heads % degree == 0)] or [11])
    return {"strategy": {"dp": 1, "prefill": {"pp": 1, "tp": tp}, "decode": {"pp": 1, "tp": tp}}}


def too_many_gpus(question: Question, chance: Random) -> Answer:
    """The right plan with twice the replicas that the hardware holds."""
    answer = right_answer(question)["strategy"]
    plan = question.reference_plan
    times = -(-2 * question.request.facts.gpus // plan.strategy.gpu_count)
    phases = {
        phase: {
            **answer[phase],
            **({"replicas": answer[phase]["replicas"] * times} if "replicas" in answer[phase] else {}),
        }
        for phase in ("prefill", "decode")
    }
    return {"strategy": {"dp": answer["dp"] * times, **phases}}


def lost_collective(question: Question, chance: Random) -> Answer:
    """The right plan without one of its collectives; another slip if it has none."""
    document = json.loads(question.reference_plan.model_dump_json(exclude_none=True))
    collectives = [node["id"] for node in document["nodes"] if node["type"] in _COLLECTIVES]
    if not collectives:
        return uneven_degrees(question, chance)
    lost = chance.choice(collectives)
    document["nodes"] = [node for node in document["nodes"] if node["id"] != lost]
    document["edges"] = [edge for edge in document["edges"] if lost not in _ends(edge)]
    return {"document": document}


def _ends(edge: Any) -> tuple[Any, ...]:
    return (edge.get("source"), edge.get("target")) if isinstance(edge, dict) else tuple(edge)


SLIPS: tuple[Callable[[Question, Random], Answer], ...] = (uneven_degrees, too_many_gpus, lost_collective)
