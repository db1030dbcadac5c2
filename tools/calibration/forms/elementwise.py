"""Time of a kernel that only moves memory: a launch, then bytes at a share of the bandwidth.

t = sqrt(launch^2 + (bytes / (share x bandwidth))^2): the launch hides behind the first bytes. `moved_bytes` are those
that the fused kernel of an engine must read and write once: a norm with its residual 4 x tokens x hidden x 2 bytes, a
gated activation 3 x tokens x inner x 2 bytes, rope 2 x tokens x (query + key width) x 2 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..chip import Chip
from ..shapes import Elementwise
from .constant import constant
from .elementary import Number, larger


@dataclass(frozen=True, slots=True)
class ElementwiseConstants:
    """Constants of one kind of element-wise kernel."""

    launch_us: float = constant(2.5, 0.5, 20.0, "cost of the kernel at no work, in microseconds")
    memory_share: float = constant(0.8, 0.1, 1.0, "share of the memory bandwidth that is reached", slack=0.3)


def elementwise_s(
    constants: ElementwiseConstants, chip: Chip, kernel: Elementwise, memory_scale: Number = 1.0
) -> Number:
    """Seconds of `kernel`; never under its bytes over the bandwidth.

    `memory_scale` is the share of the memory time that is left where a benchmark finds its data in the L2 cache.
    """
    least_s = memory_scale * kernel.moved_bytes / chip.memory_bytes_s
    seconds = ((constants.launch_us * 1e-6) ** 2 + (least_s / constants.memory_share) ** 2) ** 0.5
    return larger(seconds, least_s)
