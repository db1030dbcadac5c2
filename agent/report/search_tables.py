"""The tables of `search`: the leading strategies and the Pareto front, with the figures of each.

Where number formats were left open they have a column. It ranks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .estimate import GROWS, growing_line, rate_text, with_range
from .text import NONE, Column, Section, Table, bytes_of, count_text, figure, figure_of, ms_of, ms_text, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...tools.plan.document import WorkloadBlock
    from ...tools.search.candidate import Candidate
    from ..search_results import SearchAnswer

FRONT_SHOWN = 12
_FIGURES = (
    Column("#", figures=True),
    Column("strategy", wraps=True),
    *Column.of_figures("GPUs", "load", "TTFT", "TPOT", "tok/s", "/GPU", "memory"),
)
_LEGEND = (
    "load: requests at once (grows: more come than are served); tok/s: output tokens per second; memory: that of the "
    "fullest GPU."
)


def strategy_text(candidate: Candidate) -> str:
    """The strategy in shorthand, with its number formats where they were left open."""
    from ...tools.plan.describe import describe, in_format

    return describe(candidate.strategy) + in_format(candidate.precision)


def figures_line(candidate: Candidate) -> str:
    """The figures of a candidate with figures on one line, and their ranges."""
    from ...tools.plan.performance import Ranges

    served = candidate.served_tokens_per_s
    per_gpu = figure_of(candidate.output_tokens_per_s_per_gpu)
    ranges = candidate.ranges or Ranges()
    on = f"on {count_text(candidate.gpus, 'GPU')}, {bytes_of(candidate.memory_per_gpu_bytes)} on the fullest"
    tpot = with_range(candidate.tpot_ms, ranges.tpot_ms, ms_text)
    rate = f"{with_range(candidate.output_tokens_per_s, ranges.dp_scaled_tokens_per_s, rate_text)} ({per_gpu} per GPU)"
    if served is not None and served != candidate.output_tokens_per_s:
        rate = f"{rate_text(served)} served of those that come, {rate} in the run"
    if candidate.queue_grows:
        return f"{growing_line(tpot, rate)} {on}"
    # The mean of the whole answer is shown for every candidate.
    times = {name: value for name, value in candidate.limited_ms.items() if name != "end to end"}
    limited = "".join(f"{name} {ms_text(value)} · " for name, value in times.items())
    return (
        f"{limited}TTFT {with_range(candidate.ttft_ms, ranges.ttft_ms, ms_text)} · "
        f"TPOT {tpot} · end to end {with_range(candidate.end_to_end_ms, ranges.end_to_end_ms, ms_text)} · {rate} {on}"
    )


# How many of the columns name a strategy.
_NAMING = 2


def _columns(answer: SearchAnswer) -> tuple[Column, ...]:
    """The columns; where several number formats were searched, one for these."""
    if answer.request.precisions is None:
        return _FIGURES
    return (*_FIGURES[:_NAMING], Column("format"), *_FIGURES[_NAMING:])


def _figure_cells(rank: int, candidate: Candidate) -> tuple[str, ...]:
    """The cells of `_columns`: a candidate names its number formats where several were searched."""
    from ...tools.plan.describe import describe, precision_name

    return (
        str(rank),
        describe(candidate.strategy),
        *([] if candidate.precision is None else [precision_name(candidate.precision)]),
        str(candidate.gpus),
        GROWS if candidate.queue_grows else f"{candidate.concurrency:,}",
        GROWS if candidate.queue_grows else ms_of(candidate.ttft_ms),
        ms_of(candidate.tpot_ms),
        figure_of(candidate.output_tokens_per_s),
        figure_of(candidate.output_tokens_per_s_per_gpu),
        bytes_of(candidate.memory_per_gpu_bytes),
    )


def ranking_section(answer: SearchAnswer, top: int) -> Section:
    """The first `top` strategies."""
    shown = answer.candidates[:top]
    rows = [
        (*_figure_cells(rank, candidate), _remark(candidate, answer.request.workload))
        for rank, candidate in enumerate(shown, start=1)
    ]
    columns = _columns(answer)
    if any(row[-1] for row in rows):
        columns = (*columns, Column("remark", wraps=True))
    else:
        rows = [row[:-1] for row in rows]
    title = "Ranked strategies" if answer.feasible else "Closest strategies"
    return section(f"{title} ({len(shown)} of {answer.listed:,} listed)", Table(columns, tuple(rows)), _LEGEND)


def _remark(candidate: Candidate, workload: WorkloadBlock) -> str:
    """What speaks against a candidate, else the limits that it just holds."""
    if candidate.why_not:
        return "; ".join(candidate.why_not)
    warned = [f"warned of: {', '.join(candidate.warnings)}"] if candidate.warnings else []
    return "; ".join((*warned, *_tight_limits(candidate, workload)))


def _tight_limits(candidate: Candidate, workload: WorkloadBlock) -> Iterator[str]:
    from ...tools.performance.limits import spare_share, stated_limits
    from ...tools.search.ranking import limited_figure
    from ..limit_words import TIGHT_SHARE, spare_text

    for limit in stated_limits(workload):
        figure = None if limit.field == "request_rate" else limited_figure(candidate, limit)
        if figure is not None and 0.0 <= (spare := spare_share(limit, figure)) < TIGHT_SHARE:
            yield f"{limit.full_name}: {spare_text(spare)}"


def front_section(answer: SearchAnswer) -> Section:
    """The Pareto front, or at most `FRONT_SHOWN` of its points evenly apart."""
    places = _thinned(list(answer.pareto), FRONT_SHOWN)
    columns = _columns(answer)
    # The rate of a user stands before the times; memory is left out.
    times = len(columns) - 5
    columns = (*columns[:times], Column("/user", figures=True), *columns[times:-1])
    rows: list[tuple[str, ...]] = []
    for place in places:
        candidate = answer.candidates[place]
        cells = _figure_cells(place + 1, candidate)
        per_user = NONE if not candidate.tpot_ms else figure(1e3 / candidate.tpot_ms)
        rows.append((*cells[:times], per_user, *cells[times:-1]))
    title = f"Pareto front ({len(places)} of {len(answer.pareto)} points)"
    return section(title, Table(columns, tuple(rows)))


def _thinned(places: list[int], most: int) -> list[int]:
    """At most `most` of `places`, the ends among them, evenly apart."""
    if len(places) <= most:
        return places
    return [places[round(step * (len(places) - 1) / (most - 1))] for step in range(most)]
