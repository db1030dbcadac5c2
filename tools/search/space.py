"""The space of strategies: every combination of the closed set that is legal for a model on given hardware.

A strategy is legal here when the rules on degrees would accept it (divisibility of heads, widths and experts, layers
for every stage, devices for every replica); whether it fits in memory and what it is worth is decided elsewhere.
Degrees that would leave a stage's devices idle are not tried where a fuller choice of the same kind exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ..catalog.architecture import Architecture, AttentionSpec
from ..plan.document import PhaseStrategy, Strategy
from ..plan.placement import gpu_count, phase_width
from ..rules.engines import Engine
from .engines import engine_runs, ffn_degrees

# Below this SP is not worth its communication (rule SP004).
SP_MIN_INPUT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class SpaceRequest:
    """What bounds the space: the model, the devices, the prompt length, the relaxations in force, a named engine."""

    architecture: Architecture
    nodes: int
    gpus_per_node: int
    input_tokens: int
    relaxations: frozenset[str] = frozenset()
    disaggregated: bool | None = None
    engine: Engine | None = None


def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    return tuple(value for value in range(1, number + 1) if number % value == 0)


def legal_attention_tp(spec: AttentionSpec, tp: int) -> bool:
    """Whether tensor parallelism of degree `tp` may split this attention (rule TP005)."""
    if spec.kind == "linear" and spec.linear_key_heads and spec.linear_value_heads:
        return spec.linear_key_heads % tp == 0 and spec.linear_value_heads % tp == 0
    if spec.query_heads % tp:
        return False
    return spec.kind == "mla" or spec.kv_heads % tp == 0 or tp % spec.kv_heads == 0


@dataclass(frozen=True, slots=True)
class Divisible:
    """What tensor parallelism must divide in one model, gathered once: attention kinds and FFN widths."""

    attention: tuple[AttentionSpec, ...]
    ffn_widths: tuple[int, ...]
    block: int

    def tp(self, tp: int) -> bool:
        """Whether `tp` may split every attention of the model."""
        return all(legal_attention_tp(spec, tp) for spec in self.attention)

    def tp_ffn(self, tp_ffn: int) -> bool:
        """Whether `tp_ffn` may split every dense FFN and shared expert.

        With a block-quantised FP8 checkpoint each slice stays a whole number of blocks, as the engines demand.
        """
        if not self.ffn_widths:
            return tp_ffn == 1
        return tp_ffn == 1 or all(
            width % tp_ffn == 0 and (width // tp_ffn) % self.block == 0 for width in self.ffn_widths
        )

    def ffn_options(self, tp: int, stage: int, attention_dp: int) -> Iterable[int]:
        """Degrees of the FFN that are tried beside attention's `tp`: the same, and the widest that is legal."""
        if not self.ffn_widths:
            return (1,)
        options = {max(value for value in divisors(stage) if self.tp_ffn(value))}
        if self.tp_ffn(tp):
            options.add(tp)
        if attention_dp > 1:
            # The shards carry the attention group, or run as TP over all devices of the stage.
            options = {value for value in options if value <= tp or value == stage} or {1}
        return sorted(options)


def divisible(architecture: Architecture) -> Divisible:
    """What tensor parallelism must divide in `architecture`."""
    kinds = {id(layer): layer for layer in architecture.layers}.values()
    widths: set[int] = set()
    for layer in kinds:
        if layer.ffn is not None:
            widths.add(layer.ffn.width)
        if layer.moe is not None and layer.moe.shared is not None:
            widths.add(layer.moe.shared.width)
    attention = dict.fromkeys(layer.attention for layer in kinds if layer.attention is not None)
    return Divisible(tuple(attention), tuple(sorted(widths)), architecture.fp8_block or 1)


def _phase_options(
    request: SpaceRequest, pp: int, stage: int, model: Divisible, *, prefill: bool
) -> Iterator[PhaseStrategy]:
    """All legal degrees of one phase with `pp` stages of `stage` devices each."""
    architecture = request.architecture
    ep = 1
    if architecture.is_moe:
        if stage > min(layer.moe.experts for layer in architecture.layers if layer.moe is not None):
            return
        ep = stage
    sps = divisors(stage) if prefill and request.input_tokens >= SP_MIN_INPUT_TOKENS else (1,)
    groups = divisors(stage) if "attention_dp" in request.relaxations and architecture.is_moe else (1,)
    for sp, attention_dp, tp in product(sps, groups, divisors(stage)):
        width = sp * attention_dp * tp
        if stage % width or (width < stage and not architecture.is_moe) or not model.tp(tp):
            continue
        if attention_dp > 1 and (sp > 1 or width < stage):
            continue
        relaxed = attention_dp if attention_dp > 1 else None
        for tp_ffn in ffn_degrees(request.engine, model.ffn_options(tp, stage, attention_dp)):
            phase = PhaseStrategy(pp=pp, sp=sp, ep=ep, tp=tp, tp_ffn=tp_ffn, attention_dp=relaxed)
            if engine_runs(request.engine, phase, stage, architecture):
                yield phase


def phase_strategies(request: SpaceRequest, width: int, *, prefill: bool) -> Iterator[PhaseStrategy]:
    """All legal strategies of one phase on exactly `width` devices (one replica)."""
    model = divisible(request.architecture)
    for pp in divisors(width):
        if pp > request.architecture.num_layers:
            break
        yield from _phase_options(request, pp, width // pp, model, prefill=prefill)


# Nodes of one replica that are tried; beyond a few, only round numbers.
_REPLICA_NODES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64)


def replica_widths(request: SpaceRequest) -> tuple[int, ...]:
    """Devices that one replica may have: any part of a node, or whole nodes. Devices may be left unused."""
    inside = range(1, request.gpus_per_node + 1)
    across = [nodes * request.gpus_per_node for nodes in _REPLICA_NODES if nodes <= request.nodes]
    return tuple(sorted({*inside, *across}))


def _room(request: SpaceRequest, width: int) -> int:
    """Replicas of `width` devices that there is room for, none across two nodes where it fits into one."""
    if width <= request.gpus_per_node:
        return request.nodes * (request.gpus_per_node // width)
    return request.nodes // -(-width // request.gpus_per_node)


def colocated(request: SpaceRequest) -> Iterator[Strategy]:
    """Strategies in which each replica serves both phases.

    An engine loads its weights once, so that both phases have the same degrees; prefill alone may trade tensor ranks
    for sequence ranks.
    """
    for width in replica_widths(request):
        decodes = set(phase_strategies(request, width, prefill=False))
        for prefill in phase_strategies(request, width, prefill=True):
            for decode in _decode_of(prefill):
                if decode in decodes:
                    for dp in replica_counts(_room(request, width)):
                        yield _colocated(prefill, decode, dp)
                    break


def _decode_of(prefill: PhaseStrategy) -> Iterator[PhaseStrategy]:
    """Decode degrees that go with a prefill: its own; where it has sequence ranks, these as tensor ranks first."""
    if prefill.sp > 1:
        yield prefill.model_copy(update={"sp": 1, "tp": prefill.sp * prefill.tp})
    yield prefill.model_copy(update={"sp": 1})


def _colocated(prefill: PhaseStrategy, decode: PhaseStrategy, dp: int) -> Strategy:
    strategy = Strategy(dp=dp, gpu_count=1, prefill=prefill, decode=decode)
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})


def replica_counts(most: int) -> tuple[int, ...]:
    """Numbers of replicas that are tried: powers of two, and as many as there is room for."""
    return tuple(sorted({1, most, *(2**power for power in range(most.bit_length()) if 2**power <= most)}))


def disaggregated(request: SpaceRequest) -> Iterator[Strategy]:
    """Strategies with prefill-only and decode-only replicas: every x:y that the devices allow, all of them used."""
    total = request.nodes * request.gpus_per_node
    # Parts that fill a node: pairs of odd widths would multiply the space and leave devices over.
    node = request.gpus_per_node
    widths = [width for width in replica_widths(request) if width > node or node % width == 0]
    prefills = [phase for width in widths for phase in phase_strategies(request, width, prefill=True)]
    decodes = [phase for width in widths for phase in phase_strategies(request, width, prefill=False)]
    for prefill in prefills:
        for decode in decodes:
            wide, deep = phase_width(prefill), phase_width(decode)
            for count in replica_counts((total - deep) // wide if total > deep else 0):
                rest = (total - count * wide) // deep if count else 0
                if count < 1 or rest < 1:
                    continue
                strategy = Strategy(
                    dp=count + rest,
                    gpu_count=count * wide + rest * deep,
                    prefill=prefill.model_copy(update={"replicas": count}),
                    decode=decode.model_copy(update={"replicas": rest}),
                )
                yield strategy


def strategies(request: SpaceRequest) -> Iterator[Strategy]:
    """The whole space: colocated strategies, and disaggregated ones where they are asked for."""
    if request.disaggregated:
        yield from disaggregated(request)
    else:
        yield from colocated(request)
