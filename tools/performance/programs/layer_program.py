"""The operations of a layer after its attention (dense FFN or MoE), and of the embedding and the LM head.

The shared expert has no edge to the routed fan-out but runs on the same devices: its matmuls come before the experts in
the compute stream, its collective before the combine on the links. So only dispatch overlaps with the shared expert.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number, Truth, ceil, larger
from ...catalog.architecture import FFNSpec, LayerSpec, MoESpec
from ..clock import rate_dtype
from ..collectives import Transfer
from ..operation import Operation, Owner, Shape
from ..stage_shape import OperatorSet
from .expert_delivery import bank_work, expert_bank, expert_delivery, expert_load
from .work import NO_MATRIX, Matrix, Work, aggregate, embedding, linear, norm, routing, weigh
from .writer import ProgramWriter, close_operator, scatter_tokens, shape_of, weights_by_role


class MoEProgram:
    """Writes one MoE operator into a `ProgramWriter`."""

    def __init__(self, writer: ProgramWriter, spec: MoESpec) -> None:
        self.writer = writer
        self.context = writer.context
        self.spec = spec
        shape, load = self.context.shape, self.context.load
        self.gates = weights_by_role(self.context.setting, spec.router_tensors, 1)
        self.bank = expert_bank(self.context, spec)
        self.copy_width = self.bank.hidden
        self.exchanges = shape.ep > 1
        # Tokens that a device dispatches: a group's tokens are on several devices, of which each sends a share.
        self.device_tokens: Number = 1.0 * load.all_tokens
        if self.exchanges:
            self.device_tokens = load.tokens * shape.attention_groups / shape.width
        self.hidden = self.context.hidden_shape

    def write(self) -> None:
        """Write all operations of the operator; its result is on every device of the stage."""
        context, load = self.context, self.context.load
        vectors = self.gates.get(None, NO_MATRIX)
        self.writer.compute(
            Operation("moe.norm", "Norm", "moe", "stage", self.hidden, self.hidden),
            norm(load.tokens, context.hidden, vectors.weight_bytes, context.element_bytes),
        )
        self._route()
        delivery = expert_delivery(context, self.spec, self.bank, self.device_tokens) if self.exchanges else None
        if delivery is not None:
            self._exchange("dispatch", delivery.dispatch)
        shape = context.shape
        joined: Truth = delivery.is_joined if delivery is not None else shape.tp_expert > 1
        if shape.attention_groups > 1 or shape.ffn_tp_group != shape.stage_group:
            joined = False
        shared = self._shared(before=self.writer.operations[-1].name, joined=joined)
        self._experts(bank_work(context, self.spec, self.bank) if delivery is None else delivery.experts)
        if delivery is not None:
            if shape.tp_expert > 1:
                # Sums the slices of each expert (no time where the next collective does that).
                partial = self.writer.output_shape
                slices = Operation("moe.slices", "AllReduce", "moe", "expert_tp", partial, partial)
                self.writer.transfer(slices, delivery.slices)
            self._exchange("combine", delivery.combine)
            self._replicate(delivery.replicate)
        else:
            self._weigh()
        self._finish(shared)

    def _route(self) -> None:
        context, spec, load = self.context, self.spec, self.context.load
        gate = self.gates.get("router", NO_MATRIX)
        scores = shape_of(load.sequences, load.new_tokens, "experts", spec.experts)
        work = linear(1.0 * load.tokens, gate, context.hidden, context.element_bytes)
        self.writer.compute(Operation("moe.router", "Linear", "moe", "stage", self.hidden, scores, role="router"), work)
        chosen = self._copies(self.device_tokens * spec.top_k)
        work = routing(self.device_tokens, spec.experts, spec.top_k)
        self.writer.compute(Operation("moe.routing", "Routing", "moe", "stage", scores, chosen), work)

    def _copies(self, copies: Number) -> Shape:
        return ("copies", larger(1, ceil(copies))), ("hidden", self.copy_width)

    def _exchange(self, role: str, transfer: Transfer) -> None:
        context = self.context
        delivered = self._copies(expert_load(context, self.spec).copies)
        # New tokens of each sequence that one device owns after the combine.
        owned_tokens = ceil(self.device_tokens / context.load.sequences)
        back = shape_of(context.load.sequences, owned_tokens, "hidden", context.hidden)
        operation = Operation(
            f"moe.{role}", "AllToAll", "moe", "stage_all", self.writer.output_shape,
            delivered if role == "dispatch" else back, inputs=(self.writer.operations[-1].name,),
        )  # fmt: skip
        self.writer.transfer(operation, transfer)

    def _shared(self, before: str, *, joined: Truth) -> tuple[str, ...]:
        """Write the shared expert, which reads the norm; returns the written names, with `before` as last again.

        `joined`: the collective that adds up the routed experts' results also sums its parts.
        """
        if self.spec.shared is None:
            return ()
        start = len(self.writer.operations)
        self.writer.last = "moe.norm"
        write_matrices(self.writer, self.spec.shared, "shared", "stage", joined=joined)
        self.writer.last = before
        return tuple(operation.name for operation in self.writer.operations[start:])

    def _experts(self, work: Work) -> None:
        load = expert_load(self.context, self.spec)
        copies = self._copies(load.copies) if self.exchanges else self._copies(self.device_tokens * self.spec.top_k)
        source = self.writer.last or "moe.routing"
        self.writer.compute(Operation("moe.expert", "Expert", "moe", "stage", copies, copies, inputs=(source,)), work)

    def _weigh(self) -> None:
        """Without an exchange each device first weighs and adds its experts' results, then slices are summed."""
        context, load = self.context, self.context.load
        work = weigh(load.tokens, self.spec.top_k, context.hidden, context.element_bytes)
        operation = Operation("moe.weigh", "Aggregate", "moe", "stage", self.writer.output_shape, self.hidden)
        self.writer.compute(operation, work)
        if context.shape.tp_expert > 1:
            self.writer.transfer(
                Operation("moe.slices", "AllReduce", "moe", "expert_tp", self.hidden, self.hidden),
                context.links.all_reduce(context.hidden_bytes(load.all_tokens), context.shape.expert_tp_group),
            )

    def _replicate(self, transfer: Transfer) -> None:
        """Send each token's result back to every device that has the token."""
        if self.context.shape.token_group.is_trivial:
            return
        operation = Operation("moe.gather", "AllGather", "moe", "tokens", self.writer.output_shape, self.hidden)
        self.writer.transfer(operation, transfer)

    def _finish(self, shared: tuple[str, ...]) -> None:
        """Add the shared expert's result to that of the routed experts."""
        if not shared:
            return
        context, name = self.context, self.writer.operations[-1].name
        work = aggregate(context.load.tokens, 2, context.hidden, context.element_bytes)
        operation = Operation(
            "moe.sum", "Aggregate", "moe", "stage", self.hidden, self.hidden, inputs=(name, shared[-1])
        )  # fmt: skip
        self.writer.compute(operation, work)


def write_ffn(writer: ProgramWriter, spec: FFNSpec, following: OperatorSet | None) -> None:
    """Write a dense FFN: norm, gate and up, down, and the collectives that its degrees need."""
    context = writer.context
    vectors = weights_by_role(context.setting, spec.tensors, context.shape.tp_ffn).get(None, NO_MATRIX)
    hidden = context.hidden_shape
    work = norm(context.load.tokens, context.hidden, vectors.weight_bytes, context.element_bytes)
    writer.compute(Operation("ffn.norm", "Norm", "ffn", "ffn", hidden, hidden), work)
    write_matrices(writer, spec, "ffn", following)


def write_matrices(
    writer: ProgramWriter, spec: FFNSpec, owner: Owner, following: OperatorSet | None, *, joined: Truth = False
) -> None:
    """Write the matmuls of a dense FFN or shared expert on normed tokens, and the collective that closes it.

    `joined`: a later collective also sums its shards, so closing it costs nothing.
    """
    context, shape, load = writer.context, writer.context.shape, writer.context.load
    weights = weights_by_role(context.setting, spec.tensors, shape.tp_ffn)
    # Under attention DP an FFN with TP over several groups sees the tokens of all of them.
    gathers = shape.attention_groups > 1 and shape.ffn_groups == 1 and shape.tp_ffn > 1
    tokens, sequences = load.tokens, load.sequences
    if gathers:
        tokens, sequences = load.all_tokens, load.sequences * load.groups
        writer.transfer(
            Operation(
                f"{owner}.gather", "AllGather", owner, "ffn_all", context.hidden_shape,
                shape_of(sequences, load.new_tokens, "hidden", context.hidden),
            ),
            context.links.all_gather(context.hidden_bytes(tokens), shape.ffn_all_group),
        )  # fmt: skip
    hidden = shape_of(sequences, load.new_tokens, "hidden", context.hidden)
    for role in ("gate_up", "down"):
        part = weights.get(role, NO_MATRIX)
        inner = part.elements / context.hidden
        wide = shape_of(sequences, load.new_tokens, "width", spec.width * (2 if spec.gated else 1) / shape.tp_ffn)
        # Silu and the product with the gate are fused with the up projection; the down projection reads one width.
        work = linear(tokens, part, context.hidden if role == "gate_up" else inner, context.element_bytes)
        source, result = (hidden, wide) if role == "gate_up" else (wide, hidden)
        writer.compute(Operation(f"{owner}.{role}", "Linear", owner, "ffn", source, result, role=role), work)
    if gathers:
        scatter_tokens(writer, owner)
    else:
        close_operator(
            writer, owner, reduces=shape.tp_ffn > 1, following=following, tokens=1.0 * load.tokens, joined=joined
        )


def first_operator(spec: LayerSpec) -> OperatorSet:
    """Where the first operator of a layer runs."""
    if spec.attention is not None:
        return "attention"
    return "ffn" if spec.ffn is not None else "stage"


def last_operator(spec: LayerSpec) -> OperatorSet:
    """Where the last operator of a layer runs."""
    return "stage" if spec.moe is not None else "ffn" if spec.ffn is not None else "attention"


def after_attention(spec: LayerSpec, following: OperatorSet | None) -> OperatorSet | None:
    """Where the operator after a layer's attention runs; `following` is where the next layer begins."""
    return "ffn" if spec.ffn is not None else "stage" if spec.moe is not None else following


def write_behind_attention(writer: ProgramWriter, spec: LayerSpec, following: OperatorSet | None) -> None:
    """Write the operations of one layer that follow its attention."""
    if spec.ffn is not None:
        write_ffn(writer, spec.ffn, following)
    if spec.moe is not None:
        MoEProgram(writer, spec.moe).write()


# Logits leave the head in fp32 where they are gathered for sampling.
_LOGIT_BYTES = 4


def write_embedding(writer: ProgramWriter) -> None:
    """Write the lookup of token ids; if split by vocabulary, each device looks up its rows and a sum completes them."""
    context, load = writer.context, writer.context.load
    ids, hidden = (("batch", load.sequences), ("seq", load.new_tokens)), context.hidden_shape
    row_bytes = context.setting.weight_bytes("vocabulary")
    work = embedding(load.tokens, context.hidden, row_bytes, context.element_bytes)
    writer.compute(Operation("embedding.lookup", "Embedding", "embedding", "embedding", ids, hidden), work)
    if context.shape.vocab_shards > 1:
        # If cut over several attention groups, each works on the tokens of all.
        tokens = load.all_tokens if context.shape.vocabulary_spans_groups else load.tokens
        writer.transfer(
            Operation("embedding.close", "AllReduce", "embedding", "vocabulary", hidden, hidden),
            context.links.all_reduce(context.hidden_bytes(tokens), context.shape.vocab_group),
        )


def write_head(writer: ProgramWriter) -> None:
    """Write the final norm, the last position of each sequence, its logits, and their gather if the head is split."""
    context, load, setting = writer.context, writer.context.load, writer.context.setting
    architecture, shards = setting.architecture, context.shape.vocab_shards
    if load.new_tokens > 1:
        last = shape_of(load.sequences, 1, "hidden", context.hidden)
        writer.add(Operation("head.last", "Split", "head", "head", context.hidden_shape, last))
    positions = load.sequences
    hidden = shape_of(positions, 1, "hidden", context.hidden)
    vectors = setting.tensor_bytes(architecture.final_norm_tensors).total
    work = norm(positions, context.hidden, vectors, context.element_bytes)
    writer.compute(Operation("head.norm", "Norm", "head", "head", hidden, hidden), work)
    if context.shape.vocabulary_spans_groups:
        positions = positions * load.groups
        before, hidden = hidden, shape_of(positions, 1, "hidden", context.hidden)
        gather = context.links.all_gather(context.hidden_bytes(positions), context.shape.vocab_group)
        writer.transfer(Operation("head.tokens", "AllGather", "head", "vocabulary", before, hidden), gather)
    # The head also reads a tied table as one H x V matrix.
    elements = architecture.hidden_size * architecture.vocab_size / shards
    weight_bytes = elements * setting.weight_bytes("vocabulary")
    vocabulary = architecture.vocab_size / shards
    stored = setting.dtypes.of("vocabulary")
    matrix = Matrix(elements, weight_bytes, stored, rate_dtype(stored, setting.precision.activations))
    work = linear(positions, matrix, context.hidden, context.element_bytes)
    logits = shape_of(positions, 1, "vocab", vocabulary)
    writer.compute(Operation("head.logits", "Linear", "head", "head", hidden, logits, role="lm_head"), work)
    if shards > 1:
        whole = shape_of(positions, 1, "vocab", architecture.vocab_size)
        size = positions * architecture.vocab_size * _LOGIT_BYTES
        gather = context.links.all_gather(size, context.shape.vocab_group)
        writer.transfer(Operation("head.close", "AllGather", "head", "vocabulary", logits, whole), gather)
