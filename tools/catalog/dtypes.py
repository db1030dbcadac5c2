"""Number formats by the names that planners use, with the bytes of an element, and the weight tensors that are stored
in them.

Block-scaled formats count their scales. Nothing is guessed: an unknown name is a `KeyError` at the one table below.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

DType = Literal[
    "fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "int4", "fp4", "mxfp4", "nvfp4"
]  # fmt: skip

DTYPES: tuple[DType, ...] = get_args(DType)

# Formats of 16 bits or more, the usual first.
WIDE: tuple[DType, ...] = ("bf16", "fp16", "fp32")


class _Format(Struct, frozen=True):
    """Bytes of an element, bytes of a weight's part of its scales, and which units compute in the format.

    `units` are keys of `dense_peak_tflops`, in order of preference. A weight-only format (int4 weights, bf16
    activations) computes at the activations' rate, which the caller decides.
    """

    element_bytes: float
    scale_bytes: float
    units: tuple[str, ...]


# Scales: fp8 has an fp32 per block of 128x128, int4 a bf16 per group of 32; the others have a byte per 32 elements,
# nvfp4 (and bare "fp4") per 16.
_FORMATS: dict[DType, _Format] = {
    "fp32": _Format(4.0, 0.0, ("fp32",)),
    "bf16": _Format(2.0, 0.0, ("bf16",)),
    "fp16": _Format(2.0, 0.0, ("fp16",)),
    "fp8": _Format(1.0, 4.0 / (128 * 128), ("fp8",)),
    "mxfp8": _Format(1.0, 1.0 / 32, ("fp8",)),
    "int8": _Format(1.0, 0.0, ("int8",)),
    "int4": _Format(0.5, 2.0 / 32, ("int4", "int8")),
    "fp4": _Format(0.5, 1.0 / 16, ("fp4",)),
    "mxfp4": _Format(0.5, 1.0 / 32, ("fp4",)),
    "nvfp4": _Format(0.5, 1.0 / 16, ("fp4",)),
}
COMPUTE_KEYS = {dtype: number_format.units for dtype, number_format in _FORMATS.items()}


def weight_bytes_per_element(dtype: DType, group: int | None = None) -> float:
    """Bytes that one weight takes in memory, block scales included (reference: physics §4.6).

    `group` is how many int4 weights share a scale where the checkpoint says so; other formats fix it themselves.
    """
    if dtype == "int4" and group is not None:
        return 0.5 + 2.0 / group
    return _FORMATS[dtype].element_bytes + _FORMATS[dtype].scale_bytes


def element_bytes(dtype: DType) -> float:
    """Bytes of one activation or KV-cache element, scales not counted."""
    return _FORMATS[dtype].element_bytes


# How a tensor is cut inside its operator's tensor-parallel group of t devices:
#   sharded     1/t on each device (column or row parallel)
#   kv_heads    1/min(t, KV heads): beyond the number of KV heads the heads are replicated
#   replicated  whole on each device (norms, MLA down-projections, routers)
Split = Literal["sharded", "kv_heads", "replicated"]

# A tensor's class, not the checkpoint's name, decides its number format (`WeightDTypes`).
TensorClass = Literal["attention", "linear", "expert", "vocabulary", "router", "norm"]


class WeightTensor(Struct, frozen=True):
    """One weight tensor (or a group of like ones) of one operator in one layer."""

    name: str
    elements: int
    split: Split
    tensor_class: TensorClass = "linear"


def vector(name: str, elements: int, *, sharded: bool = False) -> WeightTensor:
    """A bias, norm or sink vector."""
    return WeightTensor(name, elements, "sharded" if sharded else "replicated", "norm")


def matrix(name: str, elements: int) -> WeightTensor:
    """A weight matrix that column or row parallelism cuts."""
    return WeightTensor(name, elements, "sharded")
