"""The situation in which a measured row is predicted (engine, formats, deployment, load, figure), or why it is refused.

Everything that decides the prediction is in the `Situation`, nothing of the measured value is.

Names and formats are read as tables write them; what a row leaves unsaid takes the engine's documented default. What is
neither said nor documented is not guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Literal, get_args

from msgspec import Struct

from ..catalog.accelerators import Accelerator
from ..catalog.architecture import Architecture
from ..catalog.dtypes import DTYPES, DType
from ..catalog.hardware import all_accelerators, find_accelerator
from ..catalog.models import find_model
from ..engines.names import ENGINES, engine_name
from ..errors import InputError
from ..performance.serving.load import Arrivals, Burst, Lengths, StaticBatch
from ..plan.document import PrecisionBlock, Relaxation, Statistic, Strategy
from .degrees import nodes_of, relaxations_of, strategy_of
from .load import arrivals_of, lengths_of
from .table import MeasuredRow

_YEAR = re.compile(r"20[0-9]{2}")
_IMAGE = re.compile(r"image=([^\s;]{1,200}):v?([^\s;]{1,80})")
# Accelerators with matmul units for each narrow format, by the key of its dense peak.
_PEAK_KEYS: dict[DType, str] = {"fp8": "fp8", "mxfp8": "fp8", "int8": "int8", "fp4": "fp4", "nvfp4": "fp4"}
# Sources whose servers were launched for throughput, with such an interval: SemiAnalysis InferenceX.
_STREAM_AT_INTERVALS = ("IX",)


class Engine(Struct, frozen=True):
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


Figure = Literal[
    "ttft_ms", "tpot_ms", "e2e_ms", "makespan_ms", "output_tok_s", "output_tok_s_per_gpu", "total_tok_s",
    "total_tok_s_per_gpu",
]  # fmt: skip

# More in one prompt or answer than any model takes: nothing is computed for it.
_MOST_TOKENS = 4_000_000
# The metrics that tables name. An inter-token latency is a time per output token: both leave the first token out.
_FIGURES: dict[str, Figure] = {
    "ttft_ms": "ttft_ms", "tpot_ms": "tpot_ms", "itl_ms": "tpot_ms", "e2e_latency_ms": "e2e_ms",
    "output_tok_s_total": "output_tok_s", "output_tok_s_per_gpu": "output_tok_s_per_gpu",
    "total_tok_s": "total_tok_s", "total_tok_s_per_gpu": "total_tok_s_per_gpu",
}  # fmt: skip
METRICS = tuple(_FIGURES)
# Which of its distribution a row's figure is, by the first word: "p50 of 100 log samples".
_STATISTICS: dict[str, Statistic] = {
    **{name: name for name in get_args(Statistic)},
    "median": "p50",
    **dict.fromkeys(("", "single", "peak", "max-throughput", "profile-derived", "unstated"), "mean"),
}
_UNSTATED_MEMORY = re.compile(r"[-_ ](?:unstated|unknown)$", re.IGNORECASE)
_DEFAULT_NODE = 8
# Sources that measured engines with weights of no model: NVIDIA's sizing sweep of TensorRT-LLM.
_DUMMY_WEIGHTS = ("TRT090",)


class Deployment(Struct, frozen=True):
    """What served a row. `model` and `accelerator` are names of the catalogues."""

    model: str
    accelerator: str
    nodes: int
    gpus_per_node: int
    engine: Engine
    precision: PrecisionBlock
    strategy: Strategy
    relaxations: tuple[Relaxation, ...]
    has_dummy_weights: bool = False


class Refused(Struct, frozen=True):
    """Why a row cannot be modelled."""

    reason: str


class Situation(Struct, frozen=True):
    """A deployment under a load, and which of its figures the row measured."""

    deployment: Deployment
    arrivals: Arrivals
    lengths: Lengths
    figure: Figure
    statistic: Statistic = "mean"


def situation_of(row: MeasuredRow) -> Situation | Refused:
    """What to predict for `row`, or the reason why it cannot be modelled."""
    try:
        return _situation(row)
    except InputError as error:
        return Refused(str(error))


def _situation(row: MeasuredRow) -> Situation:
    figure = _FIGURES.get(row.metric)
    if figure is None:
        raise InputError(f"metric {row.metric[:40]!r} is none of {', '.join(METRICS)}")
    if row.unread:
        raise InputError(row.unread)
    deployment = _deployment(row)
    lengths = lengths_of(row)
    if lengths is None:
        raise InputError("isl or osl is not stated, or no token is generated")
    if figure == "tpot_ms" and lengths.output_tokens == 1:
        raise InputError("a time per output token after the first needs two output tokens")
    check_lengths(deployment, lengths)
    arrivals = arrivals_of(row)
    if arrivals is None:
        raise InputError(
            f"load {row.load[:40]!r} says no concurrency, batch, rate or number of requests that could be run"
        )
    if figure == "e2e_ms" and isinstance(arrivals, Burst | StaticBatch):
        # The latency of a batch is that of its last request.
        figure = "makespan_ms"
    statistic = _STATISTICS.get(row.statistic.lower().strip().partition(" ")[0])
    if statistic is None:
        raise InputError(f"statistic {row.statistic[:40]!r} is none of {', '.join(filter(None, _STATISTICS))}")
    return Situation(deployment, arrivals, lengths, figure, statistic)


def check_lengths(deployment: Deployment, lengths: Lengths) -> None:
    """Refuse lengths beyond any model's, or beyond the last position of a model whose engine ends there.

    Raises InputError: they are.
    """
    if max(lengths.input_tokens, lengths.output_tokens) > _MOST_TOKENS:
        raise InputError(f"requests of more than {_MOST_TOKENS:,} tokens are longer than any model's")
    tokens = lengths.input_tokens + lengths.output_tokens
    positions = architecture_of(deployment.model).max_position_embeddings
    engine = ENGINES[deployment.engine.name]
    if engine.ends_at_last_position and tokens > positions:
        raise InputError(
            f"{engine.title} ends requests at the model's {positions:,} positions, isl + osl are {tokens:,}"
        )


def _deployment(row: MeasuredRow) -> Deployment:
    entry, accelerator, engine = _known_model(row.model), known_accelerator(row.gpu), engine_of(row)
    if engine is None:
        raise InputError(f"framework {row.framework[:40]!r} is no engine that is known")
    precision = precision_of(row, engine, accelerator)
    if precision is None:
        raise InputError(f"weights_dtype {row.weights[:40]!r} is no number format that is known")
    strategy = strategy_of(row, architecture_of(entry.name))
    gpus_per_node = min(accelerator.typical_node_accelerators or _DEFAULT_NODE, strategy.gpu_count)
    return Deployment(
        model=entry.name,
        accelerator=accelerator.id,
        nodes=nodes_of(strategy, gpus_per_node),
        gpus_per_node=gpus_per_node,
        engine=engine,
        precision=precision,
        strategy=strategy,
        relaxations=relaxations_of(strategy),
        has_dummy_weights=row.source in _DUMMY_WEIGHTS,
    )


# A table names few models, on many rows.
_known_model = lru_cache(maxsize=1024)(find_model)


@lru_cache(maxsize=256)
def architecture_of(name: str) -> Architecture:
    """The architecture of a catalogue name."""
    return find_model(name).architecture()


@lru_cache(maxsize=1024)
def known_accelerator(name: str) -> Accelerator:
    """The catalogue's accelerator of this name; one of unstated memory is the smallest of its family and form.

    Raises InputError: there is none.
    """
    stem = _UNSTATED_MEMORY.sub("", name)
    accelerator = find_accelerator(stem)
    if stem == name:
        return accelerator
    likes = [part for part in all_accelerators() if _kind(part) == _kind(accelerator)]
    return min(likes, key=lambda part: part.memory_bytes()[0])


def _kind(accelerator: Accelerator) -> Counter[str]:
    """The words of an id without its memory: those of one family and form are equal."""
    return Counter(word for word in accelerator.id.split("-") if not word.endswith("gb"))
