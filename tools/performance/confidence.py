"""How sure an estimate is: which profiles its constants come from, and how far measured figures lay from predictions.

A range comes from measurements outside the fit; where too few are like the plan's there is a note and no range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ..caches import Cache, Caches
from ..calibration.engine_profile import (
    accelerator_class,
    all_entries,
    at_datasheet_rates,
)
from ..calibration.error_ranges import (
    LOW_CONCURRENCY,
    SHARE_PCT,
    Cell,
    ErrorRange,
    Load,
    Metric,
    range_of,
    shipped_ranges,
)
from ..calibration.kernel_times import KernelTimes
from ..calibration.profile import MEASURED, Origin
from ..engines.names import DEFAULT_ENGINE, ENGINES, engine_name
from ..plan.performance import Calibration, Ranges, RatioBand
from .layout import LoadedLayout
from .planned_run import planned_run, run_alone
from .setting import Setting

_METRICS: dict[Metric, str] = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "end_to_end": "end to end",
    "throughput": "throughput",
}
_DATASHEET = (
    "datasheet peaks with published efficiencies (matmul: measured maxima of stas00/ml-engineering, memory 80% and "
    "3 us per kernel of ai-dynamo/aiconfigurator) or those that the accelerator states"
)
# All others are rates.
_METRIC_OF: dict[str, Metric] = {"ttft_ms": "ttft", "tpot_ms": "tpot", "end_to_end_ms": "end_to_end"}
Known = Mapping[Metric, ErrorRange]
# Ratios by their table in `RangeFile`: to another layout under the same load, and to the same model and load on another
# accelerator.
Paired = Literal["ratios", "hardware_ratios"]
_PAIRED: Mapping[Paired, str] = {
    "ratios": "layouts of {pairs} pairs of model and accelerator",
    "hardware_ratios": "measurements of one model on two kinds of accelerator, of {pairs} such models and kinds",
}


def ranges_of(layout: LoadedLayout, figures: Mapping[str, float]) -> Ranges:
    """The ranges of an estimate's `figures` for `layout`, by their names in `Ranges`.

    The figures of the same load at datasheet rates bound each range: nothing measured can lie beyond. Users who send
    again when they are answered load what is faster more, so that a time may be no shorter there: then that of a
    request alone bounds it.
    Raises InputError: as `planned_run`.
    """
    loaded, alone = _known(layout.setting, _load(layout.setting)), _known(layout.setting, "low")
    if not (loaded or alone):
        return Ranges()
    best = _at_best(layout)
    ranges: dict[str, tuple[float, float]] = {}
    for name, figure in figures.items():
        is_alone, metric = name == "single_request_tokens_per_s", _METRIC_OF.get(name, "throughput")
        error_range = (alone if is_alone else loaded).get(metric)
        if error_range is None:
            continue
        times, low, high = run_alone(best) if is_alone else planned_run(best).times, error_range.low, error_range.high
        if metric == "throughput":
            whole = figure if is_alone else figures["dp_scaled_tokens_per_s"]
            high = min(high, max(1.0, times.output_tokens_per_s / whole))
        elif figure:
            least_s: float = getattr(times, metric).mean
            if least_s * 1e3 >= figure:
                least_s = getattr(run_alone(best), metric).mean
            low = max(low, min(1.0, least_s * 1e3 / figure))
        ranges[name] = figure * low, figure * high
    return Ranges(**ranges)


_CACHES_AT_BEST = Cache[str, Caches]("what was worked out at the rates of the datasheet")


def _at_best(layout: LoadedLayout) -> LoadedLayout:
    """The layout at the rates of the datasheet; it shares no cached times with the original."""
    setting = layout.setting
    caches = _CACHES_AT_BEST.get(setting.caches, "", dict[Cache[Any, Any], dict[Any, Any]])
    return layout.with_setting(replace(setting, profile=at_datasheet_rates(setting.engine), caches=caches))


def calibration_of(setting: Setting) -> Calibration:
    """The profiles behind an estimate under `setting`, with a note on what its ranges were measured on."""
    known = _known(setting, _load(setting))
    shipped = _shipped(setting, known)
    custom = setting.calibration
    if custom is None:
        return shipped
    covered = custom.covers(*_engine(setting), setting.hardware.accelerator)
    if not covered:
        note = f"calibration {custom.name} has nothing for this engine and accelerator; {shipped.note}"
        return shipped.model_copy(update={"note": note})
    note = f"own measurements of {'; '.join(covered)}; what ships for everything else; {_words(setting, known)}"
    return Calibration(
        profile=custom.name,
        error_band_pct=_band(known, "tpot"),
        throughput_band_pct=_band(known, "throughput"),
        note=note,
    )


def engine_origin(setting: Setting) -> Origin:
    """Where host times come from: the user's own runs, or published results of a class of cards."""
    if setting.own_engine is not None:
        return MEASURED
    return Origin("carried", f"results of {setting.engine.name}")


def _engine(setting: Setting) -> tuple[str | None, str | None]:
    return setting.serving.engine, setting.serving.engine_version


def _shipped(setting: Setting, known: Known) -> Calibration:
    engine, kernels, words = setting.engine, setting.clock.kernels, _words(setting, known)
    if kernels is None:
        return Calibration(profile="datasheet", error_band_pct=None, note="; ".join((_DATASHEET, *engine.notes, words)))
    return Calibration(
        profile=f"{engine.name}, kernels of {_measured(kernels)}",
        error_band_pct=_band(known, "tpot"),
        throughput_band_pct=_band(known, "throughput"),
        ratio_band=_ratio_band(setting, known, "tpot", "ratios"),
        throughput_ratio_band=_ratio_band(setting, known, "throughput", "ratios"),
        hardware_ratio_band=_ratio_band(setting, known, "tpot", "hardware_ratios"),
        throughput_hardware_ratio_band=_ratio_band(setting, known, "throughput", "hardware_ratios"),
        note="; ".join((*_carried(kernels), *engine.notes, words)),
    )


def _load(setting: Setting) -> Load:
    workload = setting.workload
    return "low" if workload.request_rate is None and workload.concurrency <= LOW_CONCURRENCY else "loaded"


_RANGES = Cache[Load, Known]("ranges by load")


def _known(setting: Setting, load: Load) -> Known:
    """The ranges that were measured nearest to `setting` under `load`, looked up once."""
    return _RANGES.get(setting.caches, load, lambda: _nearest_ranges(setting, load))


def _nearest_ranges(setting: Setting, load: Load) -> Known:
    """Empty if nothing was measured on such cards."""
    custom, ranges = setting.own_engine, shipped_ranges().ranges
    if custom is not None:
        # The shipped ranges were not measured with a user's own constants.
        ranges = custom.entry.ranges
    elif setting.clock.kernels is None or setting.calibration is not None or not _is_class_measured(setting):
        return {}
    nearest: dict[Metric, ErrorRange | None] = {
        metric: range_of(_cell(setting, metric, load), ranges) for metric in _METRICS
    }
    return {metric: error_range for metric, error_range in nearest.items() if error_range is not None}


def _cell(setting: Setting, metric: Metric, load: Load) -> Cell:
    """The finest cell of a figure under `setting`."""
    kind = "moe" if any(layer.moe is not None for layer in setting.architecture.layers) else "dense"
    name, version = _engine(setting)
    engine = engine_name(name) if name else DEFAULT_ENGINE
    generation = None if engine is None else ENGINES[engine].generation(version)
    return Cell(metric, load, kind, engine, generation)


def _is_class_measured(setting: Setting) -> bool:
    class_ = accelerator_class(setting.hardware.accelerator)
    return any(entry.accelerator_class == class_ for entry in all_entries())


def _band(known: Known, metric: Metric) -> float | None:
    """The farther end of the range of a figure, in percent."""
    error_range = known.get(metric)
    return None if error_range is None else round(100.0 * max(1.0 - error_range.low, error_range.high - 1.0), 1)


def _ratio_band(setting: Setting, known: Known, metric: Metric, of: Paired) -> RatioBand | None:
    """How far the ratio of a figure to that of what it is paired with is off; only for shipped ranges."""
    if metric not in known or setting.own_engine is not None:
        return None
    ratios: Sequence[ErrorRange] = getattr(shipped_ranges(), of)
    ratio_range = range_of(_cell(setting, metric, _load(setting)), ratios)
    if ratio_range is None:
        return None
    pairs = _PAIRED[of].format(pairs=ratio_range.pairs)
    source = f"{ratio_range.rows:,} pairs of {pairs} that took no part in the fit"
    return RatioBand(pct=round(100.0 * (ratio_range.high - 1.0), 1), source=source)


def _measured(kernels: KernelTimes) -> str:
    """The accelerator whose kernel constants come first."""
    return next((file.accelerator for file in kernels.profile.files), "no accelerator")


def _carried(kernels: KernelTimes) -> Iterator[str]:
    measured = _measured(kernels)
    if measured != kernels.profile.accelerator:
        yield (
            f"no kernel of {kernels.profile.accelerator} was measured: constants of {measured} are carried over to its "
            "peaks, so the error is wider than any stated here"
        )


def _words(setting: Setting, known: Known) -> str:
    """What the ranges were measured on, or why there are none."""
    if not known:
        class_ = accelerator_class(setting.hardware.accelerator)
        where = "" if _is_class_measured(setting) else f" on {class_} cards"
        return f"no range: too little was measured{where} that took no part in a fit"
    measured = ", ".join(f"{_METRICS[metric]} {_range_text(error_range)}" for metric, error_range in known.items())
    without = [name for metric, name in _METRICS.items() if metric not in known]
    lacking = f"; too little was measured for a range of {' and '.join(without)}" if without else ""
    return f"the ranges held {SHARE_PCT}% of measurements that took no part in the fit: {measured}{lacking}"


def _range_text(fit: ErrorRange) -> str:
    """`0.5-1.9 times the prediction (1,772 rows of 24 pairs of dense model and card, any engine)`."""
    model = {"dense": "dense model", "moe": "MoE model", None: "model"}[fit.kind]
    engine = "any engine" if fit.engine is None else f"{fit.engine} {fit.generation or ''}".strip()
    return (
        f"{fit.low:g}-{fit.high:g} times the prediction ({fit.rows:,} rows, {fit.pairs} pairs of {model} and "
        f"accelerator, {engine})"
    )
