"""The operations of one attention operator: norm, projections, cache write, core, output, and every collective."""

from __future__ import annotations

import math
from dataclasses import replace

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Attention, LatentAttention
from ...catalog.architecture import AttentionSpec
from ..kv_cache import heads_share, state_element_bytes
from ..operation import Operation, Role, Shape, Where
from ..operators.attention import attended_pairs, attention_core
from ..operators.cache_update import cache_update
from ..operators.linear import NO_MATRIX, Matrix, linear
from ..operators.linear_attention import recurrence
from ..operators.mla import indexer_scores, latent_attention
from ..operators.norm import norm
from ..operators.work import Work
from ..stage_shape import OperatorSet
from .closing import close_operator, union_where
from .tensors import weights_by_role
from .writer import ProgramContext, ProgramWriter, shape_of


class AttentionProgram:
    """Writes one attention operator of one layer into a `ProgramWriter`."""

    def __init__(self, writer: ProgramWriter, spec: AttentionSpec) -> None:
        self.writer = writer
        self.context: ProgramContext = writer.context
        self.spec = spec
        load, shape = self.context.load, self.context.shape
        self.weights = weights_by_role(self.context.setting, spec.tensors, shape.tp, spec.kv_heads)
        self.sequences = load.sequences
        self.own_seq = math.ceil(load.new_tokens / shape.sp)
        # Tokens that one device projects, as a share: sequence ranks divide them (balanced, so no rounding in time).
        self.tokens = load.tokens / shape.sp
        self.kv_share = heads_share(shape.tp, spec.cache_shards)

    def write(self, following: OperatorSet | None) -> None:
        """All operations of the operator; `following` is where the next one runs."""
        context, shape = self.context, self.context.shape
        if shape.sp > 1:
            self._split()
        vectors = self.weights.get(None, NO_MATRIX)
        work = norm(self.tokens, context.hidden, vectors.weight_bytes, context.element_bytes)
        hidden = self._shape("hidden", context.hidden)
        norm_name = self.writer.compute(
            Operation("attention.norm", "Norm", "attention", "attention", hidden, hidden), work
        )
        width, inputs = self._latent_projections(norm_name) if self.spec.kind == "mla" else self._projections(norm_name)
        self._core(width, inputs)
        out = self.weights.get("out", NO_MATRIX)
        self._linear("attention.out", "out", out, context.hidden, output=True)
        if shape.sp > 1:
            close_operator(self.writer, "attention", reduces=shape.tp > 1, following=None, tokens=self.tokens)
            self._gather_tokens(following)
        else:
            close_operator(self.writer, "attention", reduces=shape.tp > 1, following=following, tokens=self.tokens)

    def _shape(self, name: str, width: float) -> Shape:
        return shape_of(self.sequences, self.own_seq, name, width)

    def _split(self) -> None:
        load, hidden = self.context.load, self.context.hidden
        whole = shape_of(self.sequences, load.new_tokens, "hidden", hidden)
        self.writer.reshape(
            Operation("attention.split", "Split", "attention", "attention", whole, self._shape("hidden", hidden))
        )

    def _linear(
        self,
        name: str,
        role: Role,
        weights: Matrix,
        known: int,
        inputs: tuple[str, ...] = (),
        *,
        output: bool = False,
    ) -> float:
        """One matmul with `known` features on its input (or, `output`, its output) side; returns the other width."""
        context = self.context
        other = weights.elements / known
        here = self.writer.operations[-1].output_shape if not inputs else self._output_of(inputs[0])
        result = (
            self._shape("hidden", known) if output else self._shape("qkv" if role not in _LOW_RANK else role, other)
        )
        work = linear(self.tokens, weights, other if output else known, context.element_bytes)
        self.writer.compute(
            Operation(name, "Linear", "attention", "attention", here, result, role=role, inputs=inputs), work
        )
        return other

    def _output_of(self, name: str) -> Shape:
        return next(o.output_shape for o in self.writer.operations if o.name == name)

    def _projections(self, norm_name: str) -> tuple[float, tuple[str, ...]]:
        """The one fused projection of every kind but MLA, then the cache write; returns the width that goes on."""
        qkv, hidden = self.weights.get("qkv", NO_MATRIX), self.context.hidden
        if (low := self.weights.get("q_a")) is not None:
            rank = self._linear("attention.q_a", "q_a", low, hidden, (norm_name,))
            queries = self._linear("attention.q_b", "q_b", self.weights.get("q_b", NO_MATRIX), round(rank))
            width = self._linear("attention.qkv", "qkv", qkv, hidden, (norm_name,))
            self._cache("attention.qkv", width)
            return width + queries, ("attention.q_b", "attention.cache")
        width = self._linear("attention.qkv", "qkv", qkv, hidden, (norm_name,))
        self._cache("attention.qkv", width)
        return width, ("attention.cache",)

    def _latent_projections(self, norm_name: str) -> tuple[float, tuple[str, ...]]:
        """MLA: queries through their low rank, the latent into the cache, its expansion, and the sparse indexer."""
        spec, hidden, weights = self.spec, self.context.hidden, self.weights
        width = 0.0
        inputs: list[str] = []
        low = weights.get("kv_a", NO_MATRIX)
        latent, source = low.elements / hidden, "attention.kv_a"
        if spec.q_lora_rank is not None:
            # vLLM, SGLang and TensorRT-LLM alike read the input once for both low ranks (fused_qkv_a_proj).
            source = "attention.qkv_a"
            self._linear(source, "qkv_a", weights.get("q_a", NO_MATRIX) + low, hidden, (norm_name,))
            queries = weights.get("q_b", NO_MATRIX)
            width += self._linear("attention.q_b", "q_b", queries, spec.q_lora_rank, (source,))
            inputs.append("attention.q_b")
        if (other := weights.get("qkv")) is not None:
            width += self._linear("attention.qkv", "qkv", other, hidden, (norm_name,))
            inputs.append("attention.qkv")
        if spec.q_lora_rank is None:
            self._linear(source, "kv_a", low, hidden, (norm_name,))
        self._cache(source, latent)
        rank = spec.kv_lora_rank or round(latent)
        width += self._linear("attention.kv_b", "kv_b", weights.get("kv_b", NO_MATRIX), rank)
        return width, (*inputs, "attention.kv_b")

    def _cache(self, source: str, width: float) -> None:
        """The exchange of keys and values, `width` of what `source` gives, over sequence ranks; then their write."""
        context, spec, shape = self.context, self.spec, self.context.shape
        here = self._output_of(source)
        if shape.sp > 1:
            whole = (*here[:2], ("kv_seq", context.load.new_tokens), here[2])
            fresh = context.load.tokens * spec.cache_elements_per_token * self.kv_share * context.element_bytes
            if spec.kind == "linear":
                fresh = self.sequences * spec.state_elements * state_element_bytes(context.setting, spec) * shape.sp
            if shape.ulysses:
                exchange = context.links.all_to_all(self.tokens * width * context.element_bytes, shape.sp_group)
                operation = Operation(
                    "attention.exchange", "AllToAll", "attention", "sp", here, whole, inputs=(source,)
                )
            else:
                exchange = context.links.all_gather(fresh, shape.sp_group)
                operation = Operation(
                    "attention.exchange", "AllGather", "attention", "sp", here, whole, inputs=(source,),
                    of_sequences=spec.kind == "linear",
                )  # fmt: skip
            source, before = self.writer.transfer(operation, exchange), whole
        else:
            before = here
        state = spec.state_elements * heads_share(shape.tp, spec.state_shards)
        if spec.kind == "linear":
            work = cache_update(self.sequences, state, state_element_bytes(context.setting, spec), 0.0)
        else:
            elements = spec.cache_elements_per_token * self.kv_share
            tokens = context.load.tokens / (shape.sp * shape.kv_sp)
            work = cache_update(tokens, elements, context.setting.kv_element_bytes, context.element_bytes)
        self.writer.compute(
            Operation(
                "attention.cache",
                "KVCacheUpdate",
                "attention",
                "attention",
                before,
                here,
                inputs=(source,),
                of_sequences=spec.kind == "linear",
            ),
            work,
        )

    def _value_heads(self) -> int:
        spec = self.spec
        return (spec.linear_value_heads or spec.kv_heads) if spec.kind == "linear" else spec.query_heads

    def _core(self, width: float, inputs: tuple[str, ...]) -> None:
        context, shape, heads = self.context, self.context.shape, self._value_heads()
        out_width = heads * self.spec.v_head_dim / shape.tp
        result = self._shape("heads", out_width)
        source = self._shape("qkv", width)
        operation = Operation("attention.core", "Attention", "attention", "attention", source, result, inputs=inputs)
        self.writer.compute(operation, self.core_work())
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

    def core_work(self) -> Work:
        """The attention core alone: the one operation that depends on what is cached."""
        spec, load, shape = self.spec, self.context.load, self.context.shape
        setting, heads = self.context.setting, spec.query_heads / shape.tp
        # Queries (with the new keys and values) read, outputs written.
        widths = heads * spec.qk_head_dim + self._value_heads() / shape.tp * spec.v_head_dim
        moved = self.tokens * widths * self.context.element_bytes
        split = shape.sp * shape.kv_sp
        if spec.kind == "linear":
            state = spec.state_elements * heads_share(shape.tp, spec.state_shards)
            return recurrence(self.tokens, self.sequences, state, state_element_bytes(setting, spec), moved)
        pairs, visible, scored = attended_pairs(spec, load.new_tokens, load.context)
        pairs, scored = self.sequences * pairs / split, self.sequences * scored / split
        per_token = spec.cache_elements_per_token * self.kv_share * setting.kv_element_bytes
        # All-gather SP reads every key on every rank; Ulysses and a split cache read a part.
        read_parts = shape.kv_sp * (shape.sp if shape.ulysses else 1)
        index = (spec.index_head_dim or 0) * setting.kv_element_bytes if spec.index_heads else 0.0
        cached = self.sequences * visible * max(0.0, per_token - index) / read_parts
        state = self.sequences * spec.state_elements * setting.kv_element_bytes / read_parts
        if spec.kind == "mla":
            work = latent_attention(self._latent(heads), pairs, self.sequences * load.context / split, cached, moved)
        else:
            work = attention_core(
                self._attention(heads), pairs, spec.qk_head_dim + spec.v_head_dim, cached + state, moved
            )
            if spec.kind == "compressed":
                # No kernel of this kind was measured: the roofline has to do.
                work = replace(work, kernels=())
        if spec.index_heads and spec.index_head_dim:
            keys = self.sequences * (load.context + load.new_tokens) * index / read_parts
            work = work + indexer_scores(scored, spec.index_heads, spec.index_head_dim, keys)
        return work

    def _part(self) -> tuple[Number, float, float]:
        """Sequences, new tokens and cached tokens of each as one device attends to them.

        Sequence ranks divide the queries, the split cache its tokens.
        """
        load, shape = self.context.load, self.context.shape
        sequences, new, context = 1.0 * self.sequences, load.new_tokens / shape.sp, load.context / shape.kv_sp
        if shape.sp > 1:
            # Queries of all parts of the prompt: on average they see the other parts' half.
            context += (load.new_tokens - new) / 2
        return sequences, new, context

    def _chosen(self) -> float:
        """Cached tokens that each new one chooses on this device; 0 where attention runs dense.

        It does where a sequence has no more tokens than may be chosen; sparse kernels take as long as for all of them.
        """
        load, topk = self.context.load, self.spec.index_topk
        is_short = topk is not None and load.context + load.new_tokens <= topk
        if topk is None or (is_short and not self.context.setting.chooses_always):
            return 0
        return topk / self.context.shape.kv_sp

    def _latent(self, heads: float) -> LatentAttention:
        spec = self.spec
        sequences, new, context = self._part()
        return LatentAttention(
            sequences, new, context, heads,
            latent=spec.kv_lora_rank or spec.cache_elements_per_token,
            rope=spec.qk_rope_head_dim or 0,
            nope=spec.qk_nope_head_dim or spec.qk_head_dim,
            value=spec.v_head_dim,
            kv=self.context.setting.precision.kv_cache,
            chosen=self._chosen(),
        )  # fmt: skip

    def _attention(self, heads: float) -> Attention:
        spec = self.spec
        sequences, new, context = self._part()
        return Attention(
            sequences, new, context, heads,
            kv_heads=spec.kv_heads * heads_share(self.context.shape.tp, spec.kv_heads),
            head_dim=(spec.qk_head_dim + spec.v_head_dim) / 2,
            kv=self.context.setting.precision.kv_cache,
            window=spec.window_tokens,
        )  # fmt: skip

    def _gather_tokens(self, following: OperatorSet | None) -> None:
        """Brings the tokens of all sequence ranks back to every device that goes on with them."""
        context = self.context
        wider = context.shape.wider("attention", following)
        where: Where = "sp" if wider is None else union_where("attention", following)
        whole = shape_of(self.sequences, context.load.new_tokens, "hidden", context.hidden)
        self.writer.transfer(
            Operation(
                "attention.gather", "AllGather", "attention", where, self._shape("hidden", context.hidden), whole
            ),
            context.links.all_gather(context.token_bytes, wider or context.shape.sp_group),
        )


_LOW_RANK: frozenset[Role] = frozenset({"q_a", "kv_a", "qkv_a"})
