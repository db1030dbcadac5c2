"""What the prompts of a workload share, as data of the plan document: beginnings that a prefix cache need not compute.

Which of them it does hold when they are asked for is not stated: the simulated run computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from ..frozen import Sparse
from ..input import bounds
from .lengths import MOST_PAIRS, Tokens, refused
from .quantiles import Joint

Routing = Literal["round_robin", "least_loaded", "sticky", "prefix_aware"]
# The default in front of servers: a balancer by requests in flight, as exports ask for one.
DEFAULT_ROUTING: Routing = "least_loaded"

Shared = tuple[
    Annotated[int, Field(strict=True, ge=0, le=MOST_PAIRS - 1)], Annotated[int, bounds.SHARED_TOKENS.whole()]
]


class SharedPrefixes(Sparse):
    """What prompts share, from their first token on.

    `system_tokens`: so many stand at the start of every prompt. Of `system_prompts` different ones (1 where absent) the
    n-th is asked for as often as n to the power of minus `system_skew` (0, all alike, where absent).
    `turns`: requests are turns of conversations. Each prompt is the one before it, its answer and as many new tokens as
    in every turn; `input_tokens` is the mean over turns, as a server sees them. `arrivals.think_time_s` lies between.
    `replay`: of each of `lengths.pairs`, which are then successive requests, [an earlier one of them by its place from
    0, tokens that its prompt begins with as well]; [0, 0]: it shares none.
    `routing`: how requests are dealt to the schedulers of all replicas: in turn; to the one with the fewest requests
    (where absent); turns of a conversation to that of the first; to the one whose cache holds most of the prompt.
    """

    system_tokens: Tokens | None = None
    system_prompts: Annotated[int, bounds.SYSTEM_PROMPTS.whole()] | None = None
    system_skew: Annotated[float, bounds.SKEW.real()] | None = None
    turns: Annotated[int, bounds.TURNS.whole()] | None = None
    replay: Annotated[tuple[Shared, ...], Field(min_length=1, max_length=MOST_PAIRS)] | None = None
    routing: Routing | None = None

    @model_validator(mode="after")
    def _says_what_is_shared(self) -> Self:
        is_made = self.system_tokens is not None or self.turns is not None
        if is_made == (self.replay is not None):
            raise refused("prefixes are system_tokens, turns or both, or a replay of requests")
        if self.system_tokens is None and (self.system_prompts is not None or self.system_skew is not None):
            raise refused("system_prompts and system_skew are of system_tokens; state how many")
        for place, (earlier, tokens) in enumerate(self.replay or ()):
            if earlier >= place and tokens > 0:
                raise refused(f"replay {place} shares tokens with request {earlier}, which is not before it")
            if earlier > place:
                raise refused(f"replay {place} names request {earlier}, which is not before it")
        return self

    @property
    def router(self) -> Routing:
        """How requests are distributed to schedulers."""
        return self.routing or DEFAULT_ROUTING

    def turn_lengths(self, input_tokens: int, output_tokens: int) -> Joint | None:
        """Prompt and answer tokens of each turn, for a mean prompt of `input_tokens`; `None` without turns.

        With s tokens of system prompt, u new ones a turn and answers of o, the prompt of turn t has
        s + t u + (t - 1) o tokens, of which the mean over T turns is s + u (T + 1) / 2 + o (T - 1) / 2.
        """
        if self.turns is None:
            return None
        system, before = self.system_tokens or 0, (self.turns - 1) / 2
        new = max(1.0, (input_tokens - system - output_tokens * before) / (before + 1))
        turns = range(self.turns)
        return Joint(tuple((round(system + (t + 1) * new) + t * output_tokens, output_tokens) for t in turns))

    def mean_input(self, new_tokens: int, output_tokens: int) -> int:
        """Tokens of the mean prompt if each prompt, or each turn, adds `new_tokens` to what it repeats."""
        before = ((self.turns or 1) - 1) / 2
        return math.ceil((self.system_tokens or 0) + new_tokens * (before + 1) + output_tokens * before)

    def of_kept(self, kept: Sequence[bool]) -> SharedPrefixes:
        """The replay of the `kept` requests: one that shared with a dropped request shares with that one's source."""
        if self.replay is None:
            return self
        places = list(accumulate(kept, initial=0))
        replay: list[tuple[int, int]] = []
        for earlier, tokens in (pair for pair, is_kept in zip(self.replay, kept, strict=True) if is_kept):
            while tokens > 0 and not kept[earlier]:
                earlier, shared = self.replay[earlier]
                tokens = min(tokens, shared)
            replay.append((places[earlier], tokens) if tokens > 0 else (0, 0))
        return self.model_copy(update={"replay": tuple(replay)})

    def most_shared(self, pairs: Sequence[tuple[int, int]], input_tokens: int) -> float:
        """The share of prompt tokens that an unlimited cache holds, 0 to 1: the most that any cache can hit."""
        if self.replay is not None:
            shared = [tokens for _, tokens in self.replay]
        elif self.turns is not None:
            shared = [self.system_tokens or 0, *(tokens + more - 1 for tokens, more in pairs[:-1])]
        else:
            return min(1.0, (self.system_tokens or 0) / input_tokens)
        return min(1.0, sum(shared) / sum(tokens for tokens, _ in pairs))

    def check_beside(self, stated: Mapping[str, Any]) -> None:
        """Check that they agree with the `stated` lengths, and that no hit rate is given beside them.

        Raises PydanticCustomError: they disagree, or there is a hit rate.
        """
        if stated.get("prefix_cache_hit_rate") is not None:
            raise refused("prefix_cache_hit_rate is given, and prefixes are that it is computed from; leave one out")
        lengths = stated.get("lengths")
        mean: int = stated["input_tokens"]
        if self.replay is not None:
            pairs = None if lengths is None else lengths.pairs
            if pairs is None or len(pairs) != len(self.replay):
                raise refused("replay says of each of lengths.pairs what it shares: state as many")
            for place, (earlier, tokens) in enumerate(self.replay):
                if tokens > min(pairs[place][0], pairs[earlier][0]):
                    raise refused(f"replay {place} shares {tokens:,} tokens, more than the prompts have")
            return
        system = self.system_tokens or 0
        if self.turns is None:
            if system > mean:
                raise refused(
                    f"system_tokens {system:,} are more than the {mean:,} tokens of a mean prompt, which has them in it"
                )
            return
        if lengths is not None or any(stated.get(f"{side}_tokens_range") is not None for side in ("input", "output")):
            raise refused(
                "prompts of turns have the lengths that follow from input_tokens; leave lengths and ranges out"
            )
        least = _least_mean(self.turns, system, stated["output_tokens"])
        if mean < least:
            raise refused(
                f"input_tokens {mean:,} is the mean prompt of {self.turns} turns, each of which repeats all before it: "
                f"with these answers it is {least:,} at least"
            )

    def __str__(self) -> str:
        """What is shared, in words."""
        parts: list[str] = []
        if self.system_tokens is not None:
            several = self.system_prompts or 1
            by = "shared by all" if several == 1 else f"of {several:,} different ones"
            skew = f", the n-th asked for as n^-{self.system_skew:g}" if several > 1 and self.system_skew else ""
            parts.append(f"a system prompt of {self.system_tokens:,} tokens {by}{skew}")
        if self.turns is not None:
            parts.append(f"conversations of {self.turns} turns, each of which repeats all before it")
        if self.replay is not None:
            parts.append(f"beginnings as {len(self.replay):,} recorded requests in a row shared them")
        return "; ".join(parts)


def _least_mean(turns: int, system: int, output_tokens: int) -> int:
    """Tokens of the mean prompt if each turn adds one token."""
    return -(-(2 * system + turns + 1 + output_tokens * (turns - 1)) // 2)
