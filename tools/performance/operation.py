"""One primitive operator of a layer with its shapes, cost and time, and the longest path through operators.

Folded timing and the unfolded DAG are made from the same operations, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..calibration.forms.elementary import Number, is_plain, larger, pick
from ..calibration.profile import DATASHEET, Origin
from ..catalog.dtypes import DType

OpName = Literal[
    "Linear",
    "Norm",
    "Embedding",
    "Attention",
    "KVCacheUpdate",
    "Expert",
    "Routing",
    "Split",
    "Aggregate",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "AllToAll",
    "SendRecv",
]
Role = Literal["qkv", "q_a", "kv_a", "qkv_a", "q_b", "kv_b", "out", "gate_up", "down", "router", "lm_head"]
Kind = Literal["compute", "memory", "communication"]
# What a step of the critical path keeps busy: arithmetic, memory, links inside a domain, links between domains, the
# processor of the host; `pipeline` is a wait for another stage.
Resource = Literal["compute", "memory", "link", "network", "host", "pipeline"]
# The operator of the plan that an operation belongs to.
Owner = Literal["embedding", "attention", "ffn", "moe", "shared", "head", "pipeline", "stage"]
# On which devices it runs: values of the first row have an instance per device, the others one per device group.
Where = Literal[
    "attention", "ffn", "stage", "embedding", "head",
    "tp", "sp", "kv_sp", "ffn_tp", "ffn_all", "stage_all", "tokens", "vocabulary", "expert_tp",
    "pipeline", "received", "attention+ffn", "attention+stage", "ffn+attention", "ffn+stage",
]  # fmt: skip
PER_DEVICE: frozenset[Where] = frozenset({"attention", "ffn", "stage", "embedding", "head"})
COLLECTIVES: frozenset[OpName] = frozenset({"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "SendRecv"})
Shape: TypeAlias = "tuple[tuple[str, Number], ...]"


class TokenLoad(Struct, frozen=True):
    """Tokens of one pass: `sequences` of each attention-DP group, new and (`context`) cached tokens of each sequence.

    `groups` attention-DP groups are at work. `sequences`, and `groups` with it, may be an array, to time many loads at
    once. `beside_prompts`: the pass also carries prompts, which are not counted here.
    """

    sequences: Number
    new_tokens: int
    context: int
    groups: Number = 1
    beside_prompts: bool = False

    @property
    def key(self) -> object:
        """Equal for equal loads, and hashable for arrays too."""
        if is_plain(self.sequences):
            return self
        groups = self.groups if is_plain(self.groups) else self.groups.tobytes()
        return self.sequences.tobytes(), self.new_tokens, self.context, groups, self.beside_prompts

    @property
    def tokens(self) -> Number:
        """New tokens of one group."""
        return self.sequences * self.new_tokens

    @property
    def all_tokens(self) -> Number:
        """New tokens of all groups."""
        return self.tokens * self.groups


class Operation(NamedTuple):
    """One operator of a layer on one device (or one collective of its group).

    `inputs` names the operations of the same program that it reads (empty: the layer's input), `after` those that it
    only waits for. Times are seconds, sizes bytes; `sent_bytes` is what each rank sends. A collective that
    `spans_domains` uses the network. `origin`: where the constants of its time come from.
    `of_sequences`: it moves the state of each sequence, however many tokens a pass has.
    """

    # A tuple, several times as fast as a dataclass: an estimate makes and changes thousands.
    name: str
    op: OpName
    owner: Owner
    where: Where
    input_shape: Shape
    output_shape: Shape
    role: Role | None = None
    inputs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    dtype: DType = "bf16"
    flops: Number = 0.0
    moved_bytes: Number = 0.0
    sent_bytes: Number = 0.0
    seconds: Number = 0.0
    kind: Kind = "memory"
    spans_domains: bool = False
    origin: Origin = DATASHEET
    of_sequences: bool = False

    @property
    def resource(self) -> Resource:
        """The resource that it keeps busy."""
        if self.kind == "communication":
            return "network" if self.spans_domains else "link"
        return self.kind


def is_core(operation: Operation) -> bool:
    """Whether it belongs to the attention core: its time depends on cached tokens or on the number of sequences."""
    return operation.op == "Attention" or operation.of_sequences


class Path(Struct, frozen=True):
    """The longest path through a program: its operations in order, and their seconds.

    For arrays only the seconds, since the longest path differs from element to element.
    """

    operations: tuple[Operation, ...]
    seconds: Number

    def kind_seconds(self, kind: Kind) -> float:
        """Seconds of the path's operations of one kind."""
        return sum(float(operation.seconds) for operation in self.operations if operation.kind == kind)


def longest_path(operations: Sequence[Operation]) -> Path:
    """The critical path of `operations`, given in an order that respects `inputs` and `after`."""
    if not all(is_plain(operation.seconds) for operation in operations):
        return Path((), _longest_seconds(operations))
    finish: dict[str, float] = {}
    before: dict[str, str | None] = {}
    by_name = {operation.name: operation for operation in operations}
    for operation in operations:
        latest: str | None = None
        start = 0.0
        for name in (*operation.inputs, *operation.after):
            if latest is None or finish[name] > start:
                latest, start = name, finish[name]
        finish[operation.name] = start + float(operation.seconds)
        before[operation.name] = latest
    if not operations:
        return Path((), 0.0)
    name: str | None = max(finish, key=lambda key: finish[key])
    seconds = finish[name]
    chain: list[Operation] = []
    while name is not None:
        chain.append(by_name[name])
        name = before[name]
    return Path(tuple(reversed(chain)), seconds)


def seconds_on_path(operations: Sequence[Operation], is_meant: Callable[[Operation], bool]) -> Number:
    """Seconds on the critical path of the operations for which `is_meant`; elementwise for arrays."""
    finish: dict[str, Number] = {}
    meant: dict[str, Number] = {}
    last: Number = 0.0
    seconds: Number = 0.0
    for operation in operations:
        start: Number = 0.0
        before: Number = 0.0
        for name in (*operation.inputs, *operation.after):
            later = finish[name] > start
            start, before = pick(later, finish[name], start), pick(later, meant[name], before)
        finish[operation.name] = end = start + operation.seconds
        meant[operation.name] = before + operation.seconds if is_meant(operation) else before
        later = end > last
        last, seconds = pick(later, end, last), pick(later, meant[operation.name], seconds)
    return seconds


def _longest_seconds(operations: Sequence[Operation]) -> Number:
    finish: dict[str, Number] = {}
    last: Number = 0.0
    for operation in operations:
        start: Number = 0.0
        for name in (*operation.inputs, *operation.after):
            start = larger(start, finish[name])
        finish[operation.name] = start + operation.seconds
        last = larger(last, finish[operation.name])
    return last
