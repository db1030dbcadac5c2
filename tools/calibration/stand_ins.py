"""Whose constants stand in where nobody measured: stacks, formats, accelerators, each nearest first.

Only the order lives here; `profile.py` looks along it and says what it took.
"""

from __future__ import annotations

from ..catalog.accelerators import Accelerator

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
# The measured relative whose constants an accelerator without its own takes, nearest first. Same architecture and
# memory first; then the generation before, whose kernels the newer one inherits.
RELATIVES: dict[str, tuple[str, ...]] = {
    "a100-80gb-sxm": ("h100-sxm",),
    "a100-40gb-sxm": ("a100-80gb-sxm",),
    "a100-40gb-pcie": ("a100-80gb-sxm",),
    "a100-80gb-pcie": ("a100-80gb-sxm",),
    "h100-sxm": ("h200-sxm", "a100-80gb-sxm"),
    "h100-pcie": ("h100-sxm",),
    "h100-nvl": ("h100-sxm",),
    "h200-sxm": ("h100-sxm",),
    "h20": ("h100-sxm",),
    "h800": ("h100-sxm",),
    "gh200": ("h200-sxm", "h100-sxm"),
    "b200-sxm": ("gb200", "h200-sxm"),
    "b300-sxm": ("b200-sxm", "gb300"),
    "gb200": ("b200-sxm",),
    "gb300": ("gb200", "b300-sxm"),
    "l40s": ("rtx-pro-6000-blackwell-server", "rtx-4090", "a100-80gb-sxm"),
    "rtx-4090": ("l40s",),
    "rtx-6000-ada": ("l40s",),
    "rtx-pro-6000-blackwell-server": ("l40s", "b200-sxm"),
    "rtx-5090": ("rtx-pro-6000-blackwell-server", "l40s"),
    "v100-32gb-sxm": ("a100-80gb-sxm",),
}
# Whose collectives and exchanges a part without a fabric of its own takes: a PCIe host with peer-to-peer paths.
PCIE_RELATIVES = ("rtx-pro-6000-blackwell-server", "l40s")
# The same for accelerators that are not named above, by what they say of themselves.
_BY_ARCHITECTURE: dict[str, str] = {
    "volta": "a100-80gb-sxm",
    "turing": "a100-80gb-sxm",
    "ampere": "a100-80gb-sxm",
    "ada": "l40s",
    "hopper": "h100-sxm",
    "blackwell": "b200-sxm",
    "blackwell ultra": "b300-sxm",
}


def relatives_of(accelerator: Accelerator) -> tuple[str, ...]:
    """Accelerators whose constants stand in for those of `accelerator`, nearest first, each once, itself left out."""
    direct = RELATIVES.get(accelerator.id)
    if direct is None:
        near = _BY_ARCHITECTURE.get((accelerator.architecture or "").lower())
        direct = () if near is None else (near,)
    order = list(direct)
    # A relative's own relatives come after it: a B300 knows of a B200, and through it of an H200.
    for name in order:
        order.extend(one for one in RELATIVES.get(name, ()) if one not in order)
    return tuple(name for name in order if name != accelerator.id)


def has_pcie_links(accelerator: Accelerator) -> bool:
    """Whether its accelerators reach each other over PCIe, each through the host's switches."""
    return accelerator.scale_up_domain_accelerators == 1
