"""The confidence of an evaluation's figures: intervals of shares, repeats, and paired comparison of two runs.

Cases of one family stand or fall together, so intervals are clustered by family: the standard error is the
cluster-robust one of a mean, the interval Student's t with one degree of freedom less than there are families (Liang
and Zeger 1986; Cameron and Miller 2015). If all families are alike, no variance can be estimated: the exact interval
of Clopper and Pearson (1934) applies, with families as trials; for differences of shares, which lie between -1 and 1,
it is twice as wide, so that it excludes zero where the sign test does.
pass@k and pass^k are the unbiased estimators over epochs (Chen et al. 2021, arXiv 2107.03374, and its counterpart for
all of k).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from .results import FINAL, CaseResult, Rate

CONFIDENCE = 0.95
# Sums of deviations below this are rounding.
_ROUNDING = 1e-9


def case_means(results: Iterable[CaseResult], rung: str, stage: str = FINAL) -> dict[str, float]:
    """Of each case that a rung applies to, the share of epochs that passed it."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        passed = result.passed(rung, stage)
        if passed is not None:
            marks[result.id].append(passed)
    return {case: sum(passes) / len(passes) for case, passes in marks.items()}


def rate(results: Sequence[CaseResult], rung: str, stage: str = FINAL) -> Rate | None:
    """The share of cases that pass a rung at a stage; `None` if it applies to none."""
    means = case_means(results, rung, stage)
    if not means:
        return None
    families = {result.id: result.family for result in results}
    mean, low, high = interval(means, families)
    return Rate(
        rate=mean,
        low=low,
        high=high,
        n=len(means),
        families=len({families[case] for case in means}),
    )


def interval(
    values: Mapping[str, float],
    families: Mapping[str, str],
    confidence: float = CONFIDENCE,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float, float]:
    """The mean of `values` by case, and its interval, clustered by family; all values lie within `bounds`.

    The order of the values does not matter.
    """
    mean = math.fsum(values.values()) / len(values)
    clusters: dict[str, list[float]] = defaultdict(list)
    for case, value in values.items():
        clusters[families[case]].append(value - mean)
    sums = [math.fsum(deviations) for deviations in clusters.values()]
    count = len(sums)
    if count < 2 and len(set(values.values())) > 1:
        return mean, *bounds
    if max(map(abs, sums)) < _ROUNDING:
        return mean, *_exact(mean, count, confidence, bounds)
    # Imported on use: SciPy takes a while to load.
    from scipy.stats import t

    variance = count / (count - 1) * math.fsum(total * total for total in sums) / len(values) ** 2
    reach = float(t.ppf(0.5 + confidence / 2, count - 1)) * math.sqrt(variance)
    return mean, *_within(mean, reach, bounds)


def _exact(mean: float, trials: int, confidence: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval if all `trials` are alike: at a bound, one side is exact and the other is the mean."""
    reach = 1.0 - ((1.0 - confidence) / 2) ** (1.0 / trials)
    return _within(mean, reach * (bounds[1] - bounds[0]), bounds)


def _within(mean: float, reach: float, bounds: tuple[float, float]) -> tuple[float, float]:
    return max(bounds[0], mean - reach), min(bounds[1], mean + reach)


def pass_at_k(passed: int, epochs: int, k: int) -> float:
    """The probability that at least one of `k` epochs passes, if `passed` of `epochs` did."""
    return 1.0 - math.comb(epochs - passed, k) / math.comb(epochs, k)


def pass_hat_k(passed: int, epochs: int, k: int) -> float:
    """The probability that all of `k` epochs pass, if `passed` of `epochs` did."""
    return math.comb(passed, k) / math.comb(epochs, k)


def over_epochs(
    results: Sequence[CaseResult], has_passed: Callable[[CaseResult], bool], k: int
) -> tuple[float, float] | None:
    """The mean pass@k and pass^k over cases; `None` if a case has fewer than `k` epochs."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        marks[result.id].append(has_passed(result))
    if not marks or any(len(passes) < k for passes in marks.values()):
        return None
    at_least = [pass_at_k(sum(passes), len(passes), k) for passes in marks.values()]
    all_of = [pass_hat_k(sum(passes), len(passes), k) for passes in marks.values()]
    return math.fsum(at_least) / len(marks), math.fsum(all_of) / len(marks)
