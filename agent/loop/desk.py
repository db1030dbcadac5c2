"""The desk of one run: the documents so far, each by a short handle, and the best valid plan among them.

A model names documents by handle, so that a big one is sent once at most. Documents are kept as they were given; the
number and the size of them is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct, field

from ...tools.checkpoint import StoppedError
from ...tools.errors import InputError
from ...tools.plan.describe import describe
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ...tools.rules.findings import same
from ...tools.search.candidate import Candidate, SearchResult
from ..model.redaction import redacted_value
from .against import REFERENCE, Against
from .question import Question
from .would_need import WouldNeed

# Documents that a run keeps, and nodes and edges of all of them: beyond them a model no longer makes new ones.
MOST_DOCUMENTS = 64
MOST_ELEMENTS = 2_000_000


# Who made a document: the model, a repair that kept its decisions, one that took others, or the built-in proposer.
Maker = Literal["model", "repair", "replan", "builtin"]


class Standing(Struct, frozen=True):
    """A valid plan for the question, who made it, what it costs and gives, and how it does against the reference.

    `is_kept`: it has what the person asked for of the split itself.
    """

    handle: str
    plan: Plan
    estimate: PerformanceEstimate
    maker: Maker
    against: Against
    is_kept: bool = True

    @property
    def is_models(self) -> bool:
        """Whether its decisions are the model's: it stands as it was written, or repaired with all of them kept."""
        return self.maker in ("model", "repair")


class Asked(Struct, frozen=True):
    """A search that a model asked for: constraints to keep, where phases lie, what the person would have to allow."""

    keep: tuple[str, ...] = ()
    apart: bool | None = None
    allow: tuple[str, ...] = ()


class Desk(Struct):
    """Documents by handle, and valid plans in the order in which they were found. The built-in plan lies there first.

    `redact` takes secrets out of what a model wrote. `searches` are the searches that were done, `offered` what they
    found, by the handle under which it is built once it is asked for; `would_need` is what the person would gain by
    allowing more. `has_reference`: a model knows of the built-in plan, and has to do as well.
    """

    question: Question
    redact: Callable[[str], str] = str
    has_reference: bool = True
    documents: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    standing: list[Standing] = field(default_factory=list[Standing])
    searches: dict[Asked, SearchResult] = field(default_factory=dict["Asked", SearchResult])
    offered: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    would_need: dict[tuple[str, ...], WouldNeed] = field(default_factory=dict[tuple[str, ...], WouldNeed])
    makers: dict[str, Maker] = field(default_factory=dict[str, Maker])

    def __post_init__(self) -> None:
        """Lay the reference on the desk."""
        if self.has_reference:
            self.documents[REFERENCE] = self.question.reference_plan.model_dump(mode="json")
            self.makers[REFERENCE] = "builtin"

    def hidden(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """`proposed` without secrets; what the format and the request say stays."""
        return redacted_value(dict(proposed), self.redact, self.question.own_words)

    def put(self, document: Mapping[str, Any], maker: Maker = "model") -> str:
        """Keep `document`, which `maker` made; its handle, which is the one that it has where it is kept already.

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
        handle = f"d{len(self.documents) + (not self.has_reference)}"
        self.documents[handle], self.makers[handle] = dict(document), maker
        return handle

    def get(self, handle: str) -> dict[str, Any]:
        """The document of `handle`.

        Raises:
            InputError: there is none; the message lists those that there are.
        """
        if handle in self.offered and handle not in self.documents:
            one = self.offered[handle]
            built = self.question.pinned(self.question.document_of(one.strategy, one.concurrency))
            self.documents[handle], self.makers[handle] = built, "model"
        document = self.documents.get(handle)
        if document is None:
            known = ", ".join(self.documents) or "none so far: build or submit one"
            raise InputError(f"no document {handle[:40]!r}; there are: {known}")
        return document

    def offer(self, candidate: Candidate) -> str:
        """The handle of what a search found."""
        known = next((name for name, one in self.offered.items() if one == candidate), None)
        handle = known or f"s{len(self.offered) + 1}"
        self.offered[handle] = candidate
        return handle

    def needs(self, allow: tuple[str, ...], candidate: Candidate) -> None:
        """Keep what would be gained by `allow`, where it is more than the search tells apart."""
        beside = self.question.against_candidate(candidate)
        if candidate.feasible and not beside.is_tied and not beside.is_behind:
            self.would_need[allow] = WouldNeed(allow, describe(candidate.strategy), beside.words)

    def stand(self, standing: Standing) -> None:
        """Keep a valid plan."""
        self.standing.append(standing)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What one step does to the desk, or nothing of it where the step is stopped."""
        documents, makers, standing = dict(self.documents), dict(self.makers), list(self.standing)
        try:
            yield
        except StoppedError:
            self.documents, self.makers, self.standing = documents, makers, standing
            raise

    def is_behind(self, standing: Standing) -> bool:
        """Whether the reference is the better plan, where a run has to do as well."""
        return self.has_reference and standing.maker != "builtin" and standing.against.is_behind

    @property
    def best(self) -> Standing | None:
        """Of the valid plans that came of what the model proposed, and are as the person asked, the one best by the
        objective; of equals the earliest. With decisions that no model took it has to be better than the reference.
        """
        kept = [one for one in self.standing if one.is_kept and (one.is_models or one.against.is_ahead)]
        return min(kept, key=lambda one: one.against.own.burden, default=None)


def _alike(kept: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether two documents are the same JSON: equal, and of the same types."""
    # The quick comparison tells nearly all apart; it takes 1 for true.
    return kept == document and same(dict(kept), dict(document))


def _elements(document: Mapping[str, Any]) -> int:
    return sum(len(value) for name in ("nodes", "edges") if isinstance(value := document.get(name), list))
