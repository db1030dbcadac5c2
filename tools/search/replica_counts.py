"""The replicas of a strategy as numbers that go up and down, the layout of each staying as it is."""

from __future__ import annotations

from ..plan.document import Strategy
from ..plan.placement import gpu_count, is_disaggregated

# Replicas that serve both phases, or those of prefill and those of decode.
Counts = tuple[int, ...]


def counts_of(strategy: Strategy) -> Counts:
    """The replicas of a strategy."""
    if is_disaggregated(strategy):
        return strategy.prefill.replicas or 1, strategy.decode.replicas or 1
    return (strategy.dp,)


def with_counts(strategy: Strategy, counts: Counts) -> Strategy:
    """The strategy with so many replicas."""
    if len(counts) == 2:
        sides = zip(("prefill", "decode"), counts, strict=True)
        update = {name: getattr(strategy, name).model_copy(update={"replicas": count}) for name, count in sides}
        found = strategy.model_copy(update={**update, "dp": sum(counts)})
    else:
        found = strategy.model_copy(update={"dp": counts[0]})
    return found.model_copy(update={"gpu_count": gpu_count(found)})


def one_of_each(strategy: Strategy) -> Strategy:
    """One replica of it, or one of each side: its layout."""
    return with_counts(strategy, (1,) * len(counts_of(strategy)))
