"""Weight memory of one device: the union of the tensor slices of its phases.

A slice of a sharded tensor is its interval [rank/degree, (rank+1)/degree). A device that serves prefill and decode
holds the union of both: nested slices (tp 8 inside tp 4, same place) cost the larger, disjoint ones their sum. KV
projections are cut by head and repeat beyond one head per device; replicated tensors are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from ..caches import Cache
from ..catalog.architecture import LayerSpec
from ..catalog.precision import weight_dtypes
from ..plan.layout import NO_EXPERTS, PhaseLayout, StageLayout
from .setting import Setting

# A rank and the number of parts; `None` where the device holds nothing of the operator.
Slice = tuple[int, int]


class Holding(Struct, frozen=True):
    """The weights of one stage on one device: layers, and the slice of each kind of operator."""

    first: int
    last: int
    attention: Slice | None
    ffn: Slice | None
    experts: frozenset[int]
    expert_slice: Slice
    router: bool
    embedding: Slice | None
    head: Slice | None


def stage_holding(phase: PhaseLayout, stage: StageLayout, device: str) -> Holding:
    """The weights of `stage` on `device`."""
    degrees = phase.degrees
    at = stage.places.get(device)
    experts = stage.experts[at] if at is not None and at < len(stage.experts) else NO_EXPERTS
    expert_rank = stage.expert_ranks[at] if at is not None and at < len(stage.expert_ranks) else 0
    return Holding(
        first=stage.layers[0],
        last=stage.layers[1],
        attention=_slice(stage.attention_places, device, degrees.tp),
        ffn=_slice(stage.ffn_places, device, degrees.tp_ffn),
        experts=experts,
        expert_slice=(expert_rank, degrees.tp_expert or 1),
        router=at is not None,
        embedding=_slice(stage.embedding_places, device, stage.vocab_shards),
        head=_slice(stage.head_places, device, stage.vocab_shards),
    )


def _slice(places: Mapping[str, int], device: str, parts: int) -> Slice | None:
    place = places.get(device)
    return None if place is None else (place % parts, parts)


def covered_share(slices: Iterable[Slice]) -> float:
    """Share of a tensor that the union of `slices` covers."""
    distinct = set(slices)
    if len(distinct) <= 1:
        return 1.0 / next(iter(distinct))[1] if distinct else 0.0
    covered, end = 0.0, 0.0
    for start, stop in sorted((rank / parts, (rank + 1) / parts) for rank, parts in distinct):
        covered += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return covered


def kv_slice(part: Slice, kv_heads: int) -> Slice:
    """The slice of the KV projections on a device: whole heads, repeated where there are more devices than heads."""
    rank, parts = part
    return part if parts <= kv_heads else (rank * kv_heads // parts, kv_heads)


def weights_bytes(setting: Setting, holdings: tuple[Holding, ...]) -> float:
    """Bytes of weights on a device that holds `holdings` (one per phase and stage it serves)."""
    return _WEIGHTS.get(setting.caches, holdings, lambda: _weights_bytes(setting, holdings))


_WEIGHTS = Cache["tuple[Holding, ...]", float]("bytes of weights by what a device holds")


def _weights_bytes(setting: Setting, holdings: tuple[Holding, ...]) -> float:
    bounds = sorted({h.first for h in holdings} | {h.last + 1 for h in holdings})
    total = vocabulary_bytes(setting, holdings)
    for start, stop in pairwise(bounds):
        active = tuple(dict.fromkeys(h for h in holdings if h.first <= start <= h.last))
        if active:
            total += sum(run.count * layer_bytes(setting, run.spec, active) for run in setting.runs(start, stop - 1))
    return total


def layer_bytes(setting: Setting, spec: LayerSpec, active: tuple[Holding, ...]) -> float:
    """Bytes of one layer of `spec` on a device with the holdings `active`."""
    total = 0.0
    attention = [h.attention for h in active if h.attention is not None]
    if spec.attention is not None and attention:
        parts = setting.tensor_bytes(spec.attention.tensors)
        heads = spec.attention.kv_heads
        total += parts.replicated + parts.sharded * covered_share(attention)
        total += parts.kv_heads * covered_share(kv_slice(part, heads) for part in attention)
    ffn = [h.ffn for h in active if h.ffn is not None]
    shared = spec.moe.shared if spec.moe is not None else None
    for dense in (spec.ffn, shared):
        if dense is not None and ffn:
            parts = setting.tensor_bytes(dense.tensors)
            total += parts.replicated + (parts.sharded + parts.kv_heads) * covered_share(ffn)
    if spec.moe is not None:
        if any(h.router for h in active):
            total += setting.tensor_bytes(spec.moe.router_tensors).total
        total += setting.tensor_bytes(spec.moe.expert_tensors).total * _expert_count(active, spec.moe.experts)
    return total


def _expert_count(active: tuple[Holding, ...], experts: int) -> float:
    """Number of experts whose weights are on the device; slices of an expert count as fractions."""
    slices = {h.expert_slice for h in active if h.experts}
    ids: set[int] = set()
    for holding in active:
        ids.update(holding.experts)
    if len(slices) <= 1:
        return sum(1 for expert in ids if expert < experts) * covered_share(slices)
    return sum(
        covered_share(h.expert_slice for h in active if expert in h.experts) for expert in ids if expert < experts
    )


def vocabulary_bytes(setting: Setting, holdings: tuple[Holding, ...]) -> float:
    """Bytes of embedding, LM head and final norm on a device that holds `holdings`."""
    architecture = setting.architecture
    embedding = [h.embedding for h in holdings if h.embedding is not None]
    head = [h.head for h in holdings if h.head is not None]
    table = setting.tensor_bytes(architecture.embedding_tensors).total
    if architecture.tied_embeddings:
        total = table * covered_share([*embedding, *head])
    else:
        total = table * covered_share(embedding)
    total += setting.tensor_bytes(architecture.lm_head_tensors).total * covered_share(head)
    if head:
        total += setting.tensor_bytes(architecture.final_norm_tensors).total
    return total


def loaded_bytes(setting: Setting) -> float:
    """Bytes of the weights to load: in the native format if the engine quantises on loading, else as they serve."""
    native = setting.architecture.native_precision
    if not setting.engine.facts.quantises(setting.precision.weights, native):
        return model_bytes(setting)
    return model_bytes(replace(setting, dtypes=weight_dtypes(setting.architecture, native), caches={}))


def model_bytes(setting: Setting) -> float:
    """Bytes of all weights of the model, each counted once."""
    model = setting.architecture
    total = sum(
        setting.tensor_bytes(tensors).total
        for tensors in (model.embedding_tensors, model.lm_head_tensors, model.final_norm_tensors)
    )
    for run in setting.runs(0, model.num_layers - 1):
        dense, moe = [run.spec.attention, run.spec.ffn], run.spec.moe
        if moe is not None:
            dense.append(moe.shared)
            total += run.count * moe.experts * setting.tensor_bytes(moe.expert_tensors).total
            total += run.count * setting.tensor_bytes(moe.router_tensors).total
        total += run.count * sum(setting.tensor_bytes(part.tensors).total for part in dense if part is not None)
    return total
