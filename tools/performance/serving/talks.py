"""The lengths of a run's requests and what their prompts share: the place of each in the tree of prompts.

Requests are numbered in order of arrival. Turns of conversations get their lengths on arrival, since which turn comes
next depends on when the turn before was answered.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ...plan.prefixes import SharedPrefixes
from ...plan.quantiles import Joint
from .draws import EARLIER_STREAM, SYSTEM_STREAM, uniforms
from .load import Lengths
from .prefix_cache import PrefixTree
from .records import Requests
from .summary import CacheUse


class Talks:
    """Requests of a load of `lengths`: `inputs`, `outputs` and `leaves` in `tree`, by request.

    `drawn` are requests with the lengths of the load; turns and replayed requests have their own lengths. Requests that
    share nothing are not in the tree.
    `begun`: whether everything that a request's prompt repeats was sent in this run.
    """

    def __init__(self, lengths: Lengths, drawn: Requests, block_tokens: int) -> None:
        self.inputs, self.outputs = list(drawn.inputs), list(drawn.outputs)
        count = len(self.inputs)
        self.tree = PrefixTree(block_tokens)
        self.leaves, self.begun, self._turn_of = [-1] * count, [True] * count, [0] * count
        self._turns: tuple[tuple[int, int], ...] = ()
        self._system_tokens, self._systems, self._system_ends = 0, [-1], [1.0]
        if lengths.prefixes is not None:
            self._share(lengths.prefixes, lengths)

    def _share(self, prefixes: SharedPrefixes, lengths: Lengths) -> None:
        self._system_tokens = prefixes.system_tokens or 0
        if self._system_tokens > 0:
            self._prepare_systems(prefixes)
        if prefixes.replay is not None:
            self._replay(prefixes.replay, _pairs(lengths))
        elif prefixes.turns is not None:
            self._turns = _pairs(lengths)
            self._system_tokens = min(self._system_tokens, self._turns[0][0])
        else:
            self._place_all()

    @property
    def turns(self) -> int:
        """Turns of a conversation; 1 if requests are not turns."""
        return max(1, len(self._turns))

    def goes_on(self, request: int) -> bool:
        """Whether another turn follows."""
        return self._turn_of[request] + 1 < len(self._turns)

    def arrive(self, request: int, before: int) -> None:
        """Record an arrival: the turn after request `before`, or, if that is -1 - n, turn n of a conversation.

        In the second case the earlier turns were before the run, so that no cache has them.
        """
        if not self._turns:
            return
        turn = self._turn_of[before] + 1 if before >= 0 else -1 - before
        tokens, more = self._turns[turn]
        self._turn_of[request] = turn
        self.inputs[request], self.outputs[request] = tokens, more
        self.begun[request] = before >= 0 or turn == 0
        if before >= 0:
            # The last token of an answer never went through the model.
            shared = self.inputs[before] + self.outputs[before] - 1
            self.leaves[request] = self.tree.go_on(self.leaves[before], min(shared, tokens), tokens + more - 1)
        else:
            shared = min(self._system_tokens, tokens)
            self.leaves[request] = self.tree.add(self._system_of(request), shared, tokens + more - 1)

    def earlier(self, starts_per_s: float, think_s: float, span_s: float) -> Iterator[tuple[float, int]]:
        """Conversations in progress when a run of `span_s` begins: when each continues (s), and with which turn.

        As many are between two turns as begin during a user's mean think time; how long they still think has the same
        distribution, as exponential times have no memory. Those that continue after the run are left out.
        """
        if think_s <= 0.0:
            return
        within = -math.expm1(-span_s / think_s)
        each = round(starts_per_s * think_s * within)
        draws = iter(uniforms(EARLIER_STREAM, each * (self.turns - 1)))
        for turn in range(1, self.turns):
            for _ in range(each):
                yield -think_s * math.log1p(-next(draws) * within), turn

    def cache_use(
        self, hits: Sequence[int], from_host: Sequence[int], filled: Sequence[float], counted: Sequence[int]
    ) -> CacheUse:
        """Cache use of the `counted` requests; `hits` and `from_host` are tokens, `filled` is as in `CacheUse`."""
        begun = [i for i in counted if self.begun[i]]
        prompts, hit_tokens, loaded = (sum(of[i] for i in begun) for of in (self.inputs, hits, from_host))
        return CacheUse(prompts, hit_tokens, [filled[i] for i in counted], loaded)

    def _prepare_systems(self, prefixes: SharedPrefixes) -> None:
        count, skew = prefixes.system_prompts or 1, prefixes.system_skew or 0.0
        self._systems = [self.tree.add(-1, 0, self._system_tokens) for _ in range(count)]
        self._system_ends = list(accumulate((place + 1.0) ** -skew for place in range(count)))

    def _system_of(self, request: int) -> int:
        """The node of the system prompt that a request begins with."""
        if len(self._systems) == 1:
            return self._systems[0]
        draw = uniforms(SYSTEM_STREAM, len(self.inputs))[request] * self._system_ends[-1]
        return self._systems[min(bisect(self._system_ends, draw), len(self._systems) - 1)]

    def _place_all(self) -> None:
        for request, (tokens, more) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            shared = min(self._system_tokens, tokens)
            self.leaves[request] = self.tree.add(self._system_of(request), shared, tokens + more - 1)

    def _replay(self, replay: tuple[tuple[int, int], ...], pairs: tuple[tuple[int, int], ...]) -> None:
        """Replay the recorded requests in order, and again from the start, sharing only within a repetition."""
        for request in range(len(self.inputs)):
            place = request % len(replay)
            earlier, shared = replay[place]
            tokens, more = pairs[place]
            self.inputs[request], self.outputs[request] = tokens, more
            other = self.leaves[request - place + earlier] if shared > 0 else -1
            self.leaves[request] = self.tree.add(other, min(shared, tokens), tokens + more - 1)


def _pairs(lengths: Lengths) -> tuple[tuple[int, int], ...]:
    """Prompt and answer tokens of each request of a pattern, cut to what the load allows."""
    assert isinstance(lengths.stated, Joint)
    most = lengths.most_tokens
    cut = ((max(1, min(tokens, most - 1)), more) for tokens, more in lengths.stated.pairs)
    return tuple((tokens, max(1, min(more, most - tokens))) for tokens, more in cut)
