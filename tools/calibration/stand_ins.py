"""Whose constants stand in where nobody measured: stacks, formats, accelerators, each nearest first.

Only the order lives here, that of accelerators as their catalogue entries state it; `profile.py` looks along it and
says what it took.
"""

from __future__ import annotations

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import all_accelerators, find_accelerator
from .profile_file import shipped_profiles

# The profile of no chip: medians over those that were measured.
POOLED = "pooled"
# The stack whose constants stand in for a stack without its own, best first: vLLM's tables are the most complete, and
# NVIDIA's GEMM and attention kernels differ least from them.
FRAMEWORKS: tuple[str, ...] = ("vllm", "trtllm", "sglang", "deepep", "deepgemm", "nccl", "vidur", POOLED)
# Libraries that every engine calls, and the profile of none.
ANY_STACK = ("nccl", "deepep", POOLED)
# Formats (variants) whose constants stand in for a format that no table covers, nearest first. The constants are shares
# of the peak of the format itself, so the stand-in brings no bytes and no FLOP/s along.
STAND_INS: dict[str, tuple[str, ...]] = {
    "fp32": ("bf16",),
    "fp16": ("bf16",),
    "bf16": ("fp16",),
    "fp8": ("fp8_block", "mxfp8"),
    "fp8_block": ("fp8", "mxfp8"),
    "mxfp8": ("fp8_block", "fp8"),
    "int8": ("sq", "fp8", "fp8_block"),
    "int4": ("sq", "fp8", "fp8_block"),
    "fp4": ("nvfp4", "mxfp4", "fp8", "fp8_block"),
    "mxfp4": ("nvfp4", "fp8", "fp8_block"),
    "nvfp4": ("mxfp4", "fp8", "fp8_block"),
    "mxfp4_wo": ("int4_wo", "int8_wo", "bf16"),
    "int4_wo": ("mxfp4_wo", "int8_wo", "bf16"),
    "int8_wo": ("int4_wo", "mxfp4_wo", "bf16"),
    "send_recv": ("all_to_all",),
    "send_recv_staged": ("all_to_all_staged",),
    "routing": ("norm",),
    "rope": ("activation",),
}


def relatives_of(accelerator: Accelerator) -> tuple[str, ...]:
    """Accelerators whose constants stand in for those of `accelerator`, nearest first, each once, itself left out.

    The entry says whose (`kernels_like`); where it does not, the first of the same architecture that the catalogue has.

    Raises:
        UnknownNameError: the entry, which may be a user's own, names one that the catalogue does not have.
    """
    known = {one.id: one for one in all_accelerators()}
    order = [find_accelerator(name).id for name in accelerator.kernels_like]
    if not order and accelerator.architecture:
        alike = (one.id for one in known.values() if _alike(one, accelerator))
        order = [name for name in (next(alike, None),) if name is not None]
    # A relative's own relatives come after it: a B300 knows of a B200, and through it of an H200.
    for name in order:
        order.extend(one for one in known[name].kernels_like if one not in order)
    return tuple(name for name in order if name != accelerator.id)


def kernel_generation(accelerator: Accelerator) -> str:
    """The generation whose kernels serve `accelerator`: its own, or its nearest relative's where nobody measured that.

    Raises:
        UnknownNameError: as `relatives_of`.
    """
    measured = {one.generation for one in all_accelerators() if one.id in shipped_profiles()}
    near = (find_accelerator(name).generation for name in relatives_of(accelerator))
    order = (accelerator.generation, *near)
    return next((generation for generation in order if generation in measured), accelerator.generation)


def _alike(one: Accelerator, other: Accelerator) -> bool:
    return one.id != other.id and (one.architecture or "").lower() == (other.architecture or "").lower()


def link_relatives_of(accelerator: Accelerator) -> tuple[str, ...]:
    """As `relatives_of`, for what goes over links: hosts with PCIe links like its own before all others."""
    if accelerator.scale_up_domain_accelerators != 1:
        return relatives_of(accelerator)
    alike = (one.id for one in all_accelerators() if one.scale_up_domain_accelerators == 1)
    return tuple(dict.fromkeys((*(name for name in alike if name != accelerator.id), *relatives_of(accelerator))))
