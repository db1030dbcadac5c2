"""When requests come in a run that knows each one: the first of every user, and what follows a finished request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...plan.prefixes import DEFAULT_ROUTING, Routing
from .draws import arrivals_at, thinking
from .load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop
from .records import Requests
from .talks import Talks

# More conversations than begin on average, so that they do not run out before the run ends.
_SPARE_SHARE, _SPARE = 1.2, 10

# When a request comes (s), and what it follows: a request, or -1 - n for the turn n of a conversation (`Talks.arrive`).
Coming = tuple[float, int]


def whole_conversations(arrivals: Arrivals, lengths: Lengths) -> Arrivals:
    """The load with requests rounded up to whole conversations, if users wait for their answers."""
    if lengths.turns == 1 or not isinstance(arrivals, ClosedLoop | Burst):
        return arrivals
    return replace(arrivals, requests=-(-arrivals.requests // lengths.turns) * lengths.turns)


class Callers:
    """The `count` requests of a run under `arrivals`; `drawn` has lengths, pauses and first arrivals.

    `talks`: their lengths and what they share, set as they come; `routing`: how they are dealt to schedulers.
    """

    def __init__(self, arrivals: Arrivals, lengths: Lengths, drawn: Requests, block_tokens: int) -> None:
        self._arrivals, self._turns, self._drawn = arrivals, lengths.turns, drawn
        self.count = len(drawn.inputs)
        self.talks = Talks(lengths, drawn, block_tokens)
        self.routing: Routing = DEFAULT_ROUTING if lengths.prefixes is None else lengths.prefixes.router
        self._pauses = self._pauses_after()
        self._conversations_left = 0

    def first(self) -> Iterator[Coming]:
        """Arrivals that follow no request of the run; for conversations at a rate, more than the run needs."""
        turns, load = self._turns, self._arrivals
        if isinstance(load, OpenLoop) and turns > 1:
            # Conversations begin at the rate that gives the stated rate of turns; earlier ones continue.
            rate_per_s, span_s = load.rate_per_s / turns, self.count / load.rate_per_s
            starts = math.ceil(_SPARE_SHARE * self.count / turns) + _SPARE
            for time in arrivals_at(rate_per_s, starts, burstiness=load.burstiness):
                yield time, -1
            for time, turn in self.talks.earlier(rate_per_s, load.think_s, span_s):
                yield time, -1 - turn
            return
        first = self._drawn.arrivals[: self.count // turns]
        self._conversations_left = self.count // turns - len(first)
        for time in first:
            yield time, -1

    def after(self, request: int, done_s: float) -> Coming | None:
        """What follows a finished request: the next turn, or, if users wait for answers, the next conversation."""
        time = done_s + self._pauses[request]
        if self.talks.goes_on(request):
            return time, request
        if self._conversations_left > 0:
            self._conversations_left -= 1
            return time, -1
        return None

    def _pauses_after(self) -> Sequence[float]:
        """For each request, the seconds from its end to the next one of the same user."""
        load, pauses = self._arrivals, self._drawn.pauses
        if isinstance(load, OpenLoop) and self._turns > 1 and load.think_s > 0.0:
            thought = thinking(load.think_s, self.count)
            return [pause + more for pause, more in zip(pauses, thought, strict=True)]
        return pauses
