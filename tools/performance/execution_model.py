"""The execution DAG as data: every operator of a phase on every device, in the format `shardwright/execution`.

Edges of type `data` carry tensors and their shapes fit; edges of type `order` say only that kernels of one device, or
transfers on its links, run one after the other.
"""

from __future__ import annotations

from typing import Literal

from ..catalog.dtypes import DType
from ..frozen import Frozen, Sparse
from ..plan.document import Phase
from ..plan.performance import ConstantsOrigin
from .operation import COLLECTIVES, OpName, Role

FORMAT = "shardwright/execution"


class ExecutionNode(Sparse):
    """One operator on one device, or one collective over its devices. FLOPs, bytes and shapes are per device.

    `repeat` stands for that many layers, or chunks of a prompt, in a row (folded form only). `ms` is the time of one
    repetition, `constants` where those of its time come from (absent where it takes none).
    """

    id: str
    op: OpName
    role: Role | None = None
    phase: Phase
    layer: int | None = None
    repeat: int | None = None
    device: str | None = None
    devices: tuple[str, ...] | None = None
    plan_node: str | None = None
    input_shape: tuple[tuple[str, int], ...]
    output_shape: tuple[tuple[str, int], ...]
    dtype: DType
    flops: float
    bytes: float
    comm_bytes: float
    ms: float
    constants: ConstantsOrigin | None = None

    @property
    def is_collective(self) -> bool:
        """Whether it runs on links."""
        return self.op in COLLECTIVES


def devices_of(node: ExecutionNode) -> tuple[str, ...]:
    """The devices that a node keeps busy."""
    return node.devices or ((node.device,) if node.device is not None else ())


class ExecutionEdge(Frozen):
    """`target` runs after `source`; `data`: on its output."""

    source: str
    target: str
    type: Literal["data", "order"]


class ExecutionDAG(Frozen):
    """One phase of a plan: a whole prefill pass of one prompt, or one decode step of one microbatch."""

    format: Literal["shardwright/execution"] = FORMAT
    version: Literal["1"] = "1"
    phase: Phase
    folded: bool
    nodes: tuple[ExecutionNode, ...]
    edges: tuple[ExecutionEdge, ...]
