"""What the page of a plan shows, as data: the page's script reads this, and `show --format json` prints it.

Boxes, nodes, devices, rules and findings are named by their places in the lists of `PageData`. Times are milliseconds
of one pass by itself, as in the timeline; FLOPs and bytes are of all GPUs together.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..draw.box import BoxKind, LinkKind
from ..plan.document import Phase
from ..plan.performance import (
    CostEstimate,
    Explanation,
    LatencyEstimate,
    LoadEstimate,
    Ranges,
    Sparse,
    ThroughputEstimate,
)


class LinkData(Sparse):
    """Edges between two boxes that stand side by side; `is_faulty`: a finding names one of them."""

    source: int
    target: int
    kind: LinkKind
    label: str = ""
    is_faulty: bool = False


class BoxData(Sparse):
    """A node of the plan, or `times` of them that are alike; of those the inside of the first is shown.

    `parts` are the boxes inside: parts that no link joins, each column by column; a box that `goes_down` has its
    columns below one another. `devices` are those of all that it stands for. `critical_ms` is the time that its
    operators have on the critical path of their phase.
    """

    kind: BoxKind
    type: str
    title: str
    lines: tuple[str, ...]
    times: int
    members: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], ...], ...] = ()
    goes_down: bool = False
    devices: tuple[int, ...] = ()
    links: tuple[LinkData, ...] = ()
    findings: tuple[int, ...] = ()
    findings_inside: int = 0
    critical_ms: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    sent_bytes: float = 0.0


class NodeData(Sparse):
    """A node of the document that a box stands for."""

    id: str
    devices: tuple[int, ...]


class RuleData(Sparse):
    """A rule that looks at nodes of some types."""

    id: str
    requirement: str
    severity: Literal["error", "warning"]


class FindingData(Sparse):
    """A finding, with the boxes that it is drawn at."""

    rule: str
    severity: Literal["error", "warning"]
    message: str
    remedy: str
    path: str
    boxes: tuple[int, ...]


class LaneData(Sparse):
    """A lane of the timeline, of all `devices` that run the same at the same time.

    `events` has five numbers for each operator, one after another: the place of its name in the timeline's `names`, its
    layer (-1: none), its beginning and its length in microseconds, and 1 where it is on the critical path.
    """

    name: str
    devices: tuple[int, ...]
    events: tuple[float, ...]


class TimelineData(Sparse):
    """One phase in time; `is_folded`: like layers are drawn as one."""

    phase: Phase
    ms: float
    is_folded: bool
    names: tuple[str, ...]
    lanes: tuple[LaneData, ...]


class GpuData(Sparse):
    """What one GPU holds. `memory_bytes` are weights, KV cache, activations and communication; absent: not known."""

    device: int
    holds: tuple[str, ...]
    memory_bytes: tuple[int, int, int, int] | None = None
    usable_bytes: int | None = None


class ClusterNodeData(Sparse):
    """The GPUs of one node that the plan uses, and how many it leaves idle."""

    name: str
    gpus: tuple[GpuData, ...]
    idle: int


class RackData(Sparse):
    """Nodes whose GPUs one fabric joins; without such a fabric all nodes of the cluster."""

    name: str
    nodes: tuple[ClusterNodeData, ...]


class Figures(Sparse):
    """The estimate, as far as the page shows it."""

    latency: LatencyEstimate
    throughput: ThroughputEstimate
    load: LoadEstimate
    cost: CostEstimate | None
    ranges: Ranges
    explanation: Explanation | None


class PageData(Sparse):
    """The whole page. Where there are no `figures`, `no_figures` says why.

    `labels` are those of the page in the language that it is shown in, by the English ones, numbers as `{}`.
    """

    format: Literal["shardwright/page"] = "shardwright/page"
    version: Literal["1"] = "1"
    title: str
    strategy: str
    note: str
    valid: bool
    boxes: tuple[BoxData, ...]
    nodes: tuple[NodeData, ...]
    devices: tuple[str, ...]
    rules: tuple[RuleData, ...]
    judged: dict[str, tuple[int, ...]]
    findings: tuple[FindingData, ...]
    timelines: tuple[TimelineData, ...]
    racks: tuple[RackData, ...]
    figures: Figures | None = None
    no_figures: str = ""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
