"""A strategy in the field's shorthand, for people: `DP2 × PP2 × TP8`, each phase apart where they differ.

Its family is the kinds of parallelism that it combines: `DP × PP × TP`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from .document import PhaseStrategy, PrecisionBlock, Strategy
from .placement import is_disaggregated

# Degrees of a phase in the shorthand, in its order, and as kinds of parallelism; the last is no kind of its own.
NAMES = {
    "pp": "PP", "sp": "SP", "ep": "EP", "attention_dp": "attention-DP", "kv_sp": "KV-SP", "tp": "TP",
    "tp_expert": "expert-TP", "tp_ffn": "FFN-TP",
}  # fmt: skip
_KINDS = {
    "pp": "PP", "sp": "SP", "ep": "EP", "attention_dp": "attention DP", "kv_sp": "KV-SP", "tp": "TP",
    "tp_expert": "TP in experts",
}  # fmt: skip


def number(value: float) -> str:
    """`value` to four figures, without an exponent where people would write none."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def billed_text(gpus: int) -> str:
    """How many GPUs are paid for where not all of them are used, and why."""
    return f"{gpus:,} GPUs billed: nodes are rented whole"


def describe_phase(phase: PhaseStrategy, *, has_split_ffn: bool | None = None) -> str:
    """The degrees of one phase that are more than 1, and TP of the FFN wherever it is not attention's.

    `has_split_ffn`: whether the model has a dense FFN or a shared expert; `None` where that is not known, then a
    strategy that splits no experts is one of a dense model.
    """
    if has_split_ffn is None:
        has_split_ffn = phase.ep == (phase.tp_expert or 1) == 1
    parts = [f"{NAMES[name]}{degree}" for name in _KINDS if (degree := getattr(phase, name) or 1) > 1]
    if phase.tp_ffn != phase.tp and (phase.tp_ffn > 1 or has_split_ffn):
        parts.append(f"{NAMES['tp_ffn']}{phase.tp_ffn}")
    return _joined(parts)


def describe(strategy: Strategy, *, has_split_ffn: bool | None = None) -> str:
    """The whole strategy on one line, without the number of GPUs; `has_split_ffn` as in `describe_phase`."""
    prefill, decode = (
        describe_phase(phase, has_split_ffn=has_split_ffn) for phase in (strategy.prefill, strategy.decode)
    )
    cuts = dict.fromkeys(text for text in map(_cut, (strategy.prefill, strategy.decode)) if text)
    return _shape(strategy, prefill, decode) + (f" (layers {' / '.join(cuts)})" if cuts else "")


def family(strategy: Strategy) -> str:
    """The kinds of parallelism of `strategy`, each phase apart where a replica serves only one."""
    prefill, decode = _kinds(strategy.prefill), _kinds(strategy.decode)
    if is_disaggregated(strategy):
        return f"prefill {_joined(prefill)} + decode {_joined(decode)}"
    return _joined((*(("DP",) if strategy.dp > 1 else ()), *dict.fromkeys((*prefill, *decode))))


def precision_name(precision: PrecisionBlock) -> str:
    """Number formats as short as a table wants them: `fp8`, with what else is unusual: `fp8 KV-fp8`, `int4 A-bf16`."""
    parts: list[str] = [precision.weights]
    if precision.activations != precision.weights:
        parts.append(f"A-{precision.activations}")
    if precision.kv_cache not in ("bf16", "fp16"):
        parts.append(f"KV-{precision.kv_cache}")
    return " ".join(parts)


def in_format(precision: PrecisionBlock | None) -> str:
    """What a strategy in words ends with where number formats were left open: ` in fp8`; nothing where not."""
    return "" if precision is None else f" in {precision_name(precision)}"


def _kinds(phase: PhaseStrategy) -> list[str]:
    """The kinds of parallelism of a phase; the FFN's TP is TP."""
    kinds = {kind: getattr(phase, name) or 1 for name, kind in _KINDS.items()} | {"TP": max(phase.tp, phase.tp_ffn)}
    return [kind for kind, degree in kinds.items() if degree > 1]


def _joined(parts: Iterable[str]) -> str:
    return " × ".join(parts) or "one device"


def _cut(phase: PhaseStrategy) -> str:
    """The layers of each stage, where they are not dealt out evenly."""
    runs = [(layers, len(list(run))) for layers, run in groupby(phase.stage_layers or ())]
    return "+".join(f"{count}×{layers}" if count > 1 else str(layers) for layers, count in runs)


def _shape(strategy: Strategy, prefill: str, decode: str) -> str:
    if is_disaggregated(strategy):
        return f"{strategy.prefill.replicas} prefill of {prefill} + {strategy.decode.replicas} decode of {decode}"
    shape = prefill if prefill == decode else f"prefill {prefill}, decode {decode}"
    return f"DP{strategy.dp} of {shape}" if strategy.dp > 1 else shape
