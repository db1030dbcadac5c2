"""The plan document: frozen pydantic models of one JSON file that holds a whole plan.

This module is the single definition of the format; the JSON Schema (`schema.py`) is generated from it. It says what a
document may *look like*; what a plan must *mean* is said by the rules. Degrees default to 1, as the format says that
degrees that do not apply are 1. The compact form (`repeat`, `like`) is expanded before these models see a document.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    FailFast,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)

from ..catalog.accelerators import Accelerator, AcceleratorName, Bandwidth
from ..catalog.dtypes import DType
from ..displayed import Displayed, Page, named, page_of
from ..frozen import Frozen, Sparse
from ..input import bounds
from .constraints import MOST_CONSTRAINTS, Constraint
from .kept_flags import KeptFlags
from .kv_offload import KVOffload
from .lengths import Arrivals, RequestLengths, Tokens
from .performance import PerformanceClaim
from .prefixes import SharedPrefixes

FORMAT = "shardwright/plan"
VERSION = "1"

Phase = Literal["prefill", "decode"]
PHASES: tuple[Phase, ...] = ("prefill", "decode")
Objective = Literal["latency", "throughput", "cost"]
Statistic = Literal["mean", "p50", "p90", "p95", "p99"]
Relaxation = Literal["tp_in_expert", "attention_dp", "kv_sequence_decode", "vocab_parallel", "redundant_experts"]
ReasoningStepName = Literal[
    "model_structure", "structural_parallelism", "operator_parallelism", "data_parallelism"
]  # fmt: skip
ConstructionStep = Literal["dp_fan_out", "pp_chain", "operator_parallelism", "expert_subgraphs"]

Degree = Annotated[int, bounds.DEGREE.whole()]
Index = Annotated[int, bounds.INDEX.whole()]
Requests = Annotated[int, bounds.REQUESTS.whole()]
LatencyLimit = Annotated[float, bounds.LATENCY_MS.real()]
RequestRate = Annotated[float, bounds.REQUESTS_PER_S.real()]
TokenRate = Annotated[float, bounds.TOKENS_PER_S.real()]
LayerRange = tuple[Index, Index]
Device = Annotated[str, Field(pattern=r"^n(0|[1-9][0-9]{0,8})\.g(0|[1-9][0-9]{0,8})$")]
# A list that is wrong throughout is one fault; the schema explains it element by element.
Devices = Annotated[tuple[Device, ...], Field(min_length=1), FailFast()]
OneDevice = Annotated[tuple[Device, ...], Field(min_length=1, max_length=1), FailFast()]
NodeId = str
# The dependency between decode steps.
RECURRENCE = "kv_cache:t->t+1"


class ModelBlock(Frozen):
    """Which model. `config` is open: the Hugging Face fields that matter, so that the document stands alone."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    config: dict[str, Any]


class HardwareBlock(Sparse):
    """Which accelerators, how many, and links where they differ from the catalogue's (per GPU, one way)."""

    accelerator: AcceleratorName | Accelerator
    nodes: Degree
    gpus_per_node: Degree
    intra_node_bw_gb_s: Bandwidth | None = None
    inter_node_bw_gb_s: Bandwidth | None = None


# Fields of a workload that are left out if they have this value, so that plans are written as before these fields.
UNWRITTEN_DEFAULTS: dict[str, Any] = {"end_to_end_statistic": "mean"}


_LoadBlock = RequestLengths | SharedPrefixes | Arrivals
# Fields without which nothing is said about whether such a block agrees with the others.
_BESIDE = {
    "lengths": {"input_tokens", "output_tokens"},
    "prefixes": {"input_tokens", "output_tokens", "lengths"},
    "arrivals": {"request_rate"},
}


class WorkloadBlock(Sparse):
    """What is served: tokens in and out, requests in flight, limits, and what to make best."""

    input_tokens: Tokens
    output_tokens: Tokens
    concurrency: Requests = 1
    ttft_ms_max: LatencyLimit | None = None
    tpot_ms_max: LatencyLimit | None = None
    end_to_end_ms_max: LatencyLimit | None = None
    ttft_statistic: Statistic = "mean"
    tpot_statistic: Statistic = "mean"
    end_to_end_statistic: Statistic = "mean"
    request_rate: RequestRate | None = None
    min_tokens_per_second: TokenRate | None = None
    prefix_cache_hit_rate: Annotated[float, bounds.SHARE.real()] | None = None
    expert_imbalance: Annotated[float, bounds.IMBALANCE.real()] | None = None
    input_tokens_range: tuple[Tokens, Tokens] | None = None
    output_tokens_range: tuple[Tokens, Tokens] | None = None
    lengths: RequestLengths | None = None
    prefixes: SharedPrefixes | None = None
    arrivals: Arrivals | None = None
    objective: Objective = "latency"

    @model_serializer(mode="wrap")
    def _drop_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write no absent field, and the statistic of the end-to-end latency only if it is not the mean."""
        written = {name: value for name, value in handler(self).items() if value is not None}
        return {name: value for name, value in written.items() if UNWRITTEN_DEFAULTS.get(name, ...) != value}

    @field_validator("input_tokens_range", "output_tokens_range")
    @classmethod
    def _holds_mean(cls, ends: tuple[int, int] | None, info: ValidationInfo) -> tuple[int, int] | None:
        """Refuse a range that runs backwards, or beside the mean that it is stated with."""
        mean = info.data.get((info.field_name or "").removesuffix("_range"))
        if ends is not None and mean is not None and not ends[0] <= mean <= ends[1]:
            raise ValueError(f"{ends[0]} to {ends[1]} is no range with the mean {mean}: state [least, most] around it")
        return ends

    @field_validator(*_BESIDE)
    @classmethod
    def _agrees(cls, block: _LoadBlock | None, info: ValidationInfo) -> _LoadBlock | None:
        """Refuse what contradicts the fields that it is stated beside."""
        if block is not None and _BESIDE[info.field_name or ""] <= info.data.keys():
            block.check_beside(info.data)
        return block


class PrecisionBlock(Frozen):
    """Number formats of weights, KV cache and activations."""

    weights: DType
    kv_cache: DType
    activations: DType

    def on(self, accelerator: Accelerator) -> Self:
        """The same formats on `accelerator`: fp16 in place of bf16 if it has no bf16 units."""
        return self.model_copy(update={name: accelerator.computes_in(value) for name, value in self})


class PolicyBlock(Sparse):
    """The named relaxations in force, the share of device memory that may be used, and what was demanded besides."""

    relaxations: tuple[Relaxation, ...] = ()
    memory_utilization: Annotated[float, bounds.USABLE_SHARE.real()] = 0.90
    constraints: Annotated[tuple[Constraint, ...], Field(min_length=1, max_length=MOST_CONSTRAINTS)] | None = None


class ReasoningStep(Frozen):
    """One decision of the proposer."""

    step: ReasoningStepName
    decision: str


class PhaseStrategy(Sparse):
    """The parallel degrees of one phase. `tp` is attention's; the last fields belong to relaxations."""

    pp: Degree = 1
    sp: Degree = 1
    ep: Degree = 1
    tp: Degree = 1
    tp_ffn: Degree = 1
    replicas: Degree | None = None
    stage_layers: Annotated[tuple[Index, ...], Field(min_length=1)] | None = None
    sp_kind: Literal["all_gather", "ulysses"] | None = None
    attention_dp: Degree | None = None
    tp_expert: Degree | None = None
    kv_sp: Degree | None = None


class Strategy(Frozen):
    """What was decided: replicas, GPUs, and the degrees of each phase."""

    dp: Degree
    gpu_count: Degree
    prefill: PhaseStrategy
    decode: PhaseStrategy

    def of(self, phase: Phase) -> PhaseStrategy:
        """The degrees of one phase."""
        return self.prefill if phase == "prefill" else self.decode


# Values of `overlap` with which two halves of a batch overlap.
TWO_BATCH = (True, "two_batch")


class ServingBlock(Sparse):
    """How an engine is to run the plan, where that was decided."""

    engine: str | None = None
    engine_version: str | None = None
    prefill_chunk_tokens: Tokens | None = None
    max_batch: Requests | None = None
    microbatches: Degree | None = None
    overlap: Annotated[bool, Field(strict=True)] | Literal["none", "two_batch"] | None = None
    kv_offload: KVOffload | None = None
    flags: KeptFlags | None = None


class Rank(Sparse):
    """Which shard of its operator: its place along each dimension that splits the operator."""

    tp: Index | None = None
    sp: Index | None = None
    dp: Index | None = None
    kv_sp: Index | None = None


class _Node(Frozen):
    id: NodeId
    parent: NodeId | None


class _SparseNode(_Node, Sparse):
    """A node with optional fields; `parent` of these is never null in a sound plan."""


class RequestNode(_Node):
    """The root."""

    type: Literal["RequestNode"]


class ReplicaNode(_Node):
    """One data-parallel replica."""

    type: Literal["ReplicaNode"]
    index: Index


class PhaseNode(_SparseNode):
    """The prefill or the decode branch of a replica."""

    type: Literal["PhaseNode"]
    phase: Phase
    tokens_per_step: Index | None = None
    recurrence: str | None = None


class PipelineStageNode(_Node):
    """A contiguous block of layers (`layers` inclusive) on its own devices."""

    type: Literal["PipelineStageNode"]
    index: Index
    layers: LayerRange


class EmbeddingNode(_Node):
    """The first stage's input."""

    type: Literal["EmbeddingNode"]
    devices: Devices


class LMHeadNode(_Node):
    """The last stage's output."""

    type: Literal["LMHeadNode"]
    devices: Devices


class LayerBlockNode(_Node):
    """A run of like layers; the children describe one period of it."""

    type: Literal["LayerBlockNode"]
    layers: LayerRange
    period: Degree = 1


class AttentionNode(_SparseNode):
    """One attention operator, with its norm."""

    type: Literal["AttentionNode"]
    offset: Index = 0
    kind: str | None = None


class FFNNode(_Node):
    """One dense FFN operator, or the shared expert inside a MoENode."""

    type: Literal["FFNNode"]
    offset: Index = 0


class MoENode(_Node):
    """One mixture-of-experts operator."""

    type: Literal["MoENode"]
    offset: Index = 0


class ShardNode(_Node):
    """One shard of the enclosing operator's compute, on one device."""

    type: Literal["ShardNode"]
    rank: Rank = Rank()
    devices: OneDevice


class LinearNode(_Node):
    """A finer split of an operator, shown only."""

    type: Literal["LinearNode"]
    rank: Rank = Rank()
    devices: Devices


class RouterNode(_Node):
    """The routing of a MoE operator."""

    type: Literal["RouterNode"]
    devices: Devices


class ExpertNode(_Node):
    """One device's group of experts (several devices only under `tp_in_expert`)."""

    type: Literal["ExpertNode"]
    experts: Annotated[tuple[Index | LayerRange, ...], FailFast()]
    devices: Devices


class KVCacheUpdateNode(_Node):
    """The write of one attention operator's K and V."""

    type: Literal["KVCacheUpdateNode"]
    devices: Devices


class AllReduceNode(_Node):
    """A sum over the devices; one node stands for all groups."""

    type: Literal["AllReduceNode"]
    devices: Devices


class AllGatherNode(_Node):
    """A gather over the devices."""

    type: Literal["AllGatherNode"]
    devices: Devices


class ReduceScatterNode(_Node):
    """A sum whose result stays scattered over the devices."""

    type: Literal["ReduceScatterNode"]
    devices: Devices


class AllToAllNode(_Node):
    """Dispatch or combine of experts, or Ulysses SP's exchange."""

    type: Literal["AllToAllNode"]
    role: Literal["dispatch", "combine", "sequence_in", "sequence_out"]
    devices: Devices


Node = Annotated[
    RequestNode
    | ReplicaNode
    | PhaseNode
    | PipelineStageNode
    | EmbeddingNode
    | LMHeadNode
    | LayerBlockNode
    | AttentionNode
    | FFNNode
    | MoENode
    | ShardNode
    | LinearNode
    | RouterNode
    | ExpertNode
    | KVCacheUpdateNode
    | AllReduceNode
    | AllGatherNode
    | ReduceScatterNode
    | AllToAllNode,
    Field(discriminator="type"),
]

NODE_MODELS: Mapping[str, type[BaseModel]] = {model.__name__: model for model in get_args(get_args(Node)[0])}
EdgeType = Literal["data", "pipeline", "synchronization"]
Carries = Literal["activations", "kv_cache", "tokens", "routing"]


class Edge(Sparse):
    """A directed edge between two nodes; `bytes` is derived where absent."""

    source: NodeId
    target: NodeId
    type: EdgeType
    carries: Carries | None = None
    bytes: Annotated[int, bounds.EDGE_BYTES.whole()] | None = None


class Plan(Displayed, Sparse):
    """A whole plan. `model_dump_json()` is the file format."""

    format: Literal["shardwright/plan"]
    version: Literal["1"]
    model: ModelBlock
    hardware: HardwareBlock
    workload: WorkloadBlock
    precision: PrecisionBlock
    policy: PolicyBlock = PolicyBlock()
    reasoning: tuple[ReasoningStep, ...] = ()
    construction: tuple[ConstructionStep, ...] = ()
    strategy: Strategy
    serving: ServingBlock | None = None
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    performance: PerformanceClaim | None = None

    def one_line(self) -> str:
        """The model, the GPUs and the size of the graph."""
        accelerator = self.hardware.accelerator
        gpus = f"{self.strategy.gpu_count} {accelerator if isinstance(accelerator, str) else accelerator.id}"
        return f"{named(self.model.name)} on {named(gpus)}, {len(self.nodes):,} nodes, {len(self.edges):,} edges"

    def show(self) -> Page:
        """The interactive page: a notebook shows it, and it can be saved as a file.

        Raises InputError: nothing of `shardwright` itself was used before, which makes the page.
        """
        return page_of(self)
