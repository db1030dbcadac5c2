"""The answers of the last searches: a talk, and a model that proposes, ask for the same again and again."""

from __future__ import annotations

import threading

from ..checkpoint import checkpoint, doing, left_out, time_is_over
from .candidate import SearchRequest, SearchResult

# Answers that are kept, and their candidates together: some 2 kB each.
_MOST_ANSWERS, _MOST_CANDIDATES = 32, 4096


class KnownAnswers:
    """Answers by request, the last ones that were asked for. Threads may share them."""

    def __init__(self) -> None:
        self._known: tuple[tuple[SearchRequest, SearchResult], ...] = ()
        self._lock = threading.Lock()

    def get(self, request: SearchRequest) -> SearchResult | None:
        """The answer to `request`; `None` where it is not known, or the time is over, which a search has to tell."""
        found = next((result for known, result in self._known if known == request), None)
        if found is None or time_is_over():
            return None
        checkpoint()
        doing("taking the layouts that were found before")
        self._first(request, found)
        return found.model_copy(update={"left_out": left_out()})

    def keep(self, request: SearchRequest, result: SearchResult) -> SearchResult:
        """`result`, known from now on if it left nothing out."""
        if not result.left_out:
            self._first(request, result)
        return result

    def _first(self, request: SearchRequest, result: SearchResult) -> None:
        with self._lock:
            others = [one for one in self._known if one[0] != request]
            kept, candidates = [(request, result)], len(result.candidates)
            for other in others[: _MOST_ANSWERS - 1]:
                candidates += len(other[1].candidates)
                if candidates > _MOST_CANDIDATES:
                    break
                kept.append(other)
            self._known = tuple(kept)
