"""Judges and orders candidates: limits, warnings, and which of two is better for an objective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import inf

from ..caches import Cache
from ..engines.names import JUDGED, engine_of
from ..engines.release import release_of
from ..performance.balance import unbalanced_phases
from ..performance.collectives import domain_of
from ..performance.layout import LoadedLayout
from ..performance.limits import NO_STEADY_FIGURE, Limit, MissedLimit, RunFigures, missed_limits
from ..performance.setting import Setting
from ..plan.describe import number
from ..plan.document import PhaseStrategy, Strategy, WorkloadBlock
from ..plan.layout import PhaseLayout
from ..plan.placement import StageDegrees, is_disaggregated
from ..rules.judge import DegreeJudge
from ..rules.legality import Conditions
from ..rules.registry import all_rules
from .candidate import Candidate

# Complexity that a second layout, or kind of server, adds to a deployment.
TWO_LAYOUTS = 4


def limits_missed(workload: WorkloadBlock, figures: RunFigures) -> tuple[str, ...]:
    """Each limit of the workload that the figures of a run do not hold, by how much (rule PE010)."""
    return tuple(_words(missed, grows=figures.saturated) for missed in missed_limits(workload, figures))


def _words(missed: MissedLimit, *, grows: bool) -> str:
    limit = missed.limit
    if limit.unit == "tokens/s":
        queue = "the queue grows: " if limit.field == "request_rate" else ""
        return f"PE010: {queue}{number(missed.figure)} {limit.name}, {number(limit.bound)} wanted"
    statistic = "" if limit.statistic == "mean" else f" ({limit.statistic})"
    if grows and limit.grows:
        return f"PE010: {limit.name}{statistic} {NO_STEADY_FIGURE}, at most {number(limit.bound)} ms wanted"
    return f"PE010: {limit.name}{statistic} {number(missed.figure)} ms exceeds {number(limit.bound)} ms"


def limited_figure(candidate: Candidate, limit: Limit) -> float | None:
    """The figure of a candidate that `limit` is about; `None` where it has none."""
    return candidate.limited_ms.get(limit.full_name, getattr(candidate, limit.figure))


def warnings_of(layout: LoadedLayout) -> tuple[str, ...]:
    """Rules that warn of `layout` at its load: those of its devices, and uneven stages (PP008)."""
    uneven = {"PP008"} if unbalanced_phases(layout) else set[str]()
    first = layout.replicas[:1] if layout.replicas_alike and not layout.is_disaggregated else layout.replicas
    phases = [phase for replica in first for phase in replica.phases]
    return tuple(sorted(uneven | layout_warnings(layout.setting, phases)))


UNEVEN_STAGES = 1 << 0
_ACROSS_DOMAINS = 1 << 1
# Bits that are no rules: a candidate does not keep up with a little more than the stated rate, or holds no request.
LACKS_RESERVE, LACKS_CACHE = 1 << 61, 1 << 62


@cache
def _bits() -> Mapping[str, int]:
    """The rules that warn of a layout, each a bit of a column."""
    of_degrees = (rule.id for rule in all_rules() if rule.limits)
    return {"PP008": UNEVEN_STAGES, "TP007": _ACROSS_DOMAINS, **{name: 4 << at for at, name in enumerate(of_degrees)}}


def warning_bits(rules: Iterable[str]) -> int:
    """`rules` as one number."""
    return sum(_bits()[rule] for rule in rules)


def layout_warnings(setting: Setting, phases: Iterable[PhaseLayout]) -> set[str]:
    """Rules that warn of where `phases` run: TP across domains (TP007), and those of their degrees."""
    warnings: set[str] = set()
    for phase in phases:
        degrees = StageDegrees.of(phase.degrees, phase.phase)
        for stage in phase.stages:
            for devices, width in ((stage.attention_devices, degrees.tp), (stage.ffn_devices, degrees.tp_ffn)):
                domains = [domain_of(device, setting.hardware) for device in devices] if width > 1 else []
                groups = (domains[start : start + width] for start in range(0, len(domains), width))
                if any(len({*group}) > 1 for group in groups):
                    warnings.add("TP007")
            warnings |= _judge(setting).warned(degrees._replace(devices=stage.width))
    return warnings


_JUDGES = Cache[int, DegreeJudge]("judges of degrees by tokens of a prompt")


def _judge(setting: Setting) -> DegreeJudge:
    """The judge of degrees under what the setting names; an engine that is only assumed does not count."""

    def judge() -> DegreeJudge:
        name, release = engine_of(setting.serving.engine), release_of(setting.serving.engine_version)
        conditions = Conditions(
            setting.architecture, None if name is None else JUDGED[name], release, setting.relaxations,
            setting.workload.input_tokens, setting.precision.weights,
        )  # fmt: skip
        return DegreeJudge(conditions)

    return _JUDGES.get(setting.caches, setting.workload.input_tokens, judge)


def complexity(strategy: Strategy) -> int:
    """How much machinery a strategy has: the logarithm of its replicas, what its phases have, and that they differ."""
    is_apart = is_disaggregated(strategy)
    return strategy.dp.bit_length() - 1 + pair_complexity(strategy.prefill, strategy.decode, is_apart=is_apart)


def pair_complexity(prefill: PhaseStrategy, decode: PhaseStrategy, *, is_apart: bool = False) -> int:
    """The complexity of one replica that serves both phases, or of one of each phase, which hands its caches on."""
    return phase_complexity(prefill) + phase_complexity(decode) + TWO_LAYOUTS * (is_apart or prefill != decode)


def pipeline_complexity(stages: int, *, is_own_cut: bool) -> int:
    """What the number of stages and an uneven cut add to the complexity of a phase."""
    return 2 * (stages.bit_length() - 1) + is_own_cut


def phase_complexity(phase: PhaseStrategy) -> int:
    """The sum of the degrees' logarithms, PP and SP counted double; an uneven cut counts once."""
    widths = (phase.tp, phase.tp_ffn, phase.ep, phase.attention_dp or 1, phase.tp_expert or 1)
    lengths = (phase.pp, phase.sp, phase.kv_sp or 1)
    total = sum(degree.bit_length() - 1 for degree in widths) + 2 * sum(degree.bit_length() - 1 for degree in lengths)
    return total + (phase.stage_layers is not None)


def worth(candidate: Candidate, objective: str) -> float:
    """What `objective` wants small in a candidate; infinite without figures."""
    rate, end_to_end_ms = candidate.output_tokens_per_s, candidate.end_to_end_ms
    if not rate or not end_to_end_ms:
        return inf
    if objective == "cost":
        rate = candidate.served_tokens_per_s or rate
    return objective_cost(objective, end_to_end_ms, rate, candidate.billed_gpus or candidate.gpus)


def merit(candidate: Candidate | None, objective: str) -> tuple[float, float]:
    """Sort key: `behind`, then `worth`, so that a lack of reserve or cache comes after all others."""
    return (inf, inf) if candidate is None else (candidate.behind, worth(candidate, objective))


def objective_cost(objective: str, end_to_end_ms: float, output_tokens_per_s: float, billed_gpus: int) -> float:
    """What `objective` wants small: seconds from end to end, or seconds (of all billed GPUs, for cost) of a token.

    It is `StrategyRows.cost` of a single row.
    """
    if objective == "latency":
        return end_to_end_ms / 1e3
    return (billed_gpus if objective == "cost" else 1.0) / max(output_tokens_per_s, 1e-12)
