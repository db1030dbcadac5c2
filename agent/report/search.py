"""The report of `search`: the best strategy, those behind it, the Pareto front, and why each other family lost.

Where nothing holds the limits it says what binds, how near one can come, and what hardware would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools.plan.latency_limits import LATENCY_LIMITS
from ..languages.say import say
from .estimate import range_lines
from .infeasible import infeasible_section
from .request import (
    assumption_section,
    constraint_lines,
    hardware_text,
    left_out_lines,
    not_acted_on_lines,
    read_as_lines,
    trace_lines,
    workload_text,
)
from .search_tables import figures_line, front_section, ranking_section, strategy_text
from .text import (
    Bullets,
    Column,
    Section,
    Table,
    bytes_text,
    count_text,
    figure,
    figure_of,
    ms_of,
    ms_text,
    render,
    section,
)

if TYPE_CHECKING:
    from ...tools.plan.document import PolicyBlock, WorkloadBlock
    from ...tools.search.candidate import Candidate
    from ...tools.search.sensitivity import Flip, Sensitivity
    from ..search_results import AskedFor, Excluded, FamilyLost, SearchAnswer, WithinReach

FAMILIES_SHOWN = 12
_REASONS = {
    "ME001": "do not fit into memory",
    "PE010": "miss a limit",
    "beyond_limits": "one prompt or one step alone takes longer than a limit",
    "dominated": "a layout on the same GPUs is no slower and no larger",
}


def render_search(
    answer: SearchAnswer, *, top: int, width: int, bold: bool = False, plotted: Path | None = None
) -> str:
    """The whole report with the first `top` strategies; `plotted` is the file that holds the picture, if any."""
    sections = [
        section("", *_head(answer)),
        *([infeasible_section(answer.infeasible)] if answer.infeasible is not None else []),
        _within_reach(answer.within_reach),
        ranking_section(answer, top),
        front_section(answer),
        _families(answer.families),
        section("Not among the strategies", Bullets(tuple(_excluded_text(exclusion) for exclusion in answer.excluded))),
        _counts(answer),
        *([_sensitivity(answer.sensitivity)] if answer.sensitivity is not None else []),
        assumption_section(answer, answer.words),
        _next(answer, plotted),
    ]
    return render(sections, width=width, bold=bold)


def _head(answer: SearchAnswer) -> Iterator[str]:
    from ...tools.performance.limits import percentile_notes

    asked, best = answer.request, answer.best
    on = f" on {hardware_text(asked.hardware)}" if asked.hardware is not None else ""
    yield from trace_lines(answer.trace)
    if best is not None:
        yield f"Best for {asked.workload.objective}: {strategy_text(best)} for {asked.model}{on}"
        yield figures_line(best)
        yield from range_lines(best.ranges)
    else:
        reason = answer.infeasible.reason if answer.infeasible is not None else "no strategy is legal"
        yield f"Nothing will do for {asked.model}{on}: {reason}"
        if answer.infeasible is not None and answer.infeasible.at_start is not None:
            yield answer.infeasible.at_start
        if answer.infeasible is not None and answer.infeasible.with_engine is not None:
            yield f"But {answer.infeasible.with_engine}"
    yield from not_acted_on_lines(answer.not_acted_on)
    yield from read_as_lines(answer.assumptions)
    if answer.on_fewer is not None:
        yield answer.on_fewer
    yield from left_out_lines(answer.left_out)
    yield _load_text(answer, best)
    relaxed = f"; relaxations: {', '.join(asked.policy.relaxations)}" if asked.policy.relaxations else ""
    yield f"{_formats_text(asked, best)}; {_memory_text(asked.policy)}{relaxed}"
    yield from constraint_lines(asked.policy)
    limits = ", ".join(limit_texts(asked.workload))
    if limits:
        yield f"Limits: {limits}"
    yield from percentile_notes(asked.workload)
    if answer.stated is not None:
        place = answer.stated.place
        rank = f"rank {place + 1} ({answer.stated.summary})" if place is not None else answer.stated.summary
        yield f"The degrees that were stated: {rank}"


def _memory_text(policy: PolicyBlock) -> str:
    """The share of memory that may be used, and the bytes of each GPU that a constraint keeps back."""
    from ...tools.plan.constraints import free_bytes

    spare_bytes = free_bytes(policy.constraints or ())
    share = f"{policy.memory_utilization:.0%} of memory may be used"
    return f"{share}, and {bytes_text(spare_bytes)} of each GPU stay free" if spare_bytes else share


def _formats_text(asked: AskedFor, best: Candidate | None) -> str:
    """The number formats; where several were searched, which they were and which the best one has."""
    precision = asked.precision
    chosen = f"Weights {precision.weights}, KV cache {precision.kv_cache}, activations {precision.activations}"
    if asked.precisions is None:
        return chosen
    from ...tools.plan.describe import precision_name

    searched = ", ".join(precision_name(precision) for precision in asked.precisions)
    return f"{chosen} (the best of {searched})" if best is not None else f"Number formats searched: {searched}"


def _load_text(answer: SearchAnswer, best: Candidate | None) -> str:
    from ...tools.performance.limits import requests_in_flight

    asked, assumed = answer.request, answer.assumptions
    if asked.workload.request_rate is not None:
        seconds = None if best is None or best.end_to_end_ms is None else best.end_to_end_ms / 1e3
        return workload_text(
            asked.workload,
            assumed,
            in_flight=None if seconds is None else requests_in_flight(asked.workload, seconds),
        )
    if asked.concurrency_open and best is not None:
        return workload_text(asked.workload.model_copy(update={"concurrency": best.concurrency}), assumed)
    return workload_text(asked.workload, assumed, as_many_as_hold=asked.concurrency_open)


def limit_texts(workload: WorkloadBlock) -> Iterator[str]:
    """Each stated limit in words."""
    from ...tools.performance.limits import stated_limits

    yield from (
        f"{limit.full_name} ≤ {ms_text(limit.bound)}" for limit in stated_limits(workload) if limit.unit == "ms"
    )
    if workload.min_tokens_per_second is not None:
        yield f"≥ {figure(workload.min_tokens_per_second)} output tokens/s"
    if workload.request_rate is not None:
        yield f"≥ {figure(workload.request_rate)} requests/s"


_LIMITED = {
    **{limit.field: limit.name for limit in LATENCY_LIMITS},
    "min_tokens_per_second": "output tokens/s",
    "request_rate": "request rate",
}


def _within_reach(reached: tuple[WithinReach, ...]) -> Section:
    lines = [
        f"{_LIMITED[row.limit]}: " + ("the others cannot be held either" if row.best is None else _reach_text(row.best))
        for row in reached
    ]
    return section("The best of each limit while the others are held", Bullets(tuple(lines)))


def _reach_text(candidate: Candidate) -> str:
    return f"{strategy_text(candidate)}, {count_text(candidate.concurrency, 'request')}: {figures_line(candidate)}"


def _families(families: tuple[FamilyLost, ...]) -> Section:
    columns = (
        Column("family"),
        Column("its best", wraps=True),
        Column("lost by", wraps=True),
        Column("rule"),
    )
    rows = tuple((row.family, row.summary, row.reason, row.rule or "objective") for row in families[:FAMILIES_SHOWN])
    more = len(families) - len(rows)
    further = f"and {count_text(more, 'further family', 'further families')} (--format json has all)" if more else None
    return section("Why the other families lost", Table(columns, rows), further)


def _excluded_text(exclusion: Excluded) -> str:
    return f"{exclusion.family}: {exclusion.reason}" + (f" ({exclusion.rule})" if exclusion.rule else "")


def _counts(answer: SearchAnswer) -> Section:
    also = "" if answer.feasible else ", the search for what would do among it"
    from ..planning.reasons import considered

    lines = [
        considered(answer),
        f"{count_text(answer.simulated, 'load')} simulated in {figure(answer.seconds)} s{also}",
    ]
    if answer.behind is not None:
        lines.append(
            f"By the quick estimate the best of those that were not simulated is {figure(answer.behind)} times worse "
            "than the best one"
        )
    lines += _count_lines("rejected", answer.rejected)
    lines += _count_lines("not evaluated, by the bound", answer.pruned)
    refused = ", ".join(f"{name} {count:,}" for name, count in answer.refused.items())
    lines += [f"Degrees, stages and pairs refused before there was a strategy: {refused}"] if refused else []
    return section("Counts", Bullets(tuple(lines)))


def _count_lines(verb: str, counts: Mapping[str, int]) -> Iterator[str]:
    for name, count in counts.items():
        reason = f": {_REASONS[name]}" if name in _REASONS else ""
        yield f"{count:,} {verb} {name}{reason}"


def _sensitivity(sensitivity: Sensitivity) -> Section:
    flips = tuple(flip_text(flip) for flip in sensitivity.flips)
    same = f"The answer stays with: {'; '.join(sensitivity.unchanged)}." if sensitivity.unchanged else None
    none = "Nothing that was tried changes the answer." if not flips else None
    not_tried = f"Not possible: {'; '.join(sensitivity.impossible)}." if sensitivity.impossible else None
    return section("What flips the answer", Bullets(flips), none, same, not_tried)


def flip_text(flip: Flip) -> str:
    """`With 2x the input tokens (4,096): TP8 → PP2 × TP8, TPOT 12 → 15 ms`."""
    before, after = flip.before, flip.after
    if before is None or after is None:
        none = say("nothing holds the limits")
        there = none if after is None else say("{layout} holds them", layout=strategy_text(after))
        return say("With {change}: {there}", change=flip.change, there=there)
    text = say("With {change}: {there}", change=flip.change, there=f"{strategy_text(before)} → {strategy_text(after)}")
    text += f", TTFT {ms_of(before.ttft_ms)} → {ms_of(after.ttft_ms)}"
    text += f", TPOT {ms_of(before.tpot_ms)} → {ms_of(after.tpot_ms)}"
    text += f", {figure_of(before.output_tokens_per_s)} → {figure_of(after.output_tokens_per_s)} tokens/s"
    if flip.kept is None:
        return text
    figures = "; ".join(flip.kept.why_not) or (
        f"TTFT {ms_of(flip.kept.ttft_ms)}, TPOT {ms_of(flip.kept.tpot_ms)}, "
        f"{figure_of(flip.kept.output_tokens_per_s)} tokens/s"
    )
    return text + say(" (kept, {layout} has {figures})", layout=strategy_text(before), figures=figures)


def _next(answer: SearchAnswer, plotted: Path | None) -> Section:
    lines = [f"The picture of the front is in {plotted}"] if plotted is not None else []
    if answer.feasible:
        lines.append("shardwright plan with the same words and options writes the best one as a plan document")
    if answer.sensitivity is None and answer.evaluated:
        lines.append("--sensitivity says what flips the answer")
    return section("Next", Bullets(tuple(lines), mark="→"))
