"""The picture of a sweep: for each workload the best output tokens/s per GPU of every model on every cluster.

A field without a plan shows the rule that binds; one that could not be evaluated shows a question mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...tools.errors import InputError
from .pictures import picture_bytes, plain
from .safe import one_line
from .text import figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..sweep.case import Row

# Larger pictures nobody reads, and drawing them takes minutes.
MOST_FIELDS = 20_000
_FIELD_INCHES = (0.62, 0.27)
_MARGIN_INCHES = (3.4, 2.2)
# Beyond this many fields figures inside them could not be told from dust.
_MOST_WRITTEN = 4_000
_MAX_LABEL = 40


def check_size(models: int, clusters: int, workloads: int) -> None:
    """Whether a sweep of this size can be drawn, before anything is computed.

    Raises:
        InputError: it is too large.
    """
    fields = models * clusters * workloads
    if fields > MOST_FIELDS:
        raise InputError(f"--plot: {fields:,} fields; at most {MOST_FIELDS:,} are drawn (leave --plot out)")


def sweep_picture(rows: Sequence[Row], suffix: str) -> bytes:
    """The picture as a file of the format that `suffix` (.svg, .png) names.

    Raises:
        InputError: matplotlib is not installed.
    """
    models, clusters, workloads = (
        list(dict.fromkeys(getattr(row, name) for row in rows)) for name in ("model", "hardware", "workload")
    )
    best: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        place = (row.model, row.hardware, row.workload)
        if place not in best or _rate(row) > _rate(best[place]):
            best[place] = row

    def draw(picture: Figure) -> None:
        _draw(picture, best, (models, clusters, workloads))

    width = _MARGIN_INCHES[0] + _FIELD_INCHES[0] * len(clusters) * len(workloads)
    height = _MARGIN_INCHES[1] + _FIELD_INCHES[1] * len(models)
    return picture_bytes((max(7.0, width), height), suffix, draw)


def _rate(row: Row) -> float:
    """The rate of a row, below every rate if it has none; a row with a rule ranks above one with an error."""
    if row.output_tokens_per_s_per_gpu is not None:
        return row.output_tokens_per_s_per_gpu
    return -1.0 if row.feasible is False else -2.0


def _draw(
    picture: Figure, best: dict[tuple[str, str, str], Row], names: tuple[list[str], list[str], list[str]]
) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    models, clusters, workloads = names
    rates = [_rate(row) for row in best.values() if _rate(row) > 0]
    low, high = (min(rates), max(rates)) if rates else (1.0, 1.0)
    scale = LogNorm(low, high if high > low else low * 1.01)
    colours = colormaps["viridis"].with_extremes(bad="#e6e6e6")
    panels = picture.subplots(1, len(workloads), sharey=True, squeeze=False)[0]
    image = None
    for axes, workload in zip(panels, workloads, strict=True):
        fields = [
            [max(0.0, _rate(best[model, cluster, workload])) or float("nan") for cluster in clusters]
            for model in models
        ]
        image = axes.imshow(fields, norm=scale, cmap=colours, aspect="auto")
        axes.set_title(_label(workload), fontsize=9)
        axes.set_xticks(range(len(clusters)), [_label(name) for name in clusters], rotation=90, fontsize=7)
        axes.set_yticks(range(len(models)), [_label(name.rsplit("/", 1)[-1]) for name in models], fontsize=7)
        if len(best) <= _MOST_WRITTEN:
            _write(axes, [[best[model, cluster, workload] for cluster in clusters] for model in models], scale)
    if image is not None and rates:
        picture.colorbar(image, ax=list(panels), label="output tokens/s per GPU", shrink=0.8)
    picture.suptitle("Best output tokens/s per GPU; grey: no plan, and the rule that binds", fontsize=10)


def _write(axes: Axes, fields: list[list[Row]], scale: Callable[[float], Any]) -> None:
    """The figure of each field, dark on light and light on dark."""
    for down, rows in enumerate(fields):
        for across, row in enumerate(rows):
            rate = _rate(row)
            text = figure(rate) if rate > 0 else plain(row.rule or "–") if row.feasible is False else "?"
            is_dark = rate > 0 and float(scale(rate)) < 0.6
            axes.text(
                across, down, text, ha="center", va="center", fontsize=5.5, color="white" if is_dark else "#222222"
            )


def _label(name: str) -> str:
    text = one_line(name)
    return plain(text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…")
