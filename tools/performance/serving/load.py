"""Formats of a serving load and its results: arrivals, lengths, and statistics of latency. Times are seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...input.bounds import TOKENS
from ...plan.prefixes import SharedPrefixes
from ...plan.quantiles import Spread

if TYPE_CHECKING:
    from ...plan.document import Statistic


class ClosedLoop(Struct, frozen=True):
    """`users` who each send the next request when the last one is answered; `requests` in all, the first at once.

    With `think_s` each thinks before every request for `think_s` on average, exponentially distributed.
    """

    users: int
    requests: int
    think_s: float = 0.0


class OpenLoop(Struct, frozen=True):
    """`requests` that arrive at random, `rate_per_s` on average, whatever the server does.

    Gaps between arrivals have a gamma distribution of shape `burstiness`: 1 is a Poisson process, less comes in bursts.
    The requests are every `one_of`-th of them: 1, or the number of replicas that are dealt requests in turn. The first
    `warmup` fill the server up and count for no latency. If requests are turns of conversations, each user thinks
    before the next turn, `think_s` on average.
    """

    rate_per_s: float
    requests: int
    one_of: int = 1
    warmup: int = 0
    burstiness: float = 1.0
    think_s: float = 0.0


class Burst(Struct, frozen=True):
    """`requests` that all arrive at the start."""

    requests: int


class StaticBatch(Struct, frozen=True):
    """One batch of `sequences` that is prefilled whole and then decoded to its end; nothing joins or leaves."""

    sequences: int


# Requests of a closed loop per user: InferenceX's benchmark script sends ten (num_prompts = 10 x concurrency); the
# start-up burst is then a tenth of what the means count. Beyond 500 users of a replica 5,000 in all, but at least five
# for each user, so that the run stays under 50 ms.
REQUESTS_PER_USER = 10
_FEWEST_PER_USER, _MOST_OF_REPLICA = 5, 5_000
# With random arrivals, the share of requests that find nobody waiting is close to a server's idle share of time.
_SETTLED_SHARE = 0.05


def closed_loop(users: int, replicas: int) -> ClosedLoop:
    """The closed loop of `users` on equal `replicas`, with the requests that a benchmark sends, capped per replica."""
    each = max(_FEWEST_PER_USER, min(REQUESTS_PER_USER, _MOST_OF_REPLICA * replicas // users))
    return ClosedLoop(users, each * users)


Arrivals = ClosedLoop | OpenLoop | Burst | StaticBatch


class Lengths(Struct, frozen=True):
    """Tokens of a request, independently for input and output: uniform in [(1 - spread) x nominal, nominal].

    `stated`: the spread that a workload states; then the nominal lengths are the means, and no request has more than
    `most_tokens`, prompt and answer together.
    `prefixes`: what prompts share; turns and replayed requests have the stated lengths in order.
    """

    input_tokens: int
    output_tokens: int
    spread: float = 0.0
    stated: Spread | None = None
    most_tokens: int = int(2 * TOKENS.most)
    prefixes: SharedPrefixes | None = None

    @property
    def turns(self) -> int:
        """Turns of a conversation; 1 if requests are not turns."""
        return 1 if self.prefixes is None else self.prefixes.turns or 1

    @property
    def mean_share(self) -> float:
        """The mean length as a share of the nominal one."""
        return 1.0 if self.stated is not None else 1.0 - self.spread / 2.0

    @property
    def longest_input(self) -> int:
        """Tokens of the longest prompt."""
        return self.input_tokens if self.stated is None else min(self.stated.longest[0], self.most_tokens)

    @property
    def longest_request(self) -> int:
        """Tokens of the longest request, prompt and answer together."""
        if self.stated is None:
            return self.input_tokens + self.output_tokens
        return max(2, min(self.stated.longest_request, self.most_tokens))


class Statistics(Struct, frozen=True):
    """Mean and percentiles over requests, in seconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def constant(cls, seconds: float) -> Statistics:
        """Statistics of requests that all take `seconds`."""
        return cls(seconds, seconds, seconds, seconds, seconds)

    def shifted(self, seconds: float) -> Statistics:
        """Statistics of requests that each take `seconds` longer (if negative: shorter), but at least 0."""
        return Statistics(*(max(0.0, getattr(self, name) + seconds) for name in self.__struct_fields__))

    def in_ms(self) -> dict[Statistic, float]:
        """Each statistic by name, in milliseconds."""
        seconds: dict[Statistic, float] = {
            "mean": self.mean, "p50": self.p50, "p90": self.p90, "p95": self.p95, "p99": self.p99
        }  # fmt: skip
        return {name: 1e3 * value for name, value in seconds.items()}


class ServingTimes(Struct, frozen=True):
    """What the users of a deployment see under a load.

    `output_tokens_per_s` is that of the whole run over all replicas; `running` the mean number of requests in decode on
    all of them. `prefill_share` is the share of the time in which steps carry prompts. `preemptions` counts requests
    preempted for lack of cache. `without_line` is the share of an open loop's last third of requests before which
    nobody waited.
    If prompts share beginnings: the share of their tokens that caches had (`prefix_hit_share`), the share of all tokens
    that came from host memory (`host_hit_share`), and how much of its cache a scheduler has filled, in use or not, when
    a request comes (`cache_filled_share`).
    TPOT of a request is (end - first token) / (output tokens - 1); all 0 if answers have one token.
    """

    ttft: Statistics
    tpot: Statistics
    end_to_end: Statistics
    output_tokens_per_s: float
    makespan_s: float
    running: float
    prefill_share: float = 0.0
    preemptions: int = 0
    without_line: float = 1.0
    prefix_hit_share: float | None = None
    host_hit_share: float = 0.0
    cache_filled_share: float | None = None

    @property
    def saturated(self) -> bool:
        """Whether requests come faster than they are served, so that latencies grow with the length of the run."""
        return self.without_line == 0.0

    @property
    def is_settled(self) -> bool:
        """Whether a longer run would give the same `saturated`: often enough nobody waits."""
        return self.without_line >= _SETTLED_SHARE
