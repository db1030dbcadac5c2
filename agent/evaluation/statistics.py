"""How sure the figures of an evaluation are: shares with confidence intervals, repeats, and two runs compared in pairs.

Cases of one family stand or fall together, so that intervals are clustered by family: the standard error is the
cluster-robust one of a mean, the interval Student's t with a degree of freedom less than there are families (Liang and
Zeger 1986; Cameron and Miller 2015). Where all cases came out alike no variance can be estimated: there the
exact interval of Clopper and Pearson (1934) holds, with the families as trials.
pass@k and pass^k are the unbiased estimators over epochs (Chen et al. 2021, arXiv 2107.03374, and its counterpart for
all of k).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from .results import FINAL, CaseResult, Rate

CONFIDENCE = 0.95


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
        low=max(0.0, low),
        high=min(1.0, high),
        n=len(means),
        families=len({families[case] for case in means}),
    )


def interval(
    values: Mapping[str, float], families: Mapping[str, str], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """The mean of `values` by case, and its interval, clustered by family."""
    mean = sum(values.values()) / len(values)
    clusters: dict[str, float] = defaultdict(float)
    for case, value in values.items():
        clusters[families[case]] += value - mean
    count = len(clusters)
    if all(value == mean for value in values.values()):
        return mean, *_exact(mean, count, confidence)
    if count < 2:
        return mean, -math.inf, math.inf
    # The t distribution is imported where it is needed: SciPy takes a while to load.
    from scipy.stats import t

    variance = count / (count - 1) * sum(sum_ * sum_ for sum_ in clusters.values()) / len(values) ** 2
    reach = float(t.ppf(0.5 + confidence / 2, count - 1)) * math.sqrt(variance)
    return mean, mean - reach, mean + reach


def _exact(mean: float, trials: int, confidence: float) -> tuple[float, float]:
    """The interval where all of `trials` came out alike: one side is exact, the other is the mean."""
    reach = 1.0 - ((1.0 - confidence) / 2) ** (1.0 / trials)
    return (mean - reach if mean > 0 else mean), (mean + reach if mean < 1 else mean)


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
    return sum(at_least) / len(marks), sum(all_of) / len(marks)
