"""Cached answers of the last searches: chats, and models that propose, repeat their requests."""

from __future__ import annotations

from ..caches import Recent
from ..checkpoint import checkpoint, doing, left_out, time_is_over
from .candidate import SearchRequest, SearchResult

# Answers that are kept, and their candidates together: some 2 kB each.
_MOST_ANSWERS, _MOST_CANDIDATES = 32, 4096


class KnownAnswers:
    """Cached answers by request, the most recently used ones. Threads may share them."""

    def __init__(self) -> None:
        self._recent = Recent[tuple[SearchRequest, SearchResult]](
            _MOST_ANSWERS, _MOST_CANDIDATES, lambda known: len(known[1].candidates)
        )

    def get(self, request: SearchRequest) -> SearchResult | None:
        """The cached answer to `request`; `None` if absent, or if the time is over, which a search has to report."""
        answer = self._recent.find(lambda known: known[0] == request)
        if answer is None or time_is_over():
            return None
        checkpoint()
        doing("taking the layouts that were found before")
        return answer[1].model_copy(update={"left_out": left_out()})

    def keep(self, request: SearchRequest, result: SearchResult) -> SearchResult:
        """`result`, known from now on if it left nothing out."""
        if not result.left_out:
            self._recent.keep((request, result), lambda known: known[0] == request)
        return result
