"""The answers of the last searches: a talk, and a model that proposes, ask for the same again and again."""

from __future__ import annotations

from ..checkpoint import checkpoint, doing, left_out, time_is_over
from ..kept import Recent
from .candidate import SearchRequest, SearchResult

# Answers that are kept, and their candidates together: some 2 kB each.
_MOST_ANSWERS, _MOST_CANDIDATES = 32, 4096


class KnownAnswers:
    """Answers by request, the last ones that were asked for. Threads may share them."""

    def __init__(self) -> None:
        self._recent = Recent[tuple[SearchRequest, SearchResult]](
            _MOST_ANSWERS, _MOST_CANDIDATES, lambda known: len(known[1].candidates)
        )

    def get(self, request: SearchRequest) -> SearchResult | None:
        """The answer to `request`; `None` where it is not known, or the time is over, which a search has to tell."""
        found = self._recent.find(lambda known: known[0] == request)
        if found is None or time_is_over():
            return None
        checkpoint()
        doing("taking the layouts that were found before")
        return found[1].model_copy(update={"left_out": left_out()})

    def keep(self, request: SearchRequest, result: SearchResult) -> SearchResult:
        """`result`, known from now on if it left nothing out."""
        if not result.left_out:
            self._recent.keep((request, result), lambda known: known[0] == request)
        return result
