"""A proposer made worse on purpose: it searches like the built-in one, but believes that communication is free.

An evaluation that misses it would miss a real mistake of that kind.
"""

from __future__ import annotations

from typing import Any

from ....tools.errors import InputError
from ....tools.input.bounds import BANDWIDTH_GB_S
from ...intent.intent import Intent
from ...loop.question import ask
from ...model.client import ModelClient
from ...results import PlanResult
from ..posed import PosedCase
from ..solver import Persona
from .speaker import Speaker, submits

# Links so fast that transfers take no time; only the start of each message remains.
_FREE_GB_S = BANDWIDTH_GB_S.most


class Unconnected(Persona, frozen=True):
    """Proposes the best strategy for hardware whose links cost nothing; the question is unchanged."""

    name: str = "unconnected"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that repeats that strategy, whatever the feedback."""
        assert found.intent is not None
        strategy = _best_without_communication(found.intent)
        if strategy is None:
            return None

        return Speaker(self.name, lambda request: submits(request, strategy=strategy))


def _best_without_communication(intent: Intent) -> dict[str, Any] | None:
    """The strategy, as a model writes it; `None` if hardware was left open, or there is no plan."""
    if intent.hardware is None or intent.hardware.nodes is None:
        return None
    links = {"intra_node_bw_gb_s": _FREE_GB_S, "inter_node_bw_gb_s": _FREE_GB_S}
    wishful = intent.model_copy(update={"hardware": intent.hardware.model_copy(update=links)})
    try:
        question = ask(wishful, with_hint=False)
    except InputError:
        return None
    if isinstance(question, PlanResult):
        return None
    strategy = question.reference_plan.strategy
    named = ("pp", "sp", "ep", "tp", "tp_ffn", "attention_dp", "replicas")
    phases = {
        phase: {name: value for name in named if (value := getattr(getattr(strategy, phase), name)) is not None}
        for phase in ("prefill", "decode")
    }
    return {"dp": strategy.dp, **phases}
