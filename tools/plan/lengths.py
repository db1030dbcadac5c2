"""How the requests of a workload vary, as data of the plan document: distributions of lengths, and arrivals.

`input_tokens` and `output_tokens` are the means beside them, which all closed forms use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from ..frozen import Frozen, Sparse
from ..input import bounds
from .quantiles import LEAST_PERCENT, MOST_PERCENT, Independent, Joint, Quantiles, fixed, of_histogram, of_percentiles

Tokens = Annotated[int, bounds.TOKENS.whole()]
Percent = Annotated[float, bounds.PERCENT.real()]
# Pairs of lengths that one workload holds: ten requests are above the 99th percentile.
MOST_PAIRS = 1000


Side = Literal["input", "output"]
_SIDES: tuple[Side, Side] = ("input", "output")
# A stated mean may be off by this share: people round, and a fitted tail is unlimited where ours is cut off.
_ROUNDED_SHARE = 0.05


def _scaled(tokens: int, factor: Fraction) -> int:
    return min(int(bounds.TOKENS.most), max(1, int(tokens * factor)))


def refused(reason: str) -> PydanticCustomError:
    """The error of a load whose fields contradict each other."""
    return PydanticCustomError("lengths", "{reason}", {"reason": reason})


class Percentiles(Frozen):
    """Lengths by percentiles, each as [percent, tokens]; log-normal between two of them."""

    percentiles: Annotated[tuple[tuple[Percent, Tokens], ...], Field(min_length=2, max_length=64)]

    @model_validator(mode="after")
    def _rise(self) -> Self:
        percents = [min(MOST_PERCENT, max(LEAST_PERCENT, percent)) for percent, _ in self.percentiles]
        if any(left >= right for left, right in pairwise(percents)):
            raise refused(f"percentiles must rise, and be {LEAST_PERCENT} to {MOST_PERCENT} but for 0 and 100")
        if any(less > more for (_, less), (_, more) in pairwise(self.percentiles)):
            raise refused("a higher percentile cannot be shorter")
        return self

    def quantiles(self) -> Quantiles:
        """Tokens by share of requests."""
        return of_percentiles(self.percentiles)

    def scaled(self, factor: Fraction) -> Percentiles:
        """Lengths multiplied by `factor`."""
        return Percentiles(
            percentiles=tuple((percent, _scaled(tokens, factor)) for percent, tokens in self.percentiles)
        )


class Histogram(Frozen):
    """Lengths by bins, each as [tokens up to, requests]: evenly within a bin, the first from one token on."""

    histogram: Annotated[
        tuple[tuple[Tokens, Annotated[float, bounds.WEIGHT.real()]], ...], Field(min_length=1, max_length=256)
    ]

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if any(less >= more for (less, _), (more, _) in pairwise(self.histogram)):
            raise refused("the ends of bins must rise")
        if sum(weight for _, weight in self.histogram) <= 0.0:
            raise refused("no bin holds a request")
        return self

    def quantiles(self) -> Quantiles:
        """Tokens by share of requests."""
        return of_histogram(self.histogram)

    def scaled(self, factor: Fraction) -> Histogram:
        """Lengths multiplied by `factor`; bins with the same end are merged."""
        bins: dict[int, float] = {}
        for tokens, weight in self.histogram:
            bins[_scaled(tokens, factor)] = bins.get(_scaled(tokens, factor), 0.0) + weight
        return Histogram(histogram=tuple(bins.items()))


class LogNormalFit(Frozen):
    """The median, and the deviation of the natural logarithm."""

    median_tokens: Tokens
    sigma: Annotated[float, bounds.SIGMA.real()]


class LogNormal(Frozen):
    """Lengths whose logarithm is normal."""

    log_normal: LogNormalFit

    def quantiles(self) -> Quantiles:
        """Tokens by share of requests."""
        median, sigma = self.log_normal.median_tokens, self.log_normal.sigma
        # The 84th percentile is one deviation above the median.
        return of_percentiles(((50.0, float(median)), (_ABOVE_PERCENT, median * math.exp(sigma))))

    def scaled(self, factor: Fraction) -> LogNormal:
        """Lengths multiplied by `factor`."""
        fit = self.log_normal
        return LogNormal(log_normal=LogNormalFit(median_tokens=_scaled(fit.median_tokens, factor), sigma=fit.sigma))


_ABOVE_PERCENT = 50.0 * (1.0 + math.erf(math.sqrt(0.5)))


def _kind(given: Any) -> str | None:
    """The distribution that is meant, by its field; `None` if unknown."""
    for kind in ("percentiles", "histogram", "log_normal"):
        if (kind in given) if isinstance(given, Mapping) else hasattr(given, kind):
            return kind
    return None


Distribution = Annotated[
    Annotated[Percentiles, Tag("percentiles")]
    | Annotated[Histogram, Tag("histogram")]
    | Annotated[LogNormal, Tag("log_normal")],
    Discriminator(
        _kind,
        custom_error_type="lengths",
        custom_error_message="lengths are percentiles, a histogram or a log_normal fit",
    ),
]


class RequestLengths(Sparse):
    """How lengths spread: of `input`, of `output`, each by itself, or of both in `pairs` of [input, output] tokens.

    A side that is not given is as long in all requests. `longest` is the longest request where pairs are a sample that
    does not hold it: servers have to take it.
    """

    input: Distribution | None = None
    output: Distribution | None = None
    pairs: Annotated[tuple[tuple[Tokens, Tokens], ...], Field(min_length=1, max_length=MOST_PAIRS)] | None = None
    longest: tuple[Tokens, Tokens] | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        is_split = self.input is not None or self.output is not None
        if is_split == (self.pairs is not None):
            raise refused("lengths are those of input or output, or pairs of both")
        if self.longest is not None and (self.pairs is None or sum(self.longest) < max(map(sum, self.pairs))):
            raise refused("longest is the longest request of which pairs are a sample")
        return self

    def covers(self, side: Side) -> bool:
        """Whether the distribution of that side's lengths is stated."""
        return self.pairs is not None or getattr(self, side) is not None

    def without(self, side: Side) -> RequestLengths | None:
        """The lengths of the other side, if they are stated separately."""
        other: Side = "output" if side == "input" else "input"
        remaining = getattr(self, other)
        return None if remaining is None else RequestLengths(**{other: remaining})

    def scaled(self, side: Side, factor: Fraction) -> RequestLengths:
        """The same lengths with those of one side multiplied by `factor`."""
        if self.pairs is None:
            distribution: Distribution | None = getattr(self, side)
            return self if distribution is None else self.model_copy(update={side: distribution.scaled(factor)})
        is_input = side == "input"
        known = self.pairs if self.longest is None else (*self.pairs, self.longest)
        pairs = [
            (_scaled(prompt, factor), answer) if is_input else (prompt, _scaled(answer, factor))
            for prompt, answer in known
        ]
        if self.longest is None:
            return RequestLengths(pairs=tuple(pairs))
        return RequestLengths(pairs=tuple(pairs[:-1]), longest=max(pairs, key=sum))

    def within(self, tokens: int) -> RequestLengths | None:
        """The pairs of at most `tokens` in total, which a server of the model accepts; `None` if there are none."""
        pairs = tuple(pair for pair in self.pairs or () if sum(pair) <= tokens)
        return RequestLengths(pairs=pairs) if pairs else None

    def __str__(self) -> str:
        """The quantiles of each side, in words."""
        spread = self.spread(1, 1)
        figures = zip(_SIDES, spread.at(0.5), spread.at(0.95), spread.longest, strict=True)
        words = {side: f"{side} p50 {half:,}, p95 {high:,}, at most {most:,}" for side, half, high, most in figures}
        return "; ".join(words[side] for side in _SIDES if self.covers(side))

    def spread(self, input_tokens: int, output_tokens: int) -> Independent | Joint:
        """The distribution that a simulation draws from; a side that is not stated has the given tokens."""
        if self.pairs is not None:
            return Joint(self.pairs, self.longest)
        return Independent(
            fixed(input_tokens) if self.input is None else self.input.quantiles(),
            fixed(output_tokens) if self.output is None else self.output.quantiles(),
        )

    def check_beside(self, stated: Mapping[str, Any]) -> None:
        """Check that the lengths have the `stated` means, and that no range is stated for a side that they cover.

        Raises PydanticCustomError: the means differ, or there is such a range.
        """
        spread = self.spread(stated["input_tokens"], stated["output_tokens"])
        for side, mean in zip(_SIDES, spread.means, strict=True):
            name, tokens = f"{side}_tokens", stated[f"{side}_tokens"]
            if abs(tokens - mean) > max(1.0, _ROUNDED_SHARE * mean):
                raise refused(f"{name} is {tokens:,}, but these lengths have a mean of {mean:,.0f}; state the mean")
            if stated.get(f"{name}_range") is not None and self.covers(side):
                raise refused(f"{name}_range is stated beside lengths of the {side}; leave one out")


class Arrivals(Sparse):
    """How requests come where they do not come at random, or users do not send the next at once.

    `burstiness` is the shape of the gamma distribution of gaps at a stated request rate: 1 is Poisson, less comes in
    bursts, more comes evenly. `think_time_s` is what users wait on average before their next request: those of a closed
    loop, and those of conversations between two turns.
    """

    burstiness: Annotated[float, bounds.BURSTINESS.real()] | None = None
    think_time_s: Annotated[float, bounds.THINK_S.real()] | None = None

    def __str__(self) -> str:
        """What is stated, in words."""
        return ", ".join(f"{name} {value:g}" for name, value in self if value is not None)

    def check_beside(self, stated: Mapping[str, Any]) -> None:
        """Check that burstiness is of a `stated` rate, and a time to think of users who wait, or of turns.

        Raises PydanticCustomError: one has no meaning.
        """
        has_rate, prefixes = stated["request_rate"] is not None, stated.get("prefixes")
        if self.burstiness is not None and not has_rate:
            raise refused("burstiness is of requests that come at a rate; state request_rate")
        if self.think_time_s is not None and has_rate and (prefixes is None or prefixes.turns is None):
            raise refused("think_time_s is of users who wait for their answers; leave request_rate out")
