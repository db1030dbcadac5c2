"""The operations of one attention operator: norm, projections, cache write, core, output, and every collective."""

from __future__ import annotations

import math

from ...catalog.attention.spec import AttentionSpec, LatentWidths
from ..operation import Operation, Role, Shape, Where
from ..request_memory import heads_share
from ..stage_shape import OperatorSet
from .attention_core import core_work
from .work import NO_MATRIX, Matrix, cache_update, linear, norm
from .writer import ProgramContext, ProgramWriter, close_operator, shape_of, union_where, weights_by_role


class AttentionProgram:
    """Writes one attention operator of one layer into a `ProgramWriter`."""

    def __init__(self, writer: ProgramWriter, spec: AttentionSpec) -> None:
        self.writer = writer
        self.context: ProgramContext = writer.context
        self.spec = spec
        load, shape = self.context.load, self.context.shape
        self.weights = weights_by_role(self.context.setting, spec.tensors, shape.tp, spec.kv_heads)
        self.sequences = load.sequences
        self.local_seq = math.ceil(load.new_tokens / shape.sp)
        # Tokens that one device projects: sequence ranks divide them evenly, so times use the unrounded share.
        self.tokens = load.tokens / shape.sp
        self.kv_share = heads_share(shape.tp, spec.cache_shards)

    def write(self, following: OperatorSet | None) -> None:
        """Write all operations of the operator; `following` is where the next one runs."""
        context, shape = self.context, self.context.shape
        if shape.sp > 1:
            self._split()
        vectors = self.weights.get(None, NO_MATRIX)
        work = norm(self.tokens, context.hidden, vectors.weight_bytes, context.element_bytes)
        hidden = self._shape("hidden", context.hidden)
        norm_name = self.writer.compute(
            Operation("attention.norm", "Norm", "attention", "attention", hidden, hidden), work
        )
        latent = self.spec.latent
        width, inputs = self._projections(norm_name) if latent is None else self._latent_projections(norm_name, latent)
        self._core(width, inputs)
        out = self.weights.get("out", NO_MATRIX)
        self._linear("attention.out", "out", out, context.hidden, output=True)
        if shape.sp > 1:
            close_operator(self.writer, "attention", reduces=shape.tp > 1, following=None, tokens=self.tokens)
            self._gather_tokens(following)
        else:
            close_operator(self.writer, "attention", reduces=shape.tp > 1, following=following, tokens=self.tokens)

    def _shape(self, name: str, width: float) -> Shape:
        return shape_of(self.sequences, self.local_seq, name, width)

    def _split(self) -> None:
        context = self.context
        local = self._shape("hidden", context.hidden)
        self.writer.add(Operation("attention.split", "Split", "attention", "attention", context.hidden_shape, local))

    def _linear(
        self, name: str, role: Role, weights: Matrix, known: int, inputs: tuple[str, ...] = (), *, output: bool = False
    ) -> float:
        """Write a matmul with `known` input features (with `output`: output features); returns the other width."""
        context = self.context
        other = weights.elements / known
        source = self._output_of(inputs[0]) if inputs else self.writer.output_shape
        result = self._shape("hidden", known) if output else self._shape(role if role in _LOW_RANK else "qkv", other)
        work = linear(self.tokens, weights, other if output else known, context.element_bytes)
        self.writer.compute(
            Operation(name, "Linear", "attention", "attention", source, result, role=role, inputs=inputs), work
        )
        return other

    def _output_of(self, name: str) -> Shape:
        return next(o.output_shape for o in self.writer.operations if o.name == name)

    def _projections(self, norm_name: str) -> tuple[float, tuple[str, ...]]:
        """Write the fused projection without a latent and the cache write; returns the core's width and inputs."""
        weights, hidden = self.weights, self.context.hidden
        queries, inputs = 0.0, ("attention.cache",)
        if (low := weights.get("q_a")) is not None:
            rank = self._linear("attention.q_a", "q_a", low, hidden, (norm_name,))
            queries = self._linear("attention.q_b", "q_b", weights.get("q_b", NO_MATRIX), round(rank))
            inputs = ("attention.q_b", *inputs)
        width = self._linear("attention.qkv", "qkv", weights.get("qkv", NO_MATRIX), hidden, (norm_name,))
        self._cache("attention.qkv", width)
        return width + queries, inputs

    def _latent_projections(self, norm_name: str, widths: LatentWidths) -> tuple[float, tuple[str, ...]]:
        """MLA: low-rank queries, the latent into the cache, its expansion, the sparse indexer; returns likewise."""
        hidden, weights = self.context.hidden, self.weights
        width = 0.0
        inputs: list[str] = []
        low = weights.get("kv_a", NO_MATRIX)
        latent, source = low.elements / hidden, "attention.kv_a"
        if widths.query_rank is not None:
            # vLLM, SGLang and TensorRT-LLM alike read the input once for both low ranks (fused_qkv_a_proj).
            source = "attention.qkv_a"
            self._linear(source, "qkv_a", weights.get("q_a", NO_MATRIX) + low, hidden, (norm_name,))
            queries = weights.get("q_b", NO_MATRIX)
            width += self._linear("attention.q_b", "q_b", queries, widths.query_rank, (source,))
            inputs.append("attention.q_b")
        if (other := weights.get("qkv")) is not None:
            width += self._linear("attention.qkv", "qkv", other, hidden, (norm_name,))
            inputs.append("attention.qkv")
        if widths.query_rank is None:
            self._linear(source, "kv_a", low, hidden, (norm_name,))
        self._cache(source, latent)
        width += self._linear("attention.kv_b", "kv_b", weights.get("kv_b", NO_MATRIX), widths.latent)
        return width, (*inputs, "attention.kv_b")

    def _cache(self, source: str, width: float) -> None:
        """Write the exchange over sequence ranks of keys and values, `width` wide at `source`, and the cache write."""
        context, spec, shape = self.context, self.spec, self.context.shape
        output, state_bytes = self._output_of(source), spec.state_element_bytes(context.setting.kv_element_bytes)
        before = output
        if shape.sp > 1:
            before = (*output[:2], ("kv_seq", context.load.new_tokens), output[2])
            operation = Operation(
                "attention.exchange", "AllToAll" if shape.ulysses else "AllGather", "attention", "sp", output, before,
                inputs=(source,), of_sequences=spec.is_recurrent and not shape.ulysses,
            )  # fmt: skip
            if shape.ulysses:
                exchange = context.links.all_to_all(self.tokens * width * context.element_bytes, shape.sp_group)
            else:
                fresh = context.load.tokens * spec.cache_elements_per_token * self.kv_share * context.element_bytes
                if spec.is_recurrent:
                    fresh = self.sequences * spec.state_elements * state_bytes * shape.sp
                exchange = context.links.all_gather(fresh, shape.sp_group)
            source = self.writer.transfer(operation, exchange)
        state = spec.state_elements * heads_share(shape.tp, spec.state_shards)
        if spec.is_recurrent:
            work = cache_update(self.sequences, state, state_bytes, 0.0)
        else:
            elements = spec.cache_elements_per_token * self.kv_share
            tokens = context.load.tokens / (shape.sp * shape.kv_sp)
            work = cache_update(tokens, elements, context.setting.kv_element_bytes, context.element_bytes)
        self.writer.compute(
            Operation(
                "attention.cache", "KVCacheUpdate", "attention", "attention", before, output, inputs=(source,),
                of_sequences=spec.is_recurrent,
            ),
            work,
        )  # fmt: skip

    def _core(self, width: float, inputs: tuple[str, ...]) -> None:
        context, shape, heads = self.context, self.context.shape, self.spec.output_heads
        out_width = heads * self.spec.v_head_dim / shape.tp
        result = self._shape("heads", out_width)
        source = self._shape("qkv", width)
        operation = Operation("attention.core", "Attention", "attention", "attention", source, result, inputs=inputs)
        self.writer.compute(operation, core_work(context, self.spec))
        if shape.kv_sp > 1:
            # Partial softmax: outputs and two statistics per head, fp32 (flash decoding's merge).
            merged = self.tokens * (out_width + 2 * heads / shape.tp) * 4.0
            self.writer.transfer(
                Operation("attention.merge", "AllReduce", "attention", "kv_sp", result, result),
                context.links.all_reduce(merged, shape.kv_sp_group),
            )
        if shape.sp > 1 and shape.ulysses:
            self.writer.transfer(
                Operation("attention.return", "AllToAll", "attention", "sp", result, result),
                context.links.all_to_all(self.tokens * out_width * context.element_bytes, shape.sp_group),
            )

    def _gather_tokens(self, following: OperatorSet | None) -> None:
        """Gather the tokens of all sequence ranks on every device of the next operator."""
        context = self.context
        wider = context.shape.wider("attention", following)
        where: Where = "sp" if wider is None else union_where("attention", following)
        local = self._shape("hidden", context.hidden)
        self.writer.transfer(
            Operation("attention.gather", "AllGather", "attention", where, local, context.hidden_shape),
            context.links.all_gather(context.token_bytes, wider or context.shape.sp_group),
        )


_LOW_RANK: frozenset[Role] = frozenset({"q_a", "kv_a", "qkv_a"})
