"""The yardstick beside the model's errors: the same simulation of the same load, at the rates of the datasheet.

Matmuls at the dense peak, memory at the full bandwidth, links at their full rate, and no time of host or client: what
calibration brings is the difference.
"""

from __future__ import annotations

from dataclasses import replace

from ..kept import Cache
from ..performance.layout import LoadedLayout
from ..performance.serving.load import Arrivals, Lengths, ServingTimes
from ..performance.serving_estimate import serve
from ..performance.setting import Setting
from .engine_cases import neutral


def serve_at_datasheet_rates(
    layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
) -> ServingTimes:
    """What users would see of `layout` if every operator ran at the datasheet's rates and tokens came out at once."""
    del streams_at_intervals
    return serve(layout.with_setting(_at_datasheet_rates(layout.setting)), arrivals, lengths)


_AT_FULL_RATES = Cache[str, Setting]("the setting at the rates of the datasheet")


def _at_datasheet_rates(setting: Setting) -> Setting:
    """The setting with an accelerator that reaches its peaks and an engine that costs nothing, kept beside its own."""

    def at_full_rates() -> Setting:
        full = {"compute_efficiency": 1.0, "memory_efficiency": 1.0}
        hardware = replace(setting.hardware, accelerator=setting.hardware.accelerator.model_copy(update=full))
        return replace(setting, hardware=hardware, profile=neutral(setting.engine), caches={})

    return _AT_FULL_RATES.get(setting.caches, "", at_full_rates).with_workload(setting.workload)
