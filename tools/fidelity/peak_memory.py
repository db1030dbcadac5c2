"""Measured peak memory of a GPU beside the memory estimate of the same deployment.

A static batch is prefilled whole, so its activations are those of all its prompts at once.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import replace

from ..errors import InputError
from ..performance.memory import device_memory
from ..performance.serving.load import StaticBatch
from .deployment import layout_of
from .score import quantile
from .scores import MemoryScore, error_pct
from .situation import Situation
from .table import MeasuredRow

# The measured peaks reach 84.8 on GPUs of 80 GiB: tables print decimal GB.
_BYTES_PER_GB = 1e9
# What a serving process holds beside the four terms of a plan: CUDA context, libraries and engine buffers, and the
# workspace of ranks where it is one of several. Least squares over the peaks of NVIDIA's TensorRT-LLM 0.9.0 sizing
# sweep (1,595 static batches): an error that is scored against the same sweep is one of the form alone.
RUNTIME_GB = 1.3
RANKS_GB = 4.1


def peak_memory_gb(situation: Situation) -> float:
    """Memory that the process on the fullest GPU takes, in decimal GB.

    Raises:
        InputError: a fact that the arithmetic needs is not known.
    """
    layout = layout_of(situation)
    setting = layout.setting
    if isinstance(situation.arrivals, StaticBatch) and setting.serving is not None:
        tokens = situation.arrivals.sequences * setting.workload.input_tokens
        serving = setting.serving.model_copy(update={"prefill_chunk_tokens": tokens})
        layout = layout.with_setting(replace(setting, serving=serving))
    planned = max(device.total_bytes for device in device_memory(layout).per_device) / _BYTES_PER_GB
    return planned + RUNTIME_GB + (RANKS_GB if len(layout.decode_replicas[0].devices) > 1 else 0.0)


def memory_score(situations: Iterable[tuple[MeasuredRow, Situation]]) -> MemoryScore | None:
    """Errors over the rows that state their peak memory, each deployment and load once; `None` where none does."""
    signed: dict[tuple[object, ...], float] = {}
    for row, situation in situations:
        measured = row.peak_memory_gb
        key = (situation.deployment, situation.arrivals, situation.lengths)
        if measured is None or key in signed:
            continue
        try:
            signed[key] = error_pct(peak_memory_gb(situation), measured)
        except InputError:
            # The row's own prediction gives the reason.
            continue
    if not signed:
        return None
    absolute = [abs(error) for error in signed.values()]
    return MemoryScore(
        rows=len(absolute),
        median_pct=statistics.median(absolute),
        p90_pct=quantile(absolute, 0.9),
        bias_pct=statistics.median(signed.values()),
    )
