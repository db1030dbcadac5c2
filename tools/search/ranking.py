"""Judges and orders candidates: limits, warnings, and which of two is better for an objective."""

from __future__ import annotations

from collections.abc import Iterable

from ..performance.balance import unbalanced_phases
from ..performance.layout import LoadedLayout
from ..performance.limits import MissedLimit, RunFigures, missed_limits
from ..performance.setting import Setting
from ..plan.document import PhaseStrategy, Strategy, WorkloadBlock
from ..plan.layout import PhaseLayout
from .candidate import Candidate
from .describe import number

# What two layouts in one deployment weigh against one.
_TWO_LAYOUTS = 4


def limits_missed(workload: WorkloadBlock, figures: RunFigures) -> tuple[str, ...]:
    """Each limit of the workload that the figures of a run do not hold, by how much (rule PE010)."""
    return tuple(_words(one) for one in missed_limits(workload, figures))


def _words(missed: MissedLimit) -> str:
    limit = missed.limit
    if limit.unit == "tokens/s":
        return f"PE010: {number(missed.figure)} {limit.name}, {number(limit.bound)} wanted"
    statistic = "" if limit.statistic == "mean" else f" ({limit.statistic})"
    return f"PE010: {limit.name}{statistic} {number(missed.figure)} ms exceeds {number(limit.bound)} ms"


def warnings_of(layout: LoadedLayout) -> tuple[str, ...]:
    """Rules that warn of `layout` at its load: those of its devices, and uneven stages (PP008)."""
    uneven = {"PP008"} if unbalanced_phases(layout) else set[str]()
    first = layout.replicas[:1] if layout.replicas_alike and not layout.is_disaggregated else layout.replicas
    phases = [phase for replica in first for phase in replica.phases]
    return tuple(sorted(uneven | layout_warnings(layout.setting, phases)))


# Rules that warn of a layout, each a bit of a column.
_WARNING_RULES = ("EN003", "GP005", "PP008", "TP007")


def warning_bits(rules: Iterable[str]) -> int:
    """`rules` as one number."""
    return sum(1 << _WARNING_RULES.index(rule) for rule in rules)


UNEVEN_STAGES = warning_bits(["PP008"])


def layout_warnings(setting: Setting, phases: Iterable[PhaseLayout]) -> set[str]:
    """Rules that warn of where `phases` run: TP across domains, idle devices (GP005), uneven experts (EN003)."""
    found: set[str] = set()
    facts = setting.hardware
    for phase in phases:
        degrees = phase.degrees
        for stage in phase.stages:
            for devices, width in ((stage.attention_devices, degrees.tp), (stage.ffn_devices, degrees.tp_ffn)):
                groups = (devices[start : start + width] for start in range(0, len(devices), width))
                if width > 1 and not all(facts.group_is_inside_domain(group) for group in groups):
                    found.add("TP007")
            used = [stage.attention_devices]
            if setting.architecture.has_split_ffn:
                used.append(stage.ffn_devices)
            if any(len(devices) < stage.width for devices in used):
                found.add("GP005")
            if len({len(group) for group in stage.experts}) > 1:
                found.add("EN003")
    return found


def complexity(strategy: Strategy) -> int:
    """How much machinery a strategy has: the logarithm of its replicas, what its phases have, and that they differ."""
    return strategy.dp.bit_length() - 1 + pair_complexity(strategy.prefill, strategy.decode)


def pair_complexity(prefill: PhaseStrategy, decode: PhaseStrategy) -> int:
    """The complexity of one replica that serves both phases."""
    return phase_complexity(prefill) + phase_complexity(decode) + _TWO_LAYOUTS * (prefill != decode)


def pipeline_complexity(stages: int, *, is_own_cut: bool) -> int:
    """What stages, and a cut of one's own, add to the complexity of a replica that serves both phases."""
    return 2 * (2 * (stages.bit_length() - 1) + is_own_cut)


def phase_complexity(phase: PhaseStrategy) -> int:
    """The sum of the degrees' logarithms, PP and SP counted double; a cut of one's own counts once."""
    widths = (phase.tp, phase.tp_ffn, phase.ep, phase.attention_dp or 1, phase.tp_expert or 1)
    lengths = (phase.pp, phase.sp, phase.kv_sp or 1)
    total = sum(degree.bit_length() - 1 for degree in widths) + 2 * sum(degree.bit_length() - 1 for degree in lengths)
    return total + (phase.stage_layers is not None)


def worth(candidate: Candidate, objective: str) -> float:
    """What is to be made small, for a candidate with figures: `Columns.cost` of one."""
    if objective == "latency":
        return (candidate.end_to_end_ms or 0.0) / 1e3
    if objective == "throughput":
        return 1.0 / max(candidate.output_tokens_per_s or 0.0, 1e-12)
    return (candidate.billed_gpus or candidate.gpus) / max(candidate.output_tokens_per_s or 0.0, 1e-12)
