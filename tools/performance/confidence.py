"""How sure an estimate is: which profiles its constants come from, and how far these were off where it was checked.

An error band is one that was measured on results that took no part in the fit; where none was measured it says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration.engine_profile import EngineProfile, ErrorBand
from ..calibration.kernel_times import KernelTimes
from ..calibration.profile import MEASURED, Origin
from ..plan.performance import Calibration
from .setting import Setting

_METRICS: dict[str, str] = {
    "tpot": "TPOT",
    "ttft_low": "TTFT at low load",
    "ttft_load": "TTFT under load",
    "end_to_end": "end to end",
    "throughput": "throughput",
}
_DATASHEET = (
    "datasheet peaks with published efficiencies (matmul: measured maxima of stas00/ml-engineering, memory 80% and "
    "3 us per kernel of ai-dynamo/aiconfigurator) or those that the accelerator states"
)


def calibration_of(setting: Setting) -> Calibration:
    """The profiles behind an estimate under `setting`; its band is the p90 error of TPOT on what was held back."""
    shipped = _shipped(setting)
    own = setting.calibration
    if own is None:
        return shipped
    serving = setting.serving
    engine, version = (None, None) if serving is None else (serving.engine, serving.engine_version)
    covered = own.covers(engine, version, setting.hardware.accelerator)
    if not covered:
        note = f"calibration {own.name} has nothing for this engine and accelerator; {shipped.note}"
        return shipped.model_copy(update={"note": note})
    note = f"own measurements of {'; '.join(covered)}; what ships for everything else"
    # The bands that ship are those of the kernels that ship.
    band = _band(setting.engine.entry.bands) if own_engine(setting) is not None else None
    return Calibration(profile=own.name, error_band_pct=band, note=note)


def own_engine(setting: Setting) -> EngineProfile | None:
    """The entry of a calibration of one's own that serves `setting`, if it has one."""
    own, serving = setting.calibration, setting.serving
    if own is None:
        return None
    engine, version = (None, None) if serving is None else (serving.engine, serving.engine_version)
    return own.engine(engine, version, setting.hardware.accelerator)


def engine_origin(setting: Setting) -> Origin:
    """Where host times come from: runs of one's own, or published results of a class of cards."""
    return MEASURED if own_engine(setting) is not None else Origin("carried", f"results of {setting.engine.name}")


def _shipped(setting: Setting) -> Calibration:
    engine, kernels = setting.engine, setting.clock.kernels
    if kernels is None:
        # The bands are those of calibrated kernels.
        note = "; ".join((_DATASHEET, *engine.notes, _words(())))
        return Calibration(profile="datasheet", error_band_pct=None, note=note)
    bands = engine.entry.bands
    return Calibration(
        profile=f"{engine.name}, kernels of {_measured(kernels)}",
        error_band_pct=_band(bands),
        note="; ".join((*_carried(kernels), *engine.notes, _words(bands))),
    )


def _band(bands: tuple[ErrorBand, ...]) -> float | None:
    return next((band.p90_pct for band in bands if band.metric == "tpot"), None)


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


def _words(bands: tuple[ErrorBand, ...]) -> str:
    if not bands:
        return "no error was measured on results held back from the fit"
    errors = ", ".join(
        f"{_METRICS[band.metric]} {band.median_pct:.0f}% and {band.p90_pct:.0f}% over {band.groups}" for band in bands
    )
    return f"median and p90 error over groups held back from the fit: {errors}"
