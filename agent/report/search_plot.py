"""The picture of a search: speed for a user against output tokens per second per GPU, the Pareto front, the limits.

It draws what the answer holds and computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .pictures import picture_bytes, plain
from .request import hardware_text
from .safe import one_line
from .search import limit_texts, strategy_text
from .text import count_text, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...tools.plan.document import Strategy
    from ...tools.search.candidate import Candidate
    from ..search_results import SearchAnswer

# Layouts of the front with a colour (matplotlib's own cycle) of their own; the rest share one.
_NAMED = 9
_INCHES = (9.0, 5.6)


def front_picture(answer: SearchAnswer, suffix: str) -> bytes | None:
    """The picture as a file of the format that `suffix` (.svg, .png) names; `None` where no strategy has figures.

    Raises:
        InputError: matplotlib is not installed.
    """
    drawn = [row for row in answer.candidates if row.tpot_ms and row.output_tokens_per_s_per_gpu]
    if not drawn:
        return None

    def draw(picture: Figure) -> None:
        _draw(picture.add_subplot(), answer, drawn)

    return picture_bytes(_INCHES, suffix, draw)


def _draw(axes: Axes, answer: SearchAnswer, drawn: Sequence[Candidate]) -> None:
    holding = [candidate for candidate in drawn if candidate.feasible]
    missing = [candidate for candidate in drawn if not candidate.feasible]
    front = [answer.candidates[place] for place in answer.pareto]
    for group, colour, name in ((missing, "#bbbbbb", "misses a limit"), (holding, "#9fc3e6", "holds every limit")):
        if group:
            axes.scatter(*_points(group), s=14, color=colour, label=name, linewidths=0)
    if front:
        axes.plot(*_points(front), color="#555555", linewidth=1.0, label="Pareto front")
        _draw_layouts(axes, front)
    best = answer.best
    if best is not None:
        axes.scatter(
            *_points([best]), s=90, marker="*", color="#1b7837", label=f"best for {answer.request.workload.objective}",
            zorder=4,
        )  # fmt: skip
    _name(axes, best or drawn[0])
    _draw_limits(axes, answer)
    axes.set_xlabel("output tokens/s for a user (1 / TPOT)")
    axes.set_ylabel("output tokens/s per GPU")
    axes.set_title(_title(answer), fontsize=10)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, color="#eeeeee")
    axes.set_axisbelow(True)
    axes.legend(loc="best", fontsize=8)


def _points(group: Sequence[Candidate]) -> tuple[list[float], list[float]]:
    """Speed for a user and rate per GPU of each."""
    return (
        [1e3 / candidate.tpot_ms if candidate.tpot_ms else 0.0 for candidate in group],
        [candidate.output_tokens_per_s_per_gpu or 0.0 for candidate in group],
    )


def _draw_layouts(axes: Axes, front: Sequence[Candidate]) -> None:
    """The points of the front, each layout in a colour of its own: those with most points where there are many."""
    layouts: dict[Strategy, list[Candidate]] = {}
    for candidate in front:
        layouts.setdefault(candidate.strategy, []).append(candidate)
    order = sorted(layouts.values(), key=len, reverse=True)
    for number, group in enumerate(order[:_NAMED]):
        axes.scatter(*_points(group), s=26, color=f"C{number}", label=_layout_text(group[0]), zorder=3)
    others = [candidate for group in order[_NAMED:] for candidate in group]
    if others:
        label = f"{len(order) - _NAMED} further layouts"
        axes.scatter(*_points(others), s=26, color="#222222", label=label, zorder=3)


def _layout_text(candidate: Candidate) -> str:
    return f"{one_line(strategy_text(candidate))}, {count_text(candidate.gpus, 'GPU')}"


def _name(axes: Axes, candidate: Candidate) -> None:
    (speed,), (rate,) = _points([candidate])
    axes.annotate(_layout_text(candidate), (speed, rate), xytext=(8, 4), textcoords="offset points", fontsize=8)


def _draw_limits(axes: Axes, answer: SearchAnswer) -> None:
    workload, hardware = answer.request.workload, answer.request.hardware
    if workload.tpot_ms_max is not None:
        speed = 1e3 / workload.tpot_ms_max
        statistic = "" if workload.tpot_statistic == "mean" else f"{workload.tpot_statistic} "
        axes.axvline(speed, color="#e08e0b", linestyle="--", linewidth=1, label=f"TPOT {statistic}limit")
    floors = [workload.min_tokens_per_second]
    if workload.request_rate is not None:
        floors.append(workload.request_rate * workload.output_tokens)
    stated = [floor for floor in floors if floor is not None]
    if stated and hardware is not None:
        gpus = hardware.nodes * hardware.gpus_per_node
        label = f"{figure(max(stated))} tokens/s on all {gpus} GPUs"
        axes.axhline(max(stated) / gpus, color="#8e44ad", linestyle="--", linewidth=1, label=label)


def _title(answer: SearchAnswer) -> str:
    asked = answer.request
    on = f" on {hardware_text(asked.hardware)}" if asked.hardware is not None else ""
    limits = ", ".join(limit_texts(asked.workload))
    load = f"{asked.workload.input_tokens:,} tokens in, {asked.workload.output_tokens:,} out"
    first = plain(one_line(f"{asked.model}{on}"))
    return f"{first}\n{load}" + (f"; {limits}" if limits else "")
