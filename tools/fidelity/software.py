"""Which serving engine measured a row, in which generation, and the number formats that it ran.

Names and formats are read as tables write them; what a row leaves unsaid takes the engine's documented default. What is
neither said nor documented is not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..catalog.accelerators import Accelerator
from ..catalog.dtypes import DTYPES, DType
from ..engines.names import ENGINES, engine_name
from ..plan.document import PrecisionBlock
from .table import MeasuredRow

_YEAR = re.compile(r"20[0-9]{2}")
_IMAGE = re.compile(r"image=([^\s;]{1,200}):v?([^\s;]{1,80})")
# Accelerators with matmul units for each narrow format, by the key of its dense peak.
_PEAK_KEYS: dict[DType, str] = {"fp8": "fp8", "mxfp8": "fp8", "int8": "int8", "fp4": "fp4", "nvfp4": "fp4"}
# Sources whose servers were launched for throughput, with such an interval: SemiAnalysis InferenceX.
_STREAM_AT_INTERVALS = ("IX",)


@dataclass(frozen=True, slots=True)
class Engine:
    """A serving engine and its version; `unstated (2024)` where a row tells no more than the year.

    `streams_at_intervals`: it delivers tokens some steps at a time (the engines' option `stream interval`).
    """

    name: str
    version: str | None
    streams_at_intervals: bool = False

    @property
    def generation(self) -> str:
        """The generation of the engine, as calibration tells them apart."""
        return ENGINES[self.name].generation(self.version)


def engine_of(row: MeasuredRow) -> Engine | None:
    """The engine that served the row, or `None` where it names none that is known."""
    name = engine_name(row.framework)
    return None if name is None else Engine(name, _version(row), row.source in _STREAM_AT_INTERVALS)


def _version(row: MeasuredRow) -> str | None:
    """The engine's version as stated, else the year of publication.

    The version of the runtime (Dynamo) whose image served the row is none of the engine's.
    """
    image = _IMAGE.search(row.notes)
    of_runtime = image is not None and "runtime" in image[1] and image[2] == row.framework_version
    if any(letter.isdigit() for letter in row.framework_version) and not of_runtime:
        return row.framework_version
    years = _YEAR.findall(row.published)
    return f"unstated ({min(years)})" if years else None


def dtype_of(text: str) -> DType | None:
    """The number format that a cell begins with (`bf16 (default)`, `nvfp4 MoE / bf16 attention`), or `None`."""
    words = re.split(r"[\s(/,]+", text.lower(), maxsplit=1)
    return next((dtype for dtype in DTYPES if words[0] == dtype), None)


def precision_of(row: MeasuredRow, engine: Engine, accelerator: Accelerator) -> PrecisionBlock | None:
    """The row's number formats, or `None` where it does not say that of the weights."""
    weights = dtype_of(row.weights)
    if weights is None:
        return None
    return PrecisionBlock(
        weights=weights,
        kv_cache=dtype_of(row.kv_cache) or _default_cache(weights, engine),
        activations=activations_of(weights, accelerator),
    )


def _default_cache(weights: DType, engine: Engine) -> DType:
    """The cache's format where the row does not say: the engine's own.

    Where its quantised checkpoints (FP8 and NVFP4) ask for none, the default is `auto`: 16 bits, as activations have.
    """
    quantised = ENGINES[engine.name].quantised_cache
    if quantised is not None and weights in ("fp8", "nvfp4"):
        return quantised
    return "fp16" if weights == "fp16" else "bf16"


def activations_of(weights: DType, accelerator: Accelerator) -> DType:
    """The format that matmuls compute in: the weights' where the accelerator has units for it, else 16 bits.

    int4 is a stored format only. mxfp4 weights meet mxfp8 activations where there are fp4 units (Blackwell) and 16-bit
    ones elsewhere, as in the gpt-oss recipes of vLLM and TensorRT-LLM.
    """
    peaks = accelerator.dense_peak_tflops
    if weights in ("bf16", "fp16", "fp32"):
        return weights
    if weights == "mxfp4":
        return "mxfp8" if peaks.fp4 is not None else "bf16"
    key = _PEAK_KEYS.get(weights)
    return weights if key is not None and getattr(peaks, key) is not None else "bf16"
