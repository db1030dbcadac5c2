"""Scores predictions, wherever they come from, against measured rows; and whether they rank layouts as measurements do.

Groups are weighted equally: a source with thousands of rows of one deployment counts no more than one with three.

Orders and speedups compare only what one source measured of one model on one kind of GPU under one load.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

from ..calibration.error_ranges import LOW_CONCURRENCY
from ..search.strategy_rows import REPEAT_SHARE
from .scores import (
    FAMILIES,
    Errors,
    Family,
    FamilyScore,
    GroupScore,
    Judged,
    OrderScore,
    ScalingScore,
    Scores,
    error_pct,
)
from .table import Degree, MeasuredRow

_FAMILIES: Mapping[str, Family] = {
    "tpot_ms": "tpot", "itl_ms": "tpot", "e2e_latency_ms": "e2e", "output_tok_s_total": "throughput",
    "output_tok_s_per_gpu": "throughput", "total_tok_s": "throughput", "total_tok_s_per_gpu": "throughput",
}  # fmt: skip


def family_of(row: MeasuredRow) -> Family | None:
    """The family that the row's metric is scored in; TTFT by how many requests are in flight."""
    if row.metric == "ttft_ms":
        return "ttft-low" if row.load.isdigit() and int(row.load) <= LOW_CONCURRENCY else "ttft-load"
    return _FAMILIES.get(row.metric)


def group_of(row: MeasuredRow) -> tuple[str, ...]:
    """The group of a row within its family: source, model, GPU and layout."""
    return (row.source, row.model, row.gpu, *(str(degree or "") for degree in (row.tp, row.ep, row.dp, row.pp)))


def judged(
    rows: Sequence[MeasuredRow], predictions: Sequence[float | None], yardstick: Sequence[float | None] | None = None
) -> tuple[Judged, ...]:
    """The rows that have a prediction, with their families."""
    scored: list[Judged] = []
    rooflines = yardstick or [None] * len(rows)
    for row, predicted, roofline in zip(rows, predictions, rooflines, strict=True):
        family = family_of(row)
        if family is not None and predicted is not None:
            scored.append(Judged(row, family, predicted, roofline))
    return tuple(scored)


def score(
    rows: Sequence[MeasuredRow], predictions: Sequence[float | None], yardstick: Sequence[float | None] | None = None
) -> Scores:
    """Score `predictions`, one for each row (`None`: not modelled), beside a yardstick's."""
    scored = judged(rows, predictions, yardstick)
    return Scores(
        families=_families("all", scored),
        tiers=_split(scored, lambda row: f"tier {row.tier}" if row.tier else "no tier"),
        sources=_split(scored, lambda row: row.source),
        metrics=_split(scored, lambda row: row.metric),
        groups=tuple(_group(members) for members in _grouped(scored).values()),
        order=order_scores(scored),
        scaling=scaling_scores(scored),
    )


def _split(scored: Sequence[Judged], name_of: Callable[[MeasuredRow], str]) -> tuple[FamilyScore, ...]:
    parts: dict[str, list[Judged]] = {}
    for case in scored:
        parts.setdefault(name_of(case.row), []).append(case)
    return tuple(family for name in sorted(parts) for family in _families(name, parts[name]))


def _families(of: str, scored: Sequence[Judged]) -> tuple[FamilyScore, ...]:
    scores: list[FamilyScore] = []
    for family in FAMILIES:
        members = [case for case in scored if case.family == family]
        groups = list(_grouped(members).values())
        if groups:
            model = errors([[case.error_pct for case in group] for group in groups])
            scores.append(
                FamilyScore(
                    of=of, family=family, groups=len(groups), rows=len(members), model=model, roofline=_roofline(groups)
                )
            )
    return tuple(scores)


def _roofline(groups: Iterable[Sequence[Judged]]) -> Errors | None:
    signed = [
        [error_pct(case.roofline, case.row.value) for case in group if case.roofline is not None] for group in groups
    ]
    known = [group for group in signed if group]
    return errors(known) if known else None


def errors(groups: Sequence[Sequence[float]]) -> Errors:
    """Errors over groups of signed errors in percent, none of them empty, each group by its medians."""
    absolute = [statistics.median(abs(error) for error in group) for group in groups]
    return Errors(
        median_pct=statistics.median(absolute),
        p90_pct=quantile(absolute, 0.9),
        bias_pct=statistics.median(statistics.median(group) for group in groups),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile of `values` (one at least), linear between the two nearest."""
    ranked = sorted(values)
    place = share * (len(ranked) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (place - low) * (ranked[high] - ranked[low])


def _grouped(scored: Iterable[Judged]) -> dict[tuple[str, ...], list[Judged]]:
    groups: dict[tuple[str, ...], list[Judged]] = {}
    for case in scored:
        groups.setdefault((case.family, *group_of(case.row)), []).append(case)
    return groups


def _group(members: Sequence[Judged]) -> GroupScore:
    source, model, gpu, tp, ep, dp, pp = group_of(members[0].row)
    signed = [case.error_pct for case in members]
    return GroupScore(
        family=members[0].family,
        source=source, model=model, gpu=gpu, tp=tp, ep=ep, dp=dp, pp=pp,
        rows=len(members),
        error_pct=statistics.median(abs(error) for error in signed),
        bias_pct=statistics.median(signed),
    )  # fmt: skip


_TP_STEPS = ((1, 2), (2, 4), (4, 8))
_ONE = Degree(1, 1)

# What all layouts of a set share, and the layout itself.
_Key = tuple[str, ...]
Sets = dict[_Key, dict[_Key, list[Judged]]]


def _sets(scored: Iterable[Judged], *, on_as_many_gpus: bool = False) -> Sets:
    """Sets of two or more layouts; with `on_as_many_gpus`, a set for each number of GPUs."""
    sets: Sets = {}
    for case in scored:
        key = (*case.row.question, str(case.row.gpus)) if on_as_many_gpus else case.row.question
        sets.setdefault(key, {}).setdefault(case.row.layout, []).append(case)
    return {key: layouts for key, layouts in sets.items() if len(layouts) > 1}


def order_scores(scored: Sequence[Judged]) -> tuple[OrderScore, ...]:
    """Kendall's tau over all sets, over layouts of as many GPUs, and over each family; sets weighted equally.

    More GPUs are nearly always faster; which of the layouts on the same ones is best is what a search decides.
    """
    parts: dict[str, Sets] = {"all": _sets(scored), "on as many GPUs": _sets(scored, on_as_many_gpus=True)}
    parts |= {family: _sets(case for case in scored if case.family == family) for family in FAMILIES}
    scores: list[OrderScore] = []
    for of, sets in parts.items():
        taus = [tau for layouts in sets.values() if (tau := _tau_of(layouts, roofline=False)) is not None]
        roofline_taus = [tau for layouts in sets.values() if (tau := _tau_of(layouts, roofline=True)) is not None]
        if taus:
            mean = statistics.fmean(roofline_taus) if roofline_taus else None
            scores.append(OrderScore(of=of, sets=len(taus), tau=statistics.fmean(taus), roofline_tau=mean))
    return tuple(scores)


def _tau_of(layouts: Mapping[_Key, Sequence[Judged]], *, roofline: bool) -> float | None:
    pairs: list[tuple[float, float]] = []
    for members in layouts.values():
        guesses = [case.roofline if roofline else case.predicted for case in members]
        known = [guess for guess in guesses if guess is not None]
        if known:
            pairs.append((statistics.fmean(case.row.value for case in members), statistics.fmean(known)))
    return kendall_tau(pairs)


def kendall_tau(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Kendall's tau of (measured, predicted): concordant less discordant pairs over all that the measurement orders.

    `None` where it orders none: figures within 2% of each other are a tie.
    """
    total = agreeing = 0
    for (measured, predicted), (other, other_predicted) in combinations(pairs, 2):
        if abs(measured - other) <= REPEAT_SHARE * max(measured, other):
            continue
        total += 1
        product = (measured - other) * (predicted - other_predicted)
        agreeing += (product > 0.0) - (product < 0.0)
    return agreeing / total if total else None


def scaling_scores(scored: Sequence[Judged]) -> tuple[ScalingScore, ...]:
    """What TP 1 to 2, 2 to 4 and 4 to 8 gain, for each family."""
    scores: list[ScalingScore] = []
    for family in FAMILIES:
        sets = _sets(case for case in scored if case.family == family and _is_plain(case))
        for step in _TP_STEPS:
            ratios: dict[_Key, list[tuple[float, float]]] = {}
            for key, layouts in sets.items():
                if (speedups := _speedup(layouts, step, larger_is_better=family == "throughput")) is not None:
                    # One group: source, model and GPU, over all loads.
                    ratios.setdefault((key[0], key[3], key[4]), []).append(speedups)
            if ratios:
                groups = list(ratios.values())
                scores.append(
                    ScalingScore(
                        family=family,
                        from_tp=step[0],
                        to_tp=step[1],
                        groups=len(groups),
                        measured_speedup=statistics.median(statistics.median(m for m, _ in group) for group in groups),
                        predicted_speedup=statistics.median(statistics.median(p for _, p in group) for group in groups),
                        error_pct=statistics.median(
                            statistics.median(abs(100.0 * (p / m - 1.0)) for m, p in group) for group in groups
                        ),
                    )
                )
    return tuple(scores)


def _is_plain(case: Judged) -> bool:
    """Whether TP is the only degree above 1."""
    row = case.row
    return all(degree in (None, _ONE) for degree in (row.pp, row.ep, row.dp)) and not row.disaggregated


def _speedup(
    layouts: Mapping[_Key, Sequence[Judged]], step: tuple[int, int], *, larger_is_better: bool
) -> tuple[float, float] | None:
    by_tp = {case.row.tp.decode: members for members in layouts.values() for case in members if case.row.tp is not None}
    if step[0] not in by_tp or step[1] not in by_tp:
        return None
    narrow, wide = by_tp[step[0]], by_tp[step[1]]
    measured = statistics.fmean(case.row.value for case in narrow) / statistics.fmean(case.row.value for case in wide)
    predicted = statistics.fmean(case.predicted for case in narrow) / statistics.fmean(case.predicted for case in wide)
    return (1.0 / measured, 1.0 / predicted) if larger_is_better else (measured, predicted)
