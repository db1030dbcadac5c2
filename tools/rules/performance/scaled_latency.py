"""PE006: a claimed figure matches the critical path of the graph, and the `bytes` of an edge what it carries.

Figures that another rule names more exactly are left to it, and so are their consequences. A latency that was divided
by degrees instead of computed is reported as such.

An edge carries a size per token, and an author may count one token, one prompt or pass, or all requests, whole or per
device. A claim that fits none of these is wrong. Sizes that depend on the routing of tokens are only bounded. All sizes
are those of the performance model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct

from ...performance.layout import LoadedLayout
from ...performance.request_memory import layer_request_bytes
from ...plan.layout import PhaseLayout
from ...plan.load import repeated_share
from ...plan.view import EdgeView, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule, Violation
from ..evaluation import evaluation_of
from ..findings import Change, steps_of
from ..reading import is_cache_edge, layers_of
from .attribution import faults_of, finding_of
from .claims import claim_of, near, recomputed


def _has_sized_edge(view: PlanView) -> bool:
    examples = view.elements.examples()
    edges = chain(edge.raw for edge in view.whole.edges) if examples is None else iter(examples[1])
    return any(edge.get("bytes") is not None for edge in edges)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield claimed figures that are off, and edges with wrong `bytes`."""
    has_sizes = _has_sized_edge(view)
    evaluation = evaluation_of(view) if claim_of(view) or has_sizes else None
    if evaluation is None:
        return
    profile = evaluation.estimate.calibration.profile
    for fault in faults_of(view, "PE006"):
        says = f"it is {fault.why}" if fault.why else "that is not what the graph takes"
        yield finding_of("divided-by-degrees" if fault.why else "figure-off", fault, f"{says} (profile {profile})")
    if has_sizes:
        for misfit in misfits(view, evaluation.layout):
            yield Finding(
                "edge-bytes",
                f"the edge is said to carry {misfit.claimed:,} bytes; what travels there is not that much or little, "
                f"the nearest reading is {misfit.nearest:,}",
                where=misfit.edge,
                value=misfit.claimed,
                expected=misfit.nearest,
                remedy="leave bytes out, or give those of a pass of the phase",
            )


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Compute the figures again, or remove them if that fails; give an edge the nearest size that it may carry."""
    if violation.edges:
        steps = steps_of(violation.path, view.raw) or ()
        if len(steps) >= 2 and isinstance(violation.expected, int):
            yield Change("set", (*steps[:2], "bytes"), violation.expected, edges=violation.edges)
    elif violation.path == "/performance":
        yield Change("remove", ("performance",))
    else:
        yield from recomputed(view, violation)


RULE = Rule(
    id="PE006",
    name="figure off the critical path",
    requirement=(
        "A claimed figure matches what is computed on the critical path of the graph, within 5%; latency is not scaled "
        "by a product of degrees. `bytes` on an edge is a claim too."
    ),
    rationale=(
        "latency ≠ time on one device / (tp × pp × ep): what is replicated is not divided, collectives come on top, "
        "stages follow one another, and the slowest expert group sets the pace. Only the longest path counts all of it."
    ),
    source="004 §5, §8",
    remedy="replace the value by what `estimate` computes on the graph, or leave the field out",
    check=check,
    good=Example("dense-pp2-tp2", (Edit("evaluate"), Edit("scale", field="/performance/latency/ttft_ms", value=1.03))),
    bad=Example("dense-tp4", (Edit("evaluate"), Edit("scale", field="/performance/latency/ttft_ms", value=0.25))),
    rests_on_estimate=True,
    mend=mend,
)


_ROUTED = frozenset({"RouterNode", "ExpertNode"})


class Misfit(Struct, frozen=True):
    """The `bytes` of an edge that fits no reading: what it claims, and the nearest size that would pass."""

    edge: EdgeView
    claimed: int
    nearest: int


def misfits(view: PlanView, layout: LoadedLayout) -> Iterator[Misfit]:
    """The edges whose `bytes` fit no reading; edges outside phases are left to other rules."""
    payloads = {name: _Payloads(layout, layout.phase(name)) for name in ("prefill", "decode")}
    known: dict[tuple[object, ...], tuple[float, ...]] = {}
    for edge, source, _ in view.whole.links:
        claimed = edge.raw.get("bytes")
        if not isinstance(claimed, int) or isinstance(claimed, bool) or claimed < 0:
            continue
        phase = source.ancestor("PhaseNode")
        of_phase = payloads.get(str(phase.raw.get("phase"))) if phase is not None else None
        if of_phase is None:
            continue
        if of_phase.is_routed(edge):
            if not 0 < claimed <= of_phase.most_routed:
                yield Misfit(edge, claimed, math.ceil(of_phase.most_routed))
            continue
        key = (of_phase.phase.phase, *_kind(view, edge))
        if key not in known:
            known[key] = tuple(of_phase.readings(view, edge))
        if known[key] and not any(near(float(claimed), size) for size in known[key]):
            yield Misfit(edge, claimed, _nearest(known[key], claimed))


def _nearest(sizes: Sequence[float], claimed: int) -> int:
    return round(min(sizes, key=lambda size: abs(size - claimed)))


class _Payloads:
    """The sizes that edges of one phase may carry, in bytes."""

    def __init__(self, layout: LoadedLayout, phase: PhaseLayout) -> None:
        self.setting = layout.setting
        self.phase = phase
        replicas = layout.prefill_replicas if phase.phase == "prefill" else layout.decode_replicas
        concurrency = self.setting.workload.concurrency
        share = math.ceil(concurrency / max(1, len(replicas)))
        group = math.ceil(share / phase.attention_groups)
        rounds = math.ceil(group / max(1, min(len(phase.stages), group)))
        self.requests = sorted({1, rounds, group, share, concurrency})

    @cached_property
    def _tokens(self) -> list[int]:
        """Possible numbers of tokens of a pass: one, a prompt or a chunk of it, times numbers of requests."""
        prompt = self.setting.prompt_tokens
        hits = math.floor(repeated_share(self.setting.workload) * prompt)
        chunk = self.setting.prefill_chunk_tokens
        each = {1, prompt, prompt - hits, min(prompt, chunk)} if self.phase.phase == "prefill" else {1}
        parts = {1, self.phase.token_parts}
        counts = {
            math.ceil(tokens / part) * requests for tokens in each for part in parts for requests in self.requests
        }
        return sorted(counts | {chunk} if self.phase.phase == "prefill" else counts)

    @property
    def most_routed(self) -> float:
        """Bytes of all routed copies of all tokens of all requests."""
        specs = [layer.moe for layer in self.setting.architecture.layers if layer.moe is not None]
        copies = max((spec.top_k for spec in specs), default=1)
        return self._tokens[-1] * copies * self._hidden

    @property
    def _hidden(self) -> float:
        return self.setting.architecture.hidden_size * self.setting.activation_bytes

    @staticmethod
    def is_routed(edge: EdgeView) -> bool:
        """Whether the edge is part of an expert fan-out."""
        return any(end is not None and (end.type in _ROUTED or _is_exchange(end)) for end in (edge.source, edge.target))

    def readings(self, view: PlanView, edge: EdgeView) -> Iterator[float]:
        """Every size that the edge may have, in bytes."""
        if _carries_cache(edge):
            yield from self._cache_sizes(view, edge)
            return
        widths = {1, *(stage.width for stage in self.phase.stages), self.phase.degrees.tp, self.phase.degrees.tp_ffn}
        for tokens in self._tokens:
            for width in widths:
                yield tokens * self._hidden / width
            if _gathers_cache(edge):
                yield from (tokens * size for size in self._cache_per_token(view, edge))

    def _cache_sizes(self, view: PlanView, edge: EdgeView) -> Iterator[float]:
        assert edge.source is not None and edge.target is not None
        layers = [*_layers(view, edge.source)]
        if is_cache_edge(edge):
            target_layers = _layers(view, edge.target)
            layers = [layer for layer in layers if layer in target_layers] or layers
        setting, tp = self.setting, self.phase.degrees.tp
        lengths = {setting.prompt_tokens, setting.request_tokens, 1}
        for chosen in (layers, layers[:1]):
            specs = [setting.architecture.layers[layer].attention for layer in chosen]
            for tokens in lengths:
                for ranks, parts in {(1, 1), (tp, 1), (tp, self.phase.token_parts), (1, self.phase.token_parts)}:
                    size = sum(layer_request_bytes(setting, spec, tokens, ranks, parts) for spec in specs if spec)
                    yield from (size * requests for requests in self.requests)

    def _cache_per_token(self, view: PlanView, edge: EdgeView) -> Iterator[float]:
        assert edge.source is not None
        for layer in _layers(view, edge.source)[:1]:
            spec = self.setting.architecture.layers[layer].attention
            if spec is not None:
                for ranks in {1, self.phase.degrees.tp}:
                    yield layer_request_bytes(self.setting, spec, 1, ranks, 1)
                    width = spec.kv_heads * (spec.qk_head_dim + spec.v_head_dim) / ranks
                    yield width * self.setting.activation_bytes


def _is_exchange(node: NodeView) -> bool:
    return node.type == "AllToAllNode" and node.role in ("dispatch", "combine")


def _carries_cache(edge: EdgeView) -> bool:
    return is_cache_edge(edge) or (edge.target is not None and edge.target.type == "KVCacheUpdateNode")


def _gathers_cache(edge: EdgeView) -> bool:
    """Whether the edge leads from a collective: K and V are gathered, or exchanged, before attention."""
    return edge.source is not None and edge.source.is_collective


def _kind(view: PlanView, edge: EdgeView) -> tuple[object, ...]:
    """A key of what the readings of an edge depend on, beside its phase."""
    if not (_carries_cache(edge) or _gathers_cache(edge)):
        return ("hidden",)
    return _carries_cache(edge), *(_layers(view, end) for end in (edge.source, edge.target))


def _layers(view: PlanView, node: NodeView | None) -> range:
    """Layers that the attention operator around `node`, or `node` itself, stands for."""
    return layers_of(view, node if node is None or node.type == "AttentionNode" else node.parent)
