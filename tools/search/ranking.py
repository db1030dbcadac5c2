"""Judges and orders candidates: limits, warnings, and which of two is better for an objective."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ..performance.balance import unbalanced_phases
from ..performance.estimate import QuickTimes
from ..performance.layout import Layout
from ..performance.limits import missed_latency, missed_rates
from ..plan.document import Strategy, WorkloadBlock
from ..plan.performance import LoadEstimate
from .candidate import Candidate
from .describe import number

# Two candidates within this share of each other are a tie, which the simpler one wins.
TIE_SHARE = 0.005


def limits_missed(workload: WorkloadBlock, times: QuickTimes, rate: float) -> tuple[str, ...]:
    """Each limit of the workload that the figures do not hold, by how much (rule PE010). `rate`: output tokens/s."""
    latencies = (missed_latency(workload, "TTFT", times.ttft_ms), missed_latency(workload, "TPOT", times.tpot_ms))
    return (
        *(f"PE010: {m.name} {number(m.figure)} ms exceeds {number(m.limit)} ms" for m in latencies if m is not None),
        *(f"PE010: {number(m.figure)} {m.name}, {number(m.limit)} wanted" for m in missed_rates(workload, rate)),
    )


def percentile_limits(workload: WorkloadBlock) -> tuple[Literal["TTFT", "TPOT"], ...]:
    """The latencies that the workload limits at a percentile."""
    stated = (
        ("TTFT", workload.ttft_ms_max, workload.ttft_statistic),
        ("TPOT", workload.tpot_ms_max, workload.tpot_statistic),
    )
    names: tuple[Literal["TTFT", "TPOT"], ...] = ("TTFT", "TPOT")
    limited = {name for name, limit, statistic in stated if limit is not None and statistic != "mean"}
    return tuple(name for name in names if name in limited)


def percentiles_missed(workload: WorkloadBlock, load: LoadEstimate) -> tuple[str, ...]:
    """Each limit on a percentile that a simulated run does not hold, by how much (rule PE010)."""
    found: list[str] = []
    for name in percentile_limits(workload):
        statistic = workload.ttft_statistic if name == "TTFT" else workload.tpot_statistic
        figure = getattr(load.ttft_ms if name == "TTFT" else load.tpot_ms, statistic)
        missed = missed_latency(workload, name, figure)
        if missed is not None:
            found.append(f"PE010: {name} ({statistic}) {number(missed.figure)} ms exceeds {number(missed.limit)} ms")
    return tuple(found)


def warnings_of(layout: Layout) -> tuple[str, ...]:
    """Rules that warn of `layout`: TP across domains (TP007), idle devices (GP005), uneven experts or stages."""
    found: set[str] = {"PP008"} if unbalanced_phases(layout) else set()
    facts = layout.setting.hardware
    for replica in layout.replicas[:1] if layout.replicas_alike else layout.replicas:
        for phase in replica.phases:
            degrees = phase.degrees
            for stage in phase.stages:
                for devices, width in ((stage.attention_devices, degrees.tp), (stage.ffn_devices, degrees.tp_ffn)):
                    groups = (devices[start : start + width] for start in range(0, len(devices), width))
                    if width > 1 and not all(facts.group_is_inside_domain(group) for group in groups):
                        found.add("TP007")
                used = [stage.attention_devices]
                if layout.setting.architecture.has_split_ffn:
                    used.append(stage.ffn_devices)
                if any(len(devices) < stage.width for devices in used):
                    found.add("GP005")
                if len({len(group) for group in stage.experts}) > 1:
                    found.add("EN003")
    return tuple(sorted(found))


def complexity(strategy: Strategy) -> int:
    """How much machinery a strategy has: the sum over phases of the degrees' logarithms, PP and SP counted double."""
    total = strategy.dp.bit_length() - 1
    for phase in (strategy.prefill, strategy.decode):
        total += sum(degree.bit_length() - 1 for degree in (phase.tp, phase.tp_ffn, phase.ep, phase.attention_dp or 1))
        total += 2 * (phase.pp.bit_length() - 1 + phase.sp.bit_length() - 1)
    return total + 4 * (strategy.prefill != strategy.decode)


def worth(candidate: Candidate, objective: str) -> float:
    """What is to be made small, for a candidate with figures."""
    if objective == "latency":
        return candidate.end_to_end_ms or 0.0
    if objective == "throughput":
        return 1.0 / max(candidate.output_tokens_per_s or 0.0, 1e-12)
    return 1.0 / max(candidate.output_tokens_per_s_per_gpu or 0.0, 1e-12)


def ranked(candidates: Iterable[Candidate], objective: str) -> list[Candidate]:
    """Best first, those that no rule warns of before the others.

    Among those within `TIE_SHARE` of the best, the fewest GPUs, then the simplest, lead.
    """
    rest = sorted(candidates, key=lambda candidate: (bool(candidate.warnings), worth(candidate, objective)))
    if not rest:
        return []
    bound = worth(rest[0], objective) * (1 + TIE_SHARE)
    clean = bool(rest[0].warnings)
    ties = [c for c in rest if bool(c.warnings) == clean and worth(c, objective) <= bound]
    ties.sort(key=lambda c: (c.gpus, complexity(c.strategy), worth(c, objective)))
    return [*ties, *rest[len(ties) :]]
