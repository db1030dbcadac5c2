"""The parallel layout of a row: what its `tp`, `pp`, `ep` and `dp` mean for this model, as a `Strategy`.

`dp` is replicas for a dense model and data-parallel attention inside one group for a mixture of experts; experts that
`ep` does not deal out over all devices are cut by tensor parallelism. A layout that contradicts itself is refused.
"""

from __future__ import annotations

import re

from ..catalog.architecture import Architecture
from ..errors import InputError
from ..plan.document import PHASES, Phase, PhaseStrategy, Relaxation, Strategy
from ..plan.placement import gpu_count, phase_width, stage_width
from .table import Degree, MeasuredRow

_ONE = Degree(1, 1)
_WORKERS = re.compile(r"(prefill|decode) ([0-9]{1,6}) workers")
_MOST_DEVICES = 100_000


def strategy_of(row: MeasuredRow, architecture: Architecture) -> Strategy:
    """The row's strategy, `gpu_count` checked against its `gpus`. Raises InputError: why it cannot be modelled."""
    if row.tp is None:
        raise InputError("tp is not stated")
    workers = _workers(row) if row.disaggregated else {}
    prefill, decode = (_phase(row, architecture, phase, workers.get(phase)) for phase in PHASES)
    replicas = sum(workers.values()) or (1 if architecture.is_moe else (row.dp or _ONE).decode)
    strategy = Strategy(dp=replicas, gpu_count=1, prefill=prefill, decode=decode)
    devices = gpu_count(strategy)
    if row.gpus is not None and devices != row.gpus:
        raise InputError(f"tp, pp, ep and dp make {devices} GPUs, gpus says {row.gpus}")
    return strategy.model_copy(update={"gpu_count": devices})


def relaxations_of(strategy: Strategy) -> tuple[Relaxation, ...]:
    """The relaxations that the layout needs; engines shard the vocabulary wherever tp is above 1 (rule R12)."""
    phases = (strategy.prefill, strategy.decode)
    relaxations: list[Relaxation] = []
    if any(phase.tp_expert for phase in phases):
        relaxations.append("tp_in_expert")
    if any(phase.attention_dp for phase in phases):
        relaxations.append("attention_dp")
    if any(phase.tp > 1 for phase in phases):
        relaxations.append("vocab_parallel")
    return tuple(relaxations)


def nodes_of(strategy: Strategy, gpus_per_node: int) -> int:
    """Nodes on which no group of devices that fits into a node straddles two."""
    if strategy.prefill.replicas is not None and strategy.decode.replicas is not None:
        kinds = ((strategy.prefill, strategy.prefill.replicas), (strategy.decode, strategy.decode.replicas))
        return sum(_nodes(phase, count, gpus_per_node) for phase, count in kinds)
    return _nodes(max(strategy.prefill, strategy.decode, key=phase_width), strategy.dp, gpus_per_node)


def _nodes(phase: PhaseStrategy, replicas: int, gpus_per_node: int) -> int:
    stages, width = replicas * phase.pp, stage_width(phase)
    if width > gpus_per_node:
        return stages * -(-width // gpus_per_node)
    return -(-stages // (gpus_per_node // width))


def _workers(row: MeasuredRow) -> dict[str, int]:
    """Groups of devices that serve each phase of a disaggregated deployment."""
    counts = {phase: int(count) for phase, count in _WORKERS.findall(row.notes)}
    if not counts:
        raise InputError("disaggregated, and the notes do not count the workers of each phase")
    if not counts.get("prefill") or not counts.get("decode"):
        raise InputError("one phase of a disaggregated deployment alone: there is no request to follow to its end")
    return counts


def _phase(row: MeasuredRow, architecture: Architecture, phase: Phase, workers: int | None) -> PhaseStrategy:
    degrees = [row.tp or _ONE, row.pp or _ONE, row.ep or _ONE, row.dp or _ONE]
    tp, pp, ep, dp = (degree.prefill if phase == "prefill" else degree.decode for degree in degrees)
    if tp * pp * dp * (workers or 1) > _MOST_DEVICES:
        raise InputError(f"the layout takes more than {_MOST_DEVICES:,} GPUs")
    if pp > architecture.num_layers:
        raise InputError(f"pp {pp} is more than the model's {architecture.num_layers} layers")
    tp_ffn = tp if architecture.has_split_ffn else 1
    if not architecture.is_moe:
        if ep != 1:
            raise InputError(f"ep {ep} for a model without experts")
        if workers is not None and dp != 1:
            raise InputError(f"dp {dp} inside the {phase} workers of a dense model is not told apart from more workers")
        return PhaseStrategy(pp=pp, tp=tp, tp_ffn=tp_ffn, replicas=workers)
    devices = tp * dp
    if devices % ep:
        raise InputError(f"ep {ep} does not divide the {devices} devices of tp x dp")
    if ep > architecture.num_experts:
        raise InputError(f"ep {ep} is more than the model's {architecture.num_experts} experts")
    return PhaseStrategy(
        pp=pp,
        tp=tp,
        tp_ffn=tp_ffn,
        ep=ep,
        tp_expert=devices // ep if devices > ep else None,
        attention_dp=dp if dp > 1 else None,
        replicas=workers,
    )
