"""Which number formats a plan has if some were not stated, and which may be chosen if they were left open.

Left open, the formats are those of undisputed quality in usual practice: the checkpoint's own, 16 bits, and
fp8 where the accelerator computes in it. It knows nothing of what a format costs in quality on a given task.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

from msgspec import Struct

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.dtypes import DTYPES, DType
from ...tools.engines.names import JUDGED, engine_of
from ...tools.errors import InputError
from ...tools.language.errors import RequestError
from ...tools.language.merge import refusal
from ...tools.language.said import OpenPrecisions, Said, StatedPrecision
from ...tools.plan.describe import precision_name
from ...tools.plan.document import PrecisionBlock
from .intent import Assumption

# Said with every choice of a format.
QUALITY = "what a format costs in quality is yours to judge"
_OR = re.compile(r"\s?,\s?|\sor\s")
_NAMES_BF16 = re.compile(r"bf|brain", re.IGNORECASE)
_SIXTEEN: tuple[DType, ...] = ("bf16", "fp16")
_WIDE: tuple[DType, ...] = ("fp32", "bf16", "fp16")


def said_weights(text: str) -> dict[str, Any]:
    """The fields of `Said` that one value for the weights states: a format, `fp8,bf16` or `fp8 or bf16`, or `any`.

    Raises:
        InputError: it is none of these.
    """
    names = [part.strip().replace("-", "_") for part in _OR.split(text.strip().lower()[:200])]
    if names == ["any"]:
        return {"precisions": OpenPrecisions(is_open=True)}
    unknown = next((name for name in names if name not in DTYPES), None)
    if unknown is not None:
        raise InputError(
            f"{unknown!r} is no number format of weights; there are {', '.join(DTYPES)}, any; several take commas"
        )
    chosen: list[DType] = [dtype for name in dict.fromkeys(names) for dtype in DTYPES if dtype == name]
    if len(chosen) == 1:
        return {"weights": chosen[0]}
    return {"precisions": OpenPrecisions(named=tuple(StatedPrecision(weights=dtype) for dtype in chosen))}


class Formats(Struct, frozen=True):
    """The number formats of a request, or what they may be chosen of (`precision` is then the first of these)."""

    precision: PrecisionBlock
    precisions: OpenPrecisions | None
    assumptions: tuple[Assumption, ...]


def complete_precision(said: Said, native: DType, accelerator: Accelerator | None) -> Formats:
    """The number formats of `said`, with assumptions for what is left out; `native` is the format of the checkpoint.

    Raises:
        RequestError: a format is stated and left open, or none is left to choose.
    """
    _check_cache(said)
    if said.precisions is not None:
        return _to_choose(said, said.precisions, native, accelerator)
    weights = _stated(said, "weights", accelerator)
    kv_cache, activations = _stated(said, "kv_cache", accelerator), _stated(said, "activations", accelerator)
    assumed: list[Assumption] = []
    if weights is None:
        weights = _on(native, accelerator)
        reason = "the checkpoint's own format"
        if weights != native:
            reason = f"the checkpoint is {native}, and {accelerator.id if accelerator else ''} has no {native} units"
        assumed.append(Assumption(field="precision.weights", value=weights, reason=reason))
    if kv_cache is None:
        kv_cache = _kv_format(weights, accelerator)
        reason = "16 bits unless the request says otherwise"
        assumed.append(Assumption(field="precision.kv_cache", value=kv_cache, reason=reason))
    if activations is None:
        activations, reason = _activation_format(weights, accelerator)
        assumed.append(Assumption(field="precision.activations", value=activations, reason=reason))
    block = PrecisionBlock(weights=weights, kv_cache=kv_cache, activations=activations)
    return Formats(block, None, tuple(assumed))


def _to_choose(said: Said, asked: OpenPrecisions, native: DType, accelerator: Accelerator | None) -> Formats:
    common = StatedPrecision(weights=said.weights, kv_cache=said.kv_cache, activations=said.activations)
    for name, stated in common:
        chosen = [value for precision in asked.named if (value := getattr(precision, name)) is not None]
        if stated is not None and (chosen or (name == "weights" and asked.is_open)):
            other = f"to be chosen of {', '.join(dict.fromkeys(chosen))}" if chosen else "left open"
            raise refusal(said, f"the format of {name.replace('_', ' ')} is stated ({stated}) and {other}; keep one")
    for precision in (common, *asked.named):
        for _, chosen_format in precision:
            if accelerator is not None and chosen_format and accelerator.computes_in(chosen_format) != chosen_format:
                raise _absent(said, chosen_format, accelerator)
    asked = asked.model_copy(update={"common": common})
    formats = formats_on(asked, native, accelerator)
    if asked.is_open:
        reason = (
            f"the number format was left open: looked at are the checkpoint's own ({native}), 16 bits, and fp8 where "
            "the accelerator computes in it; nothing of 4 bits that was not named"
        )
    else:
        reason = "the formats to choose from, what was not said of them being as usual"
    assumption = Assumption(
        field="precision", value=", ".join(precision_name(block) for block in formats), reason=f"{reason}; {QUALITY}"
    )
    return Formats(formats[0], asked, (assumption,))


def _on(wanted: DType, accelerator: Accelerator | None) -> DType:
    return wanted if accelerator is None else accelerator.computes_in(wanted)


def _stated(said: Said, name: str, accelerator: Accelerator | None) -> DType | None:
    """The format that was stated for a field; "16 bits" are those that the accelerator has.

    Raises:
        RequestError: bf16 by its name, which the accelerator has no units for.
    """
    stated: DType | None = getattr(said, name)
    if accelerator is None or stated is None or accelerator.computes_in(stated) == stated:
        return stated
    words = said.words.get(name, stated)
    if _NAMES_BF16.search(words):
        raise _absent(said, stated, accelerator)
    return accelerator.computes_in(stated)


def _check_cache(said: Said) -> None:
    """Check that the engine has every format of the KV cache that is stated.

    Raises:
        RequestError: it has not.
    """
    name = engine_of(said.engine)
    engine = None if name is None else JUDGED[name]
    stated = [said.kv_cache, *(precision.kv_cache for precision in (said.precisions.named if said.precisions else ()))]
    unknown = next((dtype for dtype in stated if engine and dtype is not None and dtype not in engine.caches), None)
    if engine is not None and unknown is not None:
        known = ", ".join(engine.caches)
        raise refusal(said, f"{engine.title} has no KV cache in {unknown} (rule EN014); name one of {known}")


def _absent(said: Said, wanted: DType, accelerator: Accelerator) -> RequestError:
    there = accelerator.computes_in(wanted)
    return refusal(said, f"{accelerator.id} has no {wanted} units, and no engine serves {wanted} on it; say {there}")


def _kv_format(weights: DType, accelerator: Accelerator | None) -> DType:
    return "fp16" if weights == "fp16" else _on("bf16", accelerator)


def _activation_format(weights: DType, accelerator: Accelerator | None) -> tuple[DType, str]:
    """The format that matmuls compute in, and why: that of the weights where the accelerator has units for it.

    int4 and mxfp4 are stored formats only: kernels widen the weights and compute with 16-bit activations.
    """
    if weights in _WIDE:
        return weights, "as the weights"
    sixteen = _on("bf16", accelerator)
    if weights in ("int4", "mxfp4"):
        return sixteen, f"{weights} is a format of weights alone"
    peaks = None if accelerator is None else accelerator.dense_peak_tflops
    keys = {"fp8": "fp8", "mxfp8": "fp8", "int8": "int8", "fp4": "fp4", "nvfp4": "fp4"}
    if peaks is None or getattr(peaks, keys[weights]) is not None:
        return weights, "as the weights"
    return sixteen, f"{accelerator.id if accelerator else 'the accelerator'} has no {keys[weights]} units"


def formats_on(asked: OpenPrecisions, native: DType, accelerator: Accelerator | None) -> tuple[PrecisionBlock, ...]:
    """The number formats that may be chosen on `accelerator` (`None`: any), those of the checkpoint (`native`) first.

    Raises:
        RequestError: what is excluded leaves none.
    """
    named = [choice for choice in asked.named if choice.weights is not None]
    varied = [choice for choice in asked.named if choice.weights is None]
    base: list[DType] = []
    if asked.is_open:
        base = _usual(native, accelerator)
    elif varied or not named:
        base = [asked.common.weights or _on(native, accelerator)]
    pairs = product(base, varied or [StatedPrecision()])
    wanted = [choice.model_copy(update={"weights": weights}) for weights, choice in pairs] + named
    blocks = [
        _completed(choice, asked.common, native, accelerator)
        for choice in wanted
        if choice.weights not in asked.excluded
    ]
    if not blocks:
        raise RequestError(f"no number format is left: {', '.join(asked.excluded)} are excluded; name one to use")
    return tuple(sorted(dict.fromkeys(blocks), key=lambda block: block.weights != _on(native, accelerator)))


def _usual(native: DType, accelerator: Accelerator | None) -> list[DType]:
    """Formats of weights that need no leave: never 4 bits, unless the checkpoint has them.

    A checkpoint of 8 bits or less is not cast to another narrow format, which no published one is.
    """
    usual: list[DType] = [_on(native, accelerator)]
    if native not in _SIXTEEN:
        usual.append(_on("bf16", accelerator))
    if native in _WIDE and (accelerator is None or accelerator.dense_peak_tflops.fp8 is not None):
        usual.append("fp8")
    return usual


def _completed(
    stated: StatedPrecision, common: StatedPrecision, native: DType, accelerator: Accelerator | None
) -> PrecisionBlock:
    weights = stated.weights or _on(native, accelerator)
    return PrecisionBlock(
        weights=weights,
        kv_cache=stated.kv_cache or common.kv_cache or _kv_format(weights, accelerator),
        activations=stated.activations or common.activations or _activation_format(weights, accelerator)[0],
    )
