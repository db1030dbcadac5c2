"""A persona that tries to beat the reference: it searches what the built-in proposer left out, and takes the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import field

from ...loop.against import REFERENCE
from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ...model.messages import ModelRequest, Reply
from ...model.scripted import calls
from ..posed import PosedCase
from ..solver import HELD, Persona
from .feedback import objects_in
from .speaker import Speaker, submits


class Opener(Persona, frozen=True):
    """Searches once, and submits the best by the reported figures, else the reference."""

    options: AgentOptions = field(default=HELD)
    name: str = "opener"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """A client that searches in this case."""
        assert found.question is not None
        return speaker_of(found.question.request.workload.objective, self.name)


def speaker_of(objective: str, name: str = "opener") -> ModelClient:
    """A client that wants more tokens/s, or less time or money, than the reference has."""
    sign = 1.0 if objective == "throughput" else -1.0

    def answer(request: ModelRequest) -> Reply:
        if not any(message.role == "assistant" for message in request.messages):
            return calls(("search_strategies", {"count": 3}))
        offers = {
            handle: sign * change for handle, change in _offers(next(objects_in(request.messages[-1].content), {}))
        }
        best = max(offers, key=offers.__getitem__, default=REFERENCE)
        return submits(request, handle=best if offers.get(best, 0.0) > 0.0 else REFERENCE)

    return Speaker(name, answer)


def _offers(found_table: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Handles of a search, each with the percentage by which its figure exceeds the reference's."""
    columns = found_table.get("columns")
    if not isinstance(columns, list):
        return
    for row in found_table.get("rows", []):
        offer = dict(zip(columns, row, strict=False))
        handle, change = offer.get("handle"), offer.get("against_reference")
        if isinstance(handle, str) and isinstance(change, str):
            yield handle, float(change.rstrip("%"))
