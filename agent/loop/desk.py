"""The desk of one run: the documents so far, each by a short handle, and the best valid plan among them.

A model names documents by handle, so that a big one is sent once at most. Documents are kept as they were given; the
number and the size of them is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...tools.checkpoint import StoppedError
from ...tools.errors import InputError
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ...tools.rules.edits import same
from ...tools.search.candidate import SearchResult
from ..model.redaction import redacted_value
from .question import Question

# Documents that a run keeps, and nodes and edges of all of them: beyond them a model no longer makes new ones.
MOST_DOCUMENTS = 64
MOST_ELEMENTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Standing:
    """A valid plan for the question, and what it costs and gives.

    `is_repaired`: it is not what the model wrote. `is_kept`: it has what the person asked for of the split itself.
    """

    handle: str
    plan: Plan
    estimate: PerformanceEstimate
    is_repaired: bool
    is_kept: bool = True


@dataclass
class Desk:
    """Documents by handle, and valid plans in the order in which they were found.

    `redact` takes secrets out of what a model wrote. `searches` are the searches that were done for the run's question,
    by whether phases lie apart.
    """

    question: Question
    redact: Callable[[str], str] = str
    documents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    standing: list[Standing] = field(default_factory=list[Standing])
    searches: dict[bool | None, SearchResult] = field(default_factory=dict[bool | None, SearchResult])

    def hidden(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """`proposed` without secrets; what the format and the request say stays."""
        return redacted_value(dict(proposed), self.redact, self.question.own_words)

    def put(self, document: Mapping[str, Any]) -> str:
        """Keep `document`; its handle, which is the one that it has where it is kept already.

        Raises:
            InputError: the desk is full.
        """
        known = next((name for name, kept in self.documents.items() if _alike(kept, document)), None)
        if known is not None:
            return known
        if len(self.documents) >= MOST_DOCUMENTS:
            raise InputError(f"this run holds {MOST_DOCUMENTS} documents already: submit one of them by its handle")
        if sum(map(_elements, self.documents.values())) + _elements(document) > MOST_ELEMENTS:
            raise InputError("the documents of this run are too large to keep another: submit one by its handle")
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

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What one step does to the desk, or nothing of it where the step is stopped."""
        documents, standing = dict(self.documents), list(self.standing)
        try:
            yield
        except StoppedError:
            self.documents, self.standing = documents, standing
            raise

    @property
    def best(self) -> Standing | None:
        """The valid plan as the person asked that does best by the objective; of equals the earliest."""
        key = objective_key(self.question.request.workload.objective)
        kept = [one for one in self.standing if one.is_kept]
        return min(kept, key=lambda one: key(one.plan, one.estimate), default=None)


def _alike(kept: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether two documents are the same JSON: equal, and of the same types."""
    # The quick comparison tells nearly all apart; it takes 1 for true.
    return kept == document and same(dict(kept), dict(document))


def _elements(document: Mapping[str, Any]) -> int:
    return sum(len(value) for name in ("nodes", "edges") if isinstance(value := document.get(name), list))


def objective_key(objective: str):
    """What is to be small of a plan with its estimate, for `objective`: end-to-end time, or GPU time per token."""

    def key(plan: Plan, estimate: PerformanceEstimate) -> float:
        latency, throughput = estimate.latency, estimate.throughput
        if objective == "latency":
            return latency.end_to_end_ms
        return -throughput.dp_scaled_tokens_per_s / (plan.strategy.gpu_count if objective == "cost" else 1)

    return key
