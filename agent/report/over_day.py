"""A day of a plan: replicas by the hour, what scaling saves, what the reserve covers and what is not in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...tools.plan.rate_curve import clock
from .text import NONE, Bullets, Column, Section, Table, bytes_text, figure, ms_of, section

if TYPE_CHECKING:
    from ...tools.search.day import DayCost, DayStep, OverDay

# A day with more steps than these shows neighbours with the same replicas as one.
_ROWS = 24
_LEAST_GAIN = 0.005


def day_section(day: OverDay) -> Section:
    """The section of the day in the report of a plan."""
    notes = Bullets((*_too_many(day), _saved(day), *_layouts(day), _autoscaler(day), _not_in(day)))
    return section("Over the day", f"Rate curve, {day.curve}", _what_holds(day), _table(day), notes)


def day_lines(day: OverDay | None, gpus: int) -> Iterator[str]:
    """Where the day differs from the plan: another layout takes less, or the peak takes more GPUs with its reserve."""
    if day is None:
        return
    most, best = max(day.steps, key=lambda step: step.gpus), day.layouts[0]
    if best.layout != day.layout:
        yield (
            f"Over the day {best.layout} takes less: {_hours(best.cost)} against {_hours(day.scaled)} of {day.layout}, "
            "the layout of the plan, which is the better one at the peak"
        )
    if most.gpus > gpus:
        takes = f"{most.gpus} GPUs ({_replicas(most)} replicas)"
        yield f"With headroom and reserve the peak of the day takes {takes}, as told below"


def _replicas(step: DayStep) -> str:
    return str(step.replicas) if step.prefill_replicas is None else f"{step.prefill_replicas}+{step.replicas}"


def _what_holds(day: OverDay) -> str:
    limits = "the rate (no TTFT or TPOT is limited)"
    if day.limits:
        limits = f"every limit ({', '.join(dict.fromkeys(day.limits))})"
    load = f"at {day.headroom_share:.0%} more than the rate" if day.headroom_share else "at the rate"
    if not day.reserve_replicas:
        return f"The replicas of each hour hold {limits} {load}, with none in reserve: a lost one is missed"
    each = " on each side" if _is_apart(day.steps) else ""
    lost = f"with {day.reserve_replicas} lost{each} (N+{day.reserve_replicas})"
    return f"The replicas of each hour hold {limits} {load} {lost}; the table shows all of them at the rate itself"


def _too_many(day: OverDay) -> list[str]:
    """A line that the named hardware is too small for the peak and its reserve."""
    most = max(step.gpus for step in day.steps)
    if day.gpus_named is None or most <= day.gpus_named:
        return []
    return [f"The peak takes {most} GPUs with its headroom and reserve, more than the {day.gpus_named} that were named"]


def _is_apart(steps: Sequence[DayStep]) -> bool:
    return any(step.prefill_replicas is not None for step in steps)


def _table(day: OverDay) -> Table:
    is_billed = any(step.billed_gpus != step.gpus for step in day.steps)
    columns = [
        Column("from-to"),
        *Column.of_figures("requests/s", "replicas", "GPUs"),
        *([Column("billed", figures=True)] if is_billed else []),
        *Column.of_figures("TTFT p95", "TPOT p95"),
    ]
    rows = tuple(
        (
            f"{clock(step.begins_h)}-{clock(step.ends_h)}",
            figure(step.requests_per_s),
            _replicas(step),
            str(step.gpus),
            *([str(step.billed_gpus)] if is_billed else []),
            ms_of(step.ttft_p95_ms),
            ms_of(step.tpot_p95_ms),
        )
        for step in _merged_steps(day.steps)
    )
    return Table(tuple(columns), rows)


def _merged_steps(steps: Sequence[DayStep]) -> list[DayStep]:
    """The steps; of many, neighbours with the same replicas as one, with the figures of the busiest."""
    if len(steps) <= _ROWS:
        return list(steps)
    merged: list[DayStep] = []
    for step in steps:
        last = merged[-1] if merged else None
        if last is None or (last.replicas, last.prefill_replicas) != (step.replicas, step.prefill_replicas):
            merged.append(step)
            continue
        busiest = max(last, step, key=lambda row: row.requests_per_s)
        merged[-1] = busiest.model_copy(update={"begins_h": last.begins_h, "ends_h": step.ends_h})
    return merged


def _saved(day: OverDay) -> str:
    always, scaled = day.at_peak_all_day, day.scaled
    text = (
        f"{_hours(scaled)} a day against {_hours(always)} with the peak's replicas all day: {day.freed_share:.0%} less"
    )
    if abs(day.saved_share - day.freed_share) > _LEAST_GAIN:
        text += f", of those billed {day.saved_share:.0%}"
    if scaled.usd is None or always.usd is None:
        return f"{text}; what that costs is not known: no price of a GPU hour is catalogued or stated"
    return f"{text}; {_usd(scaled)} against {_usd(always)} USD a day; price: {day.price_source}"


def _hours(cost: DayCost) -> str:
    text, billed = f"{figure(cost.gpu_hours)} GPU-hours", figure(cost.billed_gpu_hours)
    return text if cost.billed_gpu_hours == cost.gpu_hours else f"{text} ({billed} billed, whole nodes)"


def _usd(cost: DayCost) -> str:
    if cost.usd is None:
        return NONE
    low, high = (figure(price) for price in cost.usd)
    return low if low == high else f"{low}–{high}"


def _layouts(day: OverDay) -> list[str]:
    """The GPU-hours of the plan's layout beside the others that were sized, and beside the best of each hour."""
    if len(day.layouts) < 2:
        return ["No other layout was sized: whether another takes fewer GPU-hours is not known"]
    scaled = day.scaled
    others = ", ".join(f"{row.layout} {_hours(row.cost)}" for row in day.layouts if row.layout != day.layout)
    hour = day.best_of_each_hour
    each = "no fewer"
    if 1.0 - hour.gpu_hours / scaled.gpu_hours > _LEAST_GAIN or hour.billed_gpu_hours < scaled.billed_gpu_hours:
        each = f"{_hours(hour)}, {1.0 - hour.gpu_hours / scaled.gpu_hours:.0%} less"
    return [f"One layout for all hours: {day.layout} {_hours(scaled)}, {others}; the best of them in each hour {each}"]


def _autoscaler(day: OverDay) -> str:
    counts = [step.replicas for step in day.steps]
    is_apart = _is_apart(day.steps)
    kind = "decode replica" if is_apart else "replica"
    reserve = f" and {day.reserve_replicas} in reserve" if day.reserve_replicas else ""
    return (
        f"Set an autoscaler (HPA, KEDA, a planner) to one {kind} for every {figure(day.target_per_s_each)} requests/s "
        f"that come, rounded up{reserve}, at least {min(counts)} and at most {max(counts)}: that is never fewer than "
        f"the table has{'; prefill replicas go by the table' if is_apart else ''}"
    )


def _not_in(day: OverDay) -> str:
    weights = bytes_text(day.weights_bytes_per_replica)
    is_of_parts = day.gpus_named is None and day.scaled.billed_gpu_hours == day.scaled.gpu_hours
    machines = "; nor whether machines of just these GPUs, which are billed, can be had by the hour" * is_of_parts
    return (
        f"Not in it: how long a replica takes to start (its {weights} of weights to load, the engine's start-up): it "
        f"has to be there when the hour begins; nor requests that are cut off when one stops{machines}"
    )
