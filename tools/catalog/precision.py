"""Which number format each class of weight tensor has when a model is served at a named precision.

A precision names the format of the bulk of the weights, never of all: embedding, LM head, router, norms and biases stay
in 16 bits, and what a 4-bit format covers depends on the checkpoint. Nothing here knows sizes.
"""

from .architecture import Architecture, WeightDTypes
from .dtypes import WIDE, DType

_EIGHT_BIT: tuple[DType, ...] = ("fp8", "mxfp8", "int8")
_FOUR_BIT_FLOATS: tuple[DType, ...] = ("fp4", "mxfp4", "nvfp4")


def weight_dtypes(architecture: Architecture, weights: DType) -> WeightDTypes:
    """The format of each tensor class of `architecture` for the precision `weights`.

    - 16 and 32 bits: every tensor.
    - the checkpoint's own format (bare `fp4` means whichever 4-bit float it has): exactly as the checkpoint has it, as
      in gpt-oss (mxfp4 experts alone, all else bf16), Kimi-K2.5 (int4 routed experts, all else bf16), DeepSeek-V4 (fp4
      experts, fp8 elsewhere), NVIDIA's Gemma 4 (nvfp4 FFN, bf16 attention), Meta's Llama-3.1-405B-FP8 (fp8 FFN, bf16
      attention).
    - fp8, mxfp8, int8 otherwise: attention, linear and expert tensors; vocabulary, router and norms keep 16 bits (bf16,
      or fp16 where the checkpoint has that).
    - 4 bits otherwise, MoE: the routed experts; the other matmuls in 8 bits where the checkpoint has them in 8 bits,
      else in 16.
    - 4 bits otherwise, dense: all linear tensors.
    """
    native = architecture.native_dtypes
    if weights in WIDE:
        return _all_matmuls(weights, weights)
    base: DType = "fp16" if native.norm == "fp16" else "bf16"
    if is_native(architecture.native_precision, weights):
        return native
    if weights in _EIGHT_BIT:
        return _all_matmuls(weights, base)
    linear = weights
    if architecture.is_moe:
        linear = native.linear if native.linear in _EIGHT_BIT else base
    return WeightDTypes(attention=linear, linear=linear, expert=weights, vocabulary=base, router=base, norm=base)


def _all_matmuls(weights: DType, wide: DType) -> WeightDTypes:
    return WeightDTypes(attention=weights, linear=weights, expert=weights, vocabulary=wide, router=wide, norm=wide)


def is_native(native: DType, weights: DType) -> bool:
    """Whether weights stored in `native` have the format `weights`; bare fp4 means whichever 4-bit float."""
    return native == weights or (weights == "fp4" and native in _FOUR_BIT_FLOATS)
