"""A strategy in the field's shorthand, for people: `DP2 × PP2 × TP8`, each phase apart where they differ."""

from __future__ import annotations

from itertools import groupby

from ..plan.document import PhaseStrategy, PrecisionBlock, Strategy
from ..plan.placement import is_disaggregated


def number(value: float) -> str:
    """`value` to four figures, without an exponent where people would write none."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def describe_phase(phase: PhaseStrategy, *, has_split_ffn: bool | None = None) -> str:
    """The degrees of one phase that are more than 1, and TP of the FFN wherever it is not attention's.

    `has_split_ffn`: whether the model has a dense FFN or a shared expert; `None` where that is not known, then a
    strategy that splits no experts is one of a dense model.
    """
    if has_split_ffn is None:
        has_split_ffn = phase.ep == (phase.tp_expert or 1) == 1
    parts = [
        f"{name}{degree}"
        for name, degree in (
            ("PP", phase.pp),
            ("SP", phase.sp),
            ("EP", phase.ep),
            ("attention-DP", phase.attention_dp or 1),
            ("KV-SP", phase.kv_sp or 1),
            ("TP", phase.tp),
            ("expert-TP", phase.tp_expert or 1),
        )
        if degree > 1
    ]
    if phase.tp_ffn != phase.tp and (phase.tp_ffn > 1 or has_split_ffn):
        parts.append(f"FFN-TP{phase.tp_ffn}")
    return " × ".join(parts) or "one device"


def describe(strategy: Strategy, *, has_split_ffn: bool | None = None) -> str:
    """The whole strategy on one line, without the number of GPUs; `has_split_ffn` as in `describe_phase`."""
    prefill, decode = (
        describe_phase(phase, has_split_ffn=has_split_ffn) for phase in (strategy.prefill, strategy.decode)
    )
    cuts = dict.fromkeys(text for text in map(_cut, (strategy.prefill, strategy.decode)) if text)
    return _shape(strategy, prefill, decode) + (f" (layers {' / '.join(cuts)})" if cuts else "")


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


def _cut(phase: PhaseStrategy) -> str:
    """The layers of each stage, where they are not dealt out evenly."""
    runs = [(layers, len(list(run))) for layers, run in groupby(phase.stage_layers or ())]
    return "+".join(f"{count}×{layers}" if count > 1 else str(layers) for layers, count in runs)


def _shape(strategy: Strategy, prefill: str, decode: str) -> str:
    if is_disaggregated(strategy):
        return f"{strategy.prefill.replicas} prefill of {prefill} + {strategy.decode.replicas} decode of {decode}"
    shape = prefill if prefill == decode else f"prefill {prefill}, decode {decode}"
    return f"DP{strategy.dp} of {shape}" if strategy.dp > 1 else shape
