"""The desk of one run: its documents, each with a short handle, and the best valid plan among them.

A model names documents by handle, so that a big one is sent once at most. Documents are kept as given; their number
and size are bounded.
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

# Most documents of a run, and most nodes and edges of all: beyond them a model makes no new ones.
MOST_DOCUMENTS = 64
MOST_ELEMENTS = 2_000_000


# A document's maker: the model, a repair that kept its decisions, one that changed them, or the built-in proposer.
Maker = Literal["model", "repair", "replan", "builtin"]


class Standing(Struct, frozen=True):
    """A valid plan for the question, with its maker, its figures, and its comparison with the reference.

    `is_kept`: it keeps what the person stated about the split.
    """

    handle: str
    plan: Plan
    estimate: PerformanceEstimate
    maker: Maker
    against: Against
    is_kept: bool = True

    @property
    def is_models(self) -> bool:
        """Whether its decisions are the model's: as written, or repaired with all of them kept."""
        return self.maker in ("model", "repair")


class Asked(Struct, frozen=True):
    """A search by a model: constraints to keep, where phases run, and what the person would have to allow."""

    keep: tuple[str, ...] = ()
    apart: bool | None = None
    allow: tuple[str, ...] = ()


class Desk(Struct):
    """Documents by handle, and valid plans in the order of their finding. The built-in plan is the first.

    `redact` removes secrets from the model's texts. `searches` are the finished searches, `offered` their candidates by
    the handle under which they are built on demand; `would_need` is what the person would gain by allowing more.
    `has_reference`: a model gets the built-in plan, and has to match it.
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
        """Put the reference on the desk."""
        if self.has_reference:
            self.documents[REFERENCE] = self.question.reference_plan.model_dump(mode="json")
            self.makers[REFERENCE] = "builtin"

    def hidden(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """`proposed` without secrets; words of the format and the request stay."""
        return redacted_value(dict(proposed), self.redact, self.question.own_words)

    def put(self, document: Mapping[str, Any], maker: Maker = "model") -> str:
        """Keep `document` of `maker` and return its handle; a document that is kept already has its old one.

        Raises:
            InputError: the desk is full.
        """
        known = next((name for name, stored in self.documents.items() if _alike(stored, document)), None)
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
            InputError: no such document; the message lists the known ones.
        """
        if handle in self.offered and handle not in self.documents:
            candidate = self.offered[handle]
            built = self.question.pinned(self.question.document_of(candidate.strategy, candidate.concurrency))
            self.documents[handle], self.makers[handle] = built, "model"
        document = self.documents.get(handle)
        if document is None:
            known = ", ".join(self.documents) or "none so far: build or submit one"
            raise InputError(f"no document {handle[:40]!r}; there are: {known}")
        return document

    def offer(self, candidate: Candidate) -> str:
        """The handle of a search's candidate."""
        known = next((name for name, earlier in self.offered.items() if earlier == candidate), None)
        handle = known or f"s{len(self.offered) + 1}"
        self.offered[handle] = candidate
        return handle

    def needs(self, allow: tuple[str, ...], candidate: Candidate) -> None:
        """Record the gain of `allow`, if it is more than a tie."""
        beside = self.question.against_candidate(candidate)
        if candidate.feasible and not beside.is_tied and not beside.is_behind:
            self.would_need[allow] = WouldNeed(allow, describe(candidate.strategy), beside.words)

    def stand(self, standing: Standing) -> None:
        """Keep a valid plan."""
        self.standing.append(standing)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Make one step's changes to the desk atomic: none remains if the step is stopped."""
        documents, makers, standing = dict(self.documents), dict(self.makers), list(self.standing)
        try:
            yield
        except StoppedError:
            self.documents, self.makers, self.standing = documents, makers, standing
            raise

    def is_behind(self, standing: Standing) -> bool:
        """Whether the reference is the better plan, in a run that has to match it."""
        return self.has_reference and standing.maker != "builtin" and standing.against.is_behind

    @property
    def best(self) -> Standing | None:
        """The best valid plan by the objective that comes from the model's proposals and keeps the person's statements;
        of equals the earliest. If its decisions are not the model's, it has to be better than the reference.
        """
        eligible = [plan for plan in self.standing if plan.is_kept and (plan.is_models or plan.against.is_ahead)]
        return min(eligible, key=lambda plan: plan.against.own.burden, default=None)


def _alike(stored: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether two documents are the same JSON: equal, with the same types."""
    # The cheap comparison decides nearly all cases; but for it, 1 equals true.
    return stored == document and same(dict(stored), dict(document))


def _elements(document: Mapping[str, Any]) -> int:
    return sum(len(value) for name in ("nodes", "edges") if isinstance(value := document.get(name), list))
