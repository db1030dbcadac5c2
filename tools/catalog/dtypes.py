"""Number formats by the names that planners use, with the bytes of an element, and the weight tensors that are stored
in them.

Block-scaled formats count their scales. It refuses to guess: an unknown name is a `KeyError` at the one table below.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

DType = Literal[
    "fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "int4", "fp4", "mxfp4", "nvfp4"
]  # fmt: skip

DTYPES: tuple[DType, ...] = get_args(DType)

# Bytes per weight. fp8: 128x128 blocks with one fp32 scale; int4: groups of 32 with a bf16 scale;
# mxfp4/mxfp8: 32 elements with a 1-byte scale; nvfp4 (and bare "fp4"): 16 elements with a 1-byte scale.
_WEIGHT_BYTES: dict[DType, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0 + 4.0 / (128 * 128),
    "mxfp8": 1.0 + 1.0 / 32,
    "int8": 1.0,
    "int4": 0.5 + 2.0 / 32,
    "fp4": 0.5 + 1.0 / 16,
    "mxfp4": 0.5 + 1.0 / 32,
    "nvfp4": 0.5 + 1.0 / 16,
}

_ELEMENT_BYTES: dict[DType, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "mxfp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "mxfp4": 0.5,
    "nvfp4": 0.5,
}

# The key of `dense_peak_tflops` that a matmul in this format runs at, in order of preference. A weight-only format
# (int4 weights, bf16 activations) computes at the activations' rate, which the caller decides.
COMPUTE_KEYS: dict[DType, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "fp8": ("fp8",),
    "mxfp8": ("fp8",),
    "int8": ("int8",),
    "int4": ("int4", "int8"),
    "fp4": ("fp4",),
    "mxfp4": ("fp4",),
    "nvfp4": ("fp4",),
}


def weight_bytes_per_element(dtype: DType, group: int | None = None) -> float:
    """Bytes that one weight takes in memory, block scales included (reference: physics §4.6).

    `group` is how many int4 weights share a scale where the checkpoint says so; other formats fix it themselves.
    """
    if dtype == "int4" and group is not None:
        return 0.5 + 2.0 / group
    return _WEIGHT_BYTES[dtype]


def element_bytes(dtype: DType) -> float:
    """Bytes of one activation or KV-cache element, scales not counted."""
    return _ELEMENT_BYTES[dtype]


# How a tensor is cut inside its operator's tensor-parallel group of t devices:
#   sharded     1/t on each device (column or row parallel)
#   kv_heads    1/min(t, KV heads): beyond the number of KV heads the heads are replicated
#   replicated  whole on each device (norms, MLA down-projections, routers)
Split = Literal["sharded", "kv_heads", "replicated"]

# Which number format a tensor is stored in is decided by its class (`WeightDTypes`), not by the checkpoint's name.
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
