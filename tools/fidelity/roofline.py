"""The plain datasheet roofline: the yardstick beside which the performance model's errors are printed.

t = max(FLOPs / peak, bytes / bandwidth) + bytes sent / link bandwidth, summed over the layers of a pass: no efficiency,
no launch, no latency, no host, no imbalance. It is what a spreadsheet would say, and nothing else may be built on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..catalog.architecture import AttentionSpec, LayerSpec, MoESpec, WeightTensor
from ..performance.kv_cache import all_layers, request_bytes
from ..performance.layout import Layout
from ..performance.shape import PhaseLayout
from ..plan.document import Phase


@dataclass(frozen=True, slots=True)
class _Work:
    """What one device does: FLOPs of matmuls and of attention (16 bits), bytes moved and bytes sent."""

    matmul_flops: float = 0.0
    attention_flops: float = 0.0
    moved_bytes: float = 0.0
    sent_bytes: float = 0.0

    def plus(self, other: _Work, times: int = 1) -> _Work:
        """The sum of this and `times` the other."""
        return _Work(
            self.matmul_flops + times * other.matmul_flops,
            self.attention_flops + times * other.attention_flops,
            self.moved_bytes + times * other.moved_bytes,
            self.sent_bytes + times * other.sent_bytes,
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """What a pass carries in each attention group: sequences, new tokens of each, cached tokens before them."""

    sequences: float
    new_tokens: int
    context: float

    @property
    def tokens(self) -> float:
        """New tokens in all."""
        return self.sequences * self.new_tokens

    @property
    def pairs(self) -> float:
        """Pairs of a query and a key, causal among the new tokens."""
        return self.tokens * (self.context + (self.new_tokens + 1) / 2)


class Roofline:
    """Times of passes of a layout's first replica in each phase. A request passes all stages of a pipeline in turn."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.setting = layout.setting

    def prefill_seconds(self, prompts: int) -> float:
        """All of `prompts` prompts of the workload's length in one replica."""
        phase = self.layout.phase("prefill")
        return self._seconds(phase, _Batch(prompts / phase.attention_groups, self.setting.prompt_tokens, 0.0))

    def step_seconds(self, requests: int) -> float:
        """One decode step of `requests` in one replica; stages share them as microbatches."""
        phase = self.layout.phase("decode")
        share = requests / (phase.attention_groups * len(phase.stages))
        return self._seconds(phase, _Batch(share, 1, float(self.setting.mean_decode_context)))

    def _seconds(self, phase: PhaseLayout, batch: _Batch) -> float:
        setting, hardware = self.setting, self.setting.hardware
        work = self._vocabulary(phase, batch)
        for run in setting.runs(*all_layers(setting)):
            work = work.plus(self._layer(phase, run.spec, batch), run.count)
        work = work.plus(_Work(moved_bytes=self._cache_bytes(phase.phase, batch)))
        peak = hardware.peak_flops(setting.precision.activations)
        arithmetic = work.matmul_flops / peak + work.attention_flops / hardware.peak_flops("bf16")
        moved = work.moved_bytes / hardware.memory_bandwidth_bytes_s
        inside = all(hardware.group_is_inside_domain(stage.devices) for stage in phase.stages)
        sent = 0.0
        if work.sent_bytes > 0.0:
            sent = work.sent_bytes / (hardware.intra_bw_bytes_s if inside else hardware.inter_bw_bytes_s)
        return max(arithmetic, moved) + sent

    def _layer(self, phase: PhaseLayout, spec: LayerSpec, batch: _Batch) -> _Work:
        degrees, work = phase.degrees, _Work()
        if spec.attention is not None:
            work = work.plus(self._matmul(spec.attention.tensors, batch.tokens, degrees.tp))
            work = work.plus(_Work(attention_flops=_attention_flops(spec.attention, batch) / degrees.tp))
            work = work.plus(self._all_reduce(batch.tokens, degrees.tp))
        if spec.ffn is not None:
            work = work.plus(self._matmul(spec.ffn.tensors, batch.tokens, degrees.tp_ffn))
            work = work.plus(self._all_reduce(batch.tokens, degrees.tp_ffn))
        if spec.moe is not None:
            work = work.plus(self._experts(phase, spec.moe, batch))
        return work

    def _experts(self, phase: PhaseLayout, moe: MoESpec, batch: _Batch) -> _Work:
        """Evenly shared experts: each device computes its share and reads the weights of the experts that are hit."""
        width, tokens = phase.stages[0].width, batch.tokens * phase.attention_groups
        hit = 1.0 - (1.0 - moe.top_k / moe.experts) ** tokens
        stored = self.setting.tensor_bytes(moe.expert_tensors).total * moe.experts
        work = _Work(
            matmul_flops=2.0 * tokens * moe.top_k * _elements(moe.expert_tensors) / width,
            moved_bytes=stored * hit / width,
        )
        work = work.plus(self._matmul(moe.router_tensors, batch.tokens, 1))
        if moe.shared is not None:
            work = work.plus(self._matmul(moe.shared.tensors, batch.tokens, phase.degrees.tp_ffn))
        if phase.attention_groups == 1:
            return work.plus(self._all_reduce(batch.tokens, width))
        # Each token is sent to its experts' devices and comes back.
        token_bytes = self.setting.architecture.hidden_size * self.setting.activation_bytes
        away = tokens / width * min(moe.top_k, width - 1)
        return work.plus(_Work(sent_bytes=2.0 * away * token_bytes))

    def _vocabulary(self, phase: PhaseLayout, batch: _Batch) -> _Work:
        architecture = self.setting.architecture
        head = architecture.lm_head_tensors or architecture.embedding_tensors[:1]
        return self._matmul(head, batch.sequences, phase.stages[-1].vocab_shards)

    def _matmul(self, tensors: tuple[WeightTensor, ...], tokens: float, parts: int) -> _Work:
        return _Work(
            matmul_flops=2.0 * tokens * _elements(tensors) / parts,
            moved_bytes=self.setting.tensor_bytes(tensors).total / parts,
        )

    def _all_reduce(self, tokens: float, ranks: int) -> _Work:
        token_bytes = self.setting.architecture.hidden_size * self.setting.activation_bytes
        return _Work(sent_bytes=2.0 * (ranks - 1) / ranks * tokens * token_bytes)

    def _cache_bytes(self, phase: Phase, batch: _Batch) -> float:
        """Keys and values that decode reads; prefill writes them, which is next to nothing."""
        if phase == "prefill":
            return 0.0
        tp = self.layout.phase("decode").degrees.tp
        return batch.sequences * request_bytes(self.setting, all_layers(self.setting), math.ceil(batch.context), tp)


def _elements(tensors: Iterable[WeightTensor]) -> int:
    return sum(tensor.elements for tensor in tensors)


def _attention_flops(attention: AttentionSpec, batch: _Batch) -> float:
    """Scores and weighted values over what is attended to; linear layers have no pairs."""
    if attention.kind == "linear":
        return 0.0
    most = min(limit for limit in (attention.window_tokens, attention.index_topk, math.inf) if limit is not None)
    pairs = min(batch.pairs, batch.tokens * most)
    return 2.0 * pairs * attention.query_heads * (attention.qk_head_dim + attention.v_head_dim)
