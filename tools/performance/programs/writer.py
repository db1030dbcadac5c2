"""Writes and times the operations of one program, collectives that close operators, and transfers between stages."""

from __future__ import annotations

from msgspec import Struct

from ...caches import Cache
from ...calibration.forms.elementary import Number, Truth, larger
from ...catalog.dtypes import WeightTensor
from ..clock import Clock, rate_dtype
from ..collectives import NO_TRANSFER, Group, Links, Path, Transfer, pick_transfer
from ..operation import COLLECTIVES, Operation, Owner, Role, Shape, TokenLoad, Where
from ..request_memory import heads_share
from ..setting import Setting
from ..stage_shape import OperatorSet, StageShape
from .work import Matrix, Work


class ProgramContext(Struct, frozen=True):
    """The input for writing a program of one layer: setting, shape of the stage, tokens of the pass, clock, links."""

    setting: Setting
    shape: StageShape
    load: TokenLoad
    clock: Clock
    links: Links

    @property
    def hidden(self) -> int:
        """The hidden size H."""
        return self.setting.architecture.hidden_size

    @property
    def element_bytes(self) -> float:
        """Bytes of one activation element."""
        return self.setting.activation_bytes

    @property
    def hidden_shape(self) -> Shape:
        """The hidden states of one attention group's tokens."""
        return shape_of(self.load.sequences, self.load.new_tokens, "hidden", self.hidden)

    @property
    def token_bytes(self) -> Number:
        """Bytes of the hidden states of one attention group's tokens."""
        return self.hidden_bytes(self.load.tokens)

    def hidden_bytes(self, tokens: Number) -> Number:
        """Bytes of the hidden states of `tokens`."""
        return tokens * self.hidden * self.element_bytes


class ProgramWriter:
    """Writes operations one after the other; each reads the one before it unless it names its inputs."""

    def __init__(self, context: ProgramContext, before: str | None = None) -> None:
        self.context = context
        self.operations: list[Operation] = []
        self.last: str | None = before
        # For each operation: its bit, and the bits of it and all operations that it depends on.
        self._bits: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        self._last_of: dict[bool, str] = {}

    def copy(self) -> ProgramWriter:
        """An independent writer that continues from the same state."""
        other = ProgramWriter(self.context, self.last)
        other.operations = self.operations.copy()
        other._bits, other._behind, other._last_of = self._bits.copy(), self._behind.copy(), self._last_of.copy()
        return other

    def compute(self, operation: Operation, work: Work) -> str:
        """Add `operation` with the time of `work`."""
        time = self.context.clock.time(work)
        return self.add(
            operation, dtype=work.dtype, flops=work.flops, moved_bytes=work.moved_bytes,
            seconds=time.seconds, kind=time.bound, origin=time.origin,
        )  # fmt: skip

    def transfer(self, operation: Operation, transfer: Transfer) -> str:
        """Add a collective that costs `transfer`."""
        return self.add(
            operation, sent_bytes=transfer.sent_bytes, seconds=transfer.seconds, kind="communication",
            spans_domains=transfer.spans_domains, origin=transfer.origin,
        )  # fmt: skip

    def add(self, operation: Operation, **costs: object) -> str:
        """Add `operation` at these costs; returns its name. Without costs it only views existing data."""
        inputs, after = self._order(operation)
        self.operations.append(operation._replace(inputs=inputs, after=after, **costs))
        self.last = operation.name
        return operation.name

    @property
    def output_shape(self) -> Shape:
        """The output shape of the last operation."""
        return self.operations[-1].output_shape

    def _order(self, operation: Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names that `operation` reads, and those that it only waits for."""
        inputs, after = operation.inputs, operation.after
        if not inputs and self.last is not None:
            inputs = (self.last,)
        behind = 0
        for name in inputs:
            behind |= self._behind.get(name, 0)
        # Kernels of one device run one after the other, and so do transfers on its links: branches overlap only
        # across the two.
        on_links = operation.op in COLLECTIVES
        previous = self._last_of.get(on_links)
        if previous is not None and not self._bits[previous] & behind:
            after = (previous,)
            behind |= self._behind[previous]
        bit = self._bits[operation.name] = 1 << len(self.operations)
        self._behind[operation.name] = behind | bit
        self._last_of[on_links] = operation.name
        return inputs, after


def shape_of(sequences: Number, tokens: Number, name: str, width: float) -> Shape:
    """[["batch", …], ["seq", …], [name, …]], widths rounded up."""
    return ("batch", sequences), ("seq", larger(1, tokens)), (name, -(-int(width * 1_000_000) // 1_000_000))


def close_operator(
    writer: ProgramWriter, owner: Owner, *, reduces: bool, following: OperatorSet | None, tokens: Number,
    joined: Truth = False,
) -> None:  # fmt: skip
    """Write the collective that closes `owner`, if it needs one.

    `reduces`: its shards hold partial sums. If the next operator uses devices that this one does not (DE004), the same
    collective spans both; without partial sums a gather sends the result there. `tokens` are those of a device.
    `joined`: the sum is part of a later collective (elementwise for arrays of loads).
    """
    context, shape = writer.context, writer.context.shape
    current: OperatorSet = "attention" if owner == "attention" else "ffn"
    wider = shape.wider(current, following)
    size, result = context.hidden_bytes(tokens), writer.output_shape
    name = f"{owner}.close"
    if reduces:
        group = wider or (shape.tp_group if current == "attention" else shape.ffn_tp_group)
        where: Where = union_where(current, following) if wider else "tp" if current == "attention" else "ffn_tp"
        transfer = pick_transfer(joined, NO_TRANSFER, context.links.all_reduce(size, group))
        writer.transfer(Operation(name, "AllReduce", owner, where, result, result), transfer)
    elif wider is not None:
        writer.transfer(
            Operation(name, "AllGather", owner, union_where(current, following), result, result),
            context.links.broadcast(size, wider),
        )


def union_where(current: OperatorSet, following: OperatorSet | None) -> Where:
    """The devices of both operators, as a place."""
    if current == "attention":
        return "attention+ffn" if following == "ffn" else "attention+stage"
    return "ffn+attention" if following == "attention" else "ffn+stage"


def scatter_tokens(writer: ProgramWriter, owner: Owner) -> None:
    """Write the ReduceScatter that sums a TP FFN's shards over attention groups and returns each group's tokens."""
    context = writer.context
    writer.transfer(
        Operation(f"{owner}.close", "ReduceScatter", owner, "ffn_all", writer.output_shape, context.hidden_shape),
        context.links.all_gather(context.hidden_bytes(context.load.all_tokens), context.shape.ffn_all_group),
    )


def write_send(writer: ProgramWriter, slices: int, group: Group, path: Path) -> None:
    """Write the SendRecv of one slice from each device, and the gather of the slices on the other side."""
    context, load, hidden = writer.context, writer.context.load, writer.context.hidden_shape
    part = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden / slices)
    writer.transfer(
        Operation("pipeline.send", "SendRecv", "pipeline", "pipeline", hidden, part if slices > 1 else hidden),
        context.links.send(context.token_bytes / slices, path),
    )
    if not group.is_trivial:
        gather = context.links.all_gather if slices > 1 else context.links.broadcast
        operation = Operation("pipeline.gather", "AllGather", "pipeline", "received", writer.output_shape, hidden)
        writer.transfer(operation, gather(context.token_bytes, group))


_ROLES: dict[str, Role] = {
    "q_a_proj": "q_a",
    "q_b_proj": "q_b",
    "kv_a_proj": "kv_a",
    "kv_b_proj": "kv_b",
    "o_proj": "out",
    "o_a_proj": "out",
    "o_b_proj": "out",
    "out_proj": "out",
    "gate_up_proj": "gate_up",
    "up_proj": "gate_up",
    "shared_expert_gate": "gate_up",
    "down_proj": "down",
    "router": "router",
    "router_bias": "router",
    "latent_proj": "router",
}


def role_of(tensor: WeightTensor) -> Role | None:
    """The matmul that reads `tensor` (`qkv` for a matrix that is not listed); `None` for a vector."""
    if tensor.tensor_class == "norm":
        return None
    return _ROLES.get(tensor.name, "qkv")


def share_on_device(tensor: WeightTensor, tp: int, kv_heads: int) -> float:
    """Share of `tensor` on one of `tp` devices."""
    if tensor.split == "sharded":
        return 1.0 / tp
    return heads_share(tp, kv_heads) if tensor.split == "kv_heads" else 1.0


_MATRICES = Cache[tuple[int, int, int], "dict[Role | None, Matrix]"](
    "weights by role of a tuple of tensors on a device"
)


def weights_by_role(
    setting: Setting, tensors: tuple[WeightTensor, ...], tp: int, kv_heads: int = 1
) -> dict[Role | None, Matrix]:
    """`tensors` on one of `tp` devices, by role; `None` is for the norm kernel. Cached by the tuple's identity."""
    return _MATRICES.get(setting.caches, (id(tensors), tp, kv_heads), lambda: _by_role(setting, tensors, tp, kv_heads))


def _by_role(setting: Setting, tensors: tuple[WeightTensor, ...], tp: int, kv_heads: int) -> dict[Role | None, Matrix]:
    by_role: dict[Role | None, Matrix] = {}
    for tensor in tensors:
        role = role_of(tensor)
        share = share_on_device(tensor, tp, kv_heads)
        before = by_role.get(role)
        elements, size = (before.elements, before.weight_bytes) if before else (0.0, 0.0)
        stored = setting.dtypes.of(tensor.tensor_class)
        by_role[role] = Matrix(
            elements + tensor.elements * share,
            size + tensor.elements * share * setting.weight_bytes(tensor.tensor_class),
            stored,
            rate_dtype(stored, setting.precision.activations),
            blockwise=stored == "fp8" and setting.architecture.scale_block is not None,
        )
    return by_role
