"""Weight tensors: how large, how tensor parallelism may cut them, and whose number format they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# How a tensor is cut inside its operator's tensor-parallel group of t devices:
#   sharded     1/t on each device (column or row parallel)
#   kv_heads    1/min(t, KV heads): beyond the number of KV heads the heads are replicated
#   replicated  whole on each device (norms, MLA down-projections, routers)
Split = Literal["sharded", "kv_heads", "replicated"]

# Which number format a tensor is stored in is decided by its class (`WeightDTypes`), not by the checkpoint's name.
TensorClass = Literal["attention", "linear", "expert", "vocabulary", "router", "norm"]


@dataclass(frozen=True, slots=True)
class WeightTensor:
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
