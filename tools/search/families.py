"""Families of strategies, by the kinds of parallelism that they combine: `DP × PP × TP`.

It judges no strategy: which one is better is decided by the search.
"""

from __future__ import annotations

from ..plan.document import PhaseStrategy, Strategy
from ..plan.placement import is_disaggregated


def family(strategy: Strategy) -> str:
    """The kinds of parallelism of `strategy`, each phase apart where a replica serves only one."""
    prefill, decode = _kinds(strategy.prefill), _kinds(strategy.decode)
    if is_disaggregated(strategy):
        return f"prefill {_joined(prefill)} + decode {_joined(decode)}"
    return _joined((*(("DP",) if strategy.dp > 1 else ()), *dict.fromkeys((*prefill, *decode))))


def _kinds(phase: PhaseStrategy) -> tuple[str, ...]:
    degrees = {
        "PP": phase.pp,
        "SP": phase.sp,
        "EP": phase.ep,
        "attention DP": phase.attention_dp or 1,
        "KV-SP": phase.kv_sp or 1,
        "TP": max(phase.tp, phase.tp_ffn),
        "TP in experts": phase.tp_expert or 1,
    }
    return tuple(name for name, degree in degrees.items() if degree > 1)


def _joined(kinds: tuple[str, ...]) -> str:
    return " × ".join(kinds) or "one device"
