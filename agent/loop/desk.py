"""The desk of one run: the documents so far, each by a short handle, and the best valid plan among them.

A model names documents by handle, so that a big one is sent once at most. Documents are kept as they were given; the
number and the size of them is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...tools.errors import InputError
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from .question import Question

# Documents that a run keeps: beyond them a model no longer works on any.
MOST_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class Standing:
    """A valid plan for the question, and what it costs and gives. `is_repaired`: it is not what the model wrote."""

    handle: str
    plan: Plan
    estimate: PerformanceEstimate
    is_repaired: bool


@dataclass
class Desk:
    """Documents by handle, and valid plans in the order in which they were found."""

    question: Question
    documents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    standing: list[Standing] = field(default_factory=list[Standing])

    def put(self, document: Mapping[str, Any]) -> str:
        """Keep `document`; its handle.

        Raises:
            InputError: the desk is full.
        """
        if len(self.documents) >= MOST_DOCUMENTS:
            raise InputError(f"this run holds {MOST_DOCUMENTS} documents already: submit one of them by its handle")
        handle = f"d{len(self.documents) + 1}"
        self.documents[handle] = dict(document)
        return handle

    def get(self, handle: str) -> dict[str, Any]:
        """The document of `handle`.

        Raises:
            InputError: there is none; the message lists those that there are.
        """
        document = self.documents.get(handle)
        if document is None:
            known = ", ".join(self.documents) or "none so far: build or submit one"
            raise InputError(f"no document {handle[:40]!r}; there are: {known}")
        return document

    def stand(self, standing: Standing) -> None:
        """Keep a valid plan."""
        self.standing.append(standing)

    @property
    def best(self) -> Standing | None:
        """The valid plan that does best by the objective; of equals the earliest."""
        key = objective_key(self.question.request.workload.objective)
        return min(self.standing, key=lambda one: key(one.plan, one.estimate), default=None)


def objective_key(objective: str):
    """What is to be small of a plan with its estimate, for `objective`: end-to-end time, or GPU time per token."""

    def key(plan: Plan, estimate: PerformanceEstimate) -> float:
        latency, throughput = estimate.latency, estimate.throughput
        if objective == "latency":
            return latency.end_to_end_ms
        return -throughput.dp_scaled_tokens_per_s / (plan.strategy.gpu_count if objective == "cost" else 1)

    return key
