"""Scores of predictions, wherever they come from, against the rows that were measured.

Groups are weighted equally: a source with thousands of rows of one deployment counts no more than one with three.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..calibration.error_ranges import LOW_CONCURRENCY
from .ordering import order_scores, scaling_scores
from .scores import FAMILIES, Errors, Family, FamilyScore, GroupScore, Judged, Scores, error_pct
from .table import MeasuredRow

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
    """What one group is: source, model, GPU and layout; families are told apart beside it."""
    return (row.source, row.model, row.gpu, *(str(degree or "") for degree in (row.tp, row.ep, row.dp, row.pp)))


def judged(
    rows: Sequence[MeasuredRow], predictions: Sequence[float | None], yardstick: Sequence[float | None] | None = None
) -> tuple[Judged, ...]:
    """The rows that have a prediction, with their families."""
    found: list[Judged] = []
    beside = yardstick or [None] * len(rows)
    for row, predicted, roofline in zip(rows, predictions, beside, strict=True):
        family = family_of(row)
        if family is not None and predicted is not None:
            found.append(Judged(row, family, predicted, roofline))
    return tuple(found)


def score(
    rows: Sequence[MeasuredRow], predictions: Sequence[float | None], yardstick: Sequence[float | None] | None = None
) -> Scores:
    """Score `predictions`, one for each row (`None`: not modelled), beside a yardstick's."""
    found = judged(rows, predictions, yardstick)
    return Scores(
        families=_families("all", found),
        tiers=_split(found, lambda row: f"tier {row.tier}" if row.tier else "no tier"),
        sources=_split(found, lambda row: row.source),
        metrics=_split(found, lambda row: row.metric),
        groups=tuple(_group(members) for members in _grouped(found).values()),
        order=order_scores(found),
        scaling=scaling_scores(found),
    )


def _split(found: Sequence[Judged], name_of: Callable[[MeasuredRow], str]) -> tuple[FamilyScore, ...]:
    parts: dict[str, list[Judged]] = {}
    for one in found:
        parts.setdefault(name_of(one.row), []).append(one)
    return tuple(family for name in sorted(parts) for family in _families(name, parts[name]))


def _families(of: str, found: Sequence[Judged]) -> tuple[FamilyScore, ...]:
    scores: list[FamilyScore] = []
    for family in FAMILIES:
        members = [one for one in found if one.family == family]
        groups = list(_grouped(members).values())
        if groups:
            model = errors([[one.error_pct for one in group] for group in groups])
            scores.append(
                FamilyScore(
                    of=of, family=family, groups=len(groups), rows=len(members), model=model, roofline=_roofline(groups)
                )
            )
    return tuple(scores)


def _roofline(groups: Iterable[Sequence[Judged]]) -> Errors | None:
    signed = [[error_pct(one.roofline, one.row.value) for one in group if one.roofline is not None] for group in groups]
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


def _grouped(found: Iterable[Judged]) -> dict[tuple[str, ...], list[Judged]]:
    groups: dict[tuple[str, ...], list[Judged]] = {}
    for one in found:
        groups.setdefault((one.family, *group_of(one.row)), []).append(one)
    return groups


def _group(members: Sequence[Judged]) -> GroupScore:
    source, model, gpu, tp, ep, dp, pp = group_of(members[0].row)
    signed = [one.error_pct for one in members]
    return GroupScore(
        family=members[0].family,
        source=source, model=model, gpu=gpu, tp=tp, ep=ep, dp=dp, pp=pp,
        rows=len(members),
        error_pct=statistics.median(abs(error) for error in signed),
        bias_pct=statistics.median(signed),
    )  # fmt: skip
