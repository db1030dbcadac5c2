"""How sure the figures of an evaluation are: shares with confidence intervals, repeats, and two runs compared in pairs.

Cases of one family stand or fall together, so that intervals are clustered by family: the standard error is the
cluster-robust one of a mean, the interval Student's t with a degree of freedom less than there are families (Liang and
Zeger 1986; Cameron and Miller 2015). Where all families came out alike no variance can be estimated: there the
exact interval of Clopper and Pearson (1934) holds, with the families as trials; for differences of shares, which lie
between -1 and 1, it is twice as wide, so that it leaves zero out where the sign test does.
pass@k and pass^k are the unbiased estimators over epochs (Chen et al. 2021, arXiv 2107.03374, and its counterpart for
all of k).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from .results import FINAL, CaseResult, Rate

CONFIDENCE = 0.95
# Sums of differences from a mean that are nothing but the rounding of its digits.
_ROUNDING = 1e-9


def case_means(results: Iterable[CaseResult], rung: str, stage: str = FINAL) -> dict[str, float]:
    """Of each case that a rung applies to, the share of its epochs in which it was passed."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for one in results:
        passed = one.passed(rung, stage)
        if passed is not None:
            marks[one.id].append(passed)
    return {case: sum(found) / len(found) for case, found in marks.items()}


def rate(results: Sequence[CaseResult], rung: str, stage: str = FINAL) -> Rate | None:
    """The share of cases that pass a rung at a stage; `None` where it applies to none."""
    means = case_means(results, rung, stage)
    if not means:
        return None
    families = {one.id: one.family for one in results}
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

    The order of the values changes nothing.
    """
    mean = math.fsum(values.values()) / len(values)
    clusters: dict[str, list[float]] = defaultdict(list)
    for case, value in values.items():
        clusters[families[case]].append(value - mean)
    sums = [math.fsum(found) for found in clusters.values()]
    count = len(sums)
    if count < 2 and len(set(values.values())) > 1:
        return mean, *bounds
    if max(map(abs, sums)) < _ROUNDING:
        return mean, *_exact(mean, count, confidence, bounds)
    # The t distribution is imported where it is needed: SciPy takes a while to load.
    from scipy.stats import t

    variance = count / (count - 1) * math.fsum(one * one for one in sums) / len(values) ** 2
    reach = float(t.ppf(0.5 + confidence / 2, count - 1)) * math.sqrt(variance)
    return mean, *_within(mean, reach, bounds)


def _exact(mean: float, trials: int, confidence: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The interval where all of `trials` came out alike: at a bound one side is exact and the other is the mean."""
    reach = 1.0 - ((1.0 - confidence) / 2) ** (1.0 / trials)
    return _within(mean, reach * (bounds[1] - bounds[0]), bounds)


def _within(mean: float, reach: float, bounds: tuple[float, float]) -> tuple[float, float]:
    return max(bounds[0], mean - reach), min(bounds[1], mean + reach)


def pass_at_k(passed: int, epochs: int, k: int) -> float:
    """How likely at least one of `k` epochs passes, where `passed` of `epochs` did."""
    return 1.0 - math.comb(epochs - passed, k) / math.comb(epochs, k)


def pass_hat_k(passed: int, epochs: int, k: int) -> float:
    """How likely all of `k` epochs pass, where `passed` of `epochs` did."""
    return math.comb(passed, k) / math.comb(epochs, k)


def over_epochs(
    results: Sequence[CaseResult], has_passed: Callable[[CaseResult], bool], k: int
) -> tuple[float, float] | None:
    """The mean pass@k and pass^k over cases; `None` where a case has fewer than `k` epochs."""
    marks: dict[str, list[bool]] = defaultdict(list)
    for one in results:
        marks[one.id].append(has_passed(one))
    if not marks or any(len(found) < k for found in marks.values()):
        return None
    at_least = [pass_at_k(sum(found), len(found), k) for found in marks.values()]
    all_of = [pass_hat_k(sum(found), len(found), k) for found in marks.values()]
    return math.fsum(at_least) / len(marks), math.fsum(all_of) / len(marks)
