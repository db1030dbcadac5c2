"""The report of `plan`: the verdict on a stated strategy, the plan, why it is this one, and what was assumed.

An infeasible request is reported as an answer: what binds, by how much, and the least that would do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools.engines.names import engine_or_usual
from .estimate import (
    confidence,
    estimate_sections,
    growing_line,
    host_memory_lines,
    in_flight_of,
    range_lines,
    rate_text,
    with_range,
)
from .infeasible import infeasible_sections
from .layout import layout_section
from .memory import unheld_lines
from .over_day import day_lines, day_section
from .request import (
    assumption_section,
    constraint_lines,
    hardware_text,
    left_out_lines,
    not_acted_on_lines,
    open_hardware_lines,
    read_as_lines,
    silence_lines,
    trace_lines,
    workload_text,
)
from .survival import survival_lines
from .text import (
    Block,
    Bullets,
    Column,
    Section,
    Table,
    bytes_of,
    count_text,
    figure,
    figure_of,
    ms_of,
    ms_text,
    render,
    section,
)
from .validation import violation_blocks
from .weighed import compared_sections

if TYPE_CHECKING:
    from ...tools.plan.document import Plan, WorkloadBlock
    from ...tools.plan.performance import PerformanceEstimate
    from ..results import Alternative, ModelUse, PlanReport, PlanResult, StatedStrategyVerdict

# Runner-ups, of a report that is whole and of one that is not.
ALTERNATIVES_SHOWN = 5
_ALTERNATIVES_IN_SHORT = 3


def render_plan(
    result: PlanResult, *, width: int, bold: bool = False, saved_as: Path | None = None, is_whole: bool = True
) -> str:
    """The report of a planning run; `saved_as` is the file that holds the document, if one was written.

    Not `is_whole`: what decides and what was assumed, without largest costs, terms of memory, energy, the words that
    were read, sources, and what ranges were measured on.
    """
    report = result.report
    sections: list[Section] = []
    if report is not None and report.stated is not None:
        sections += stated_sections(report.stated, report.why_not_kept)
    if result.plan is None:
        sections += infeasible_sections(result)
    else:
        sections += _plan_sections(result, result.plan, width, is_whole=is_whole)
    if report is not None and result.plan is not None:
        sections += _choice_sections(report, is_whole=is_whole)
    if report is not None:
        words = result.intent.words if is_whole and result.intent is not None else {}
        sections.append(assumption_section(report, words))
    if result.estimate is not None:
        sections.append(confidence(result.estimate, is_whole=is_whole))
    if report is not None and report.model_use is not None:
        sections.append(model_section(report.model_use))
    if result.plan is not None:
        sections.append(_next_section(result.plan, saved_as, is_whole=is_whole))
    return render(sections, width=width, bold=bold)


_PLAN_FROM = {
    "model": "the model's",
    "model_repaired": "the model's, repaired",
    "auto_fix": "auto-fix's, which could not keep what the model decided",
    "builtin": "the built-in proposer's",
}


def model_section(use: ModelUse) -> Section:
    """What a language model did, and what it took."""
    counted = "estimated" if use.tokens_estimated else "as the server counted them"
    lines = [
        f"{use.model}: {use.status.replace('_', ' ')}; the plan is {_PLAN_FROM[use.plan_from]}",
        f"{count_text(use.proposals, 'proposal')}, {count_text(use.turns, 'turn')}, "
        f"{count_text(use.tool_calls, 'tool call')}, {use.input_tokens:,} tokens in and {use.output_tokens:,} out "
        f"({counted})" + (f", {use.usd:.4f} USD" if use.usd is not None else ""),
    ]
    if use.fault is not None:
        lines.append(f"It failed: {use.fault}")
    if use.transcript is not None:
        lines.append(f"Transcript: {use.transcript}")
    if use.transcript_failure is not None:
        lines.append(f"The transcript is not whole: {use.transcript_failure}")
    return section("Language model", *lines)


def _plan_sections(result: PlanResult, plan: Plan, width: int, *, is_whole: bool) -> list[Section]:
    state = "Valid plan" if result.valid else "Plan with violations"
    lines = [*trace_lines(None if result.report is None else result.report.trace)]
    lines.append(f"{state}: {plan.model.name} on {hardware_text(plan.hardware)}")
    lines[1:1] = silence_lines(None if result.report is None else result.report.model_use)
    if result.estimate is not None:
        lines += unheld_lines(result.estimate)
    if result.report is not None:
        lines += not_acted_on_lines(result.report.not_acted_on)
        lines += read_as_lines(result.report.assumptions)
        lines += open_hardware_lines(result.report.assumptions)
    assumed = () if result.report is None else result.report.assumptions
    lines.append(workload_text(plan.workload, assumed, in_flight=in_flight_of(plan.workload, result.estimate)))
    gpus = plan.strategy.gpu_count
    used = f"Uses {count_text(gpus, 'GPU')}{_of_cluster(result, plan)}"
    precision = plan.precision
    lines.append(
        f"{used}; weights {precision.weights}, KV cache {precision.kv_cache}, activations {precision.activations}"
    )
    lines += day_lines(result.over_day, gpus)
    if result.report is not None:
        lines += filter(None, (result.report.on_fewer, result.report.on_more, result.report.with_engine))
        lines += left_out_lines(result.report.left_out)
    if plan.policy.relaxations:
        lines.append(f"Relaxations in force: {', '.join(plan.policy.relaxations)}")
    lines += constraint_lines(plan.policy)
    lines += survival_lines(plan)
    if result.estimate is not None:
        lines.append(figures_text(result.estimate, broken_rules(result)))
        lines += range_lines(result.estimate.ranges)
        lines += _p90_lines(plan.workload, result.estimate)
        lines += host_memory_lines(result.estimate)
    report = result.report
    limits = [_limits_section(report, plan.workload, result.estimate)] if report is not None else []
    day = [] if result.over_day is None else [day_section(result.over_day)]
    estimated = [] if result.estimate is None else estimate_sections(result.estimate, width, is_whole=is_whole)
    return [section("", *lines), *limits, *compared_sections(report), *day, layout_section(plan), *estimated]


def broken_rules(result: PlanResult) -> tuple[str, ...]:
    """The rules that the plan of a result breaks."""
    return () if result.valid or result.report is None else tuple(result.report.violations_seen)


def _of_cluster(result: PlanResult, plan: Plan) -> str:
    """The whole nodes that the GPUs of a plan are in, where there are several, and the GPUs that it leaves free."""
    gpus, per_node = plan.strategy.gpu_count, plan.hardware.gpus_per_node
    owned = plan.hardware.nodes * per_node
    cost = None if result.estimate is None else result.estimate.cost
    nodes = 0 if cost is None or cost.billed_gpus is None else cost.billed_gpus // per_node
    inside = f", in {count_text(nodes, 'node')} of {per_node}" if plan.hardware.nodes > 1 and nodes else ""
    if owned == gpus:
        return inside
    return f" of {owned}{inside}, {owned - gpus} stay free"


def _p90_lines(workload: WorkloadBlock, estimate: PerformanceEstimate) -> Iterator[str]:
    """Limits that hold on average, but not for one request in ten."""
    from ...tools.performance.limits import figures_of_estimate, missed_by_p90

    for missed in missed_by_p90(workload, figures_of_estimate(estimate)):
        limit = missed.limit
        yield (
            f"The limit on {limit.name} holds for the mean, not for one request in ten: p90 {ms_text(missed.figure)}, "
            f"limit {ms_text(limit.bound)}"
        )


def figures_text(estimate: PerformanceEstimate, broken: Iterable[str] = (), *, of: str = "") -> str:
    """The figures that people ask for first, on one line; `broken`: the rules that it breaks, or why it is refused.

    What breaks rules other than those on figures (PE) does not run as it stands: then it says so.
    """
    unless_mended = any(not rule.startswith("PE") for rule in broken)
    lead = ", ".join(filter(None, (of, "if it ran" if unless_mended else "")))
    return f"{lead[:1].upper()}{lead[1:]}: {_figures(estimate)}" if lead else _figures(estimate)


def _figures(estimate: PerformanceEstimate) -> str:
    latency, throughput, ranges = estimate.latency, estimate.throughput, estimate.ranges
    tpot = with_range(latency.tpot_ms, ranges.tpot_ms, ms_text)
    rate = (
        f"{with_range(throughput.dp_scaled_tokens_per_s, ranges.dp_scaled_tokens_per_s, rate_text)} "
        f"({figure(throughput.output_tokens_per_s_per_gpu)} per GPU)"
    )
    if estimate.load.saturated:
        return f"Mind: {growing_line(tpot, rate)}"
    return (
        f"TTFT {with_range(latency.ttft_ms, ranges.ttft_ms, ms_text)} · TPOT {tpot} · "
        f"end to end {with_range(latency.end_to_end_ms, ranges.end_to_end_ms, ms_text)} · {rate}"
    )


def _limits_section(report: PlanReport, workload: WorkloadBlock, estimate: PerformanceEstimate | None) -> Section:
    from ..limit_words import without_room

    bare = () if estimate is None else without_room(workload, estimate)
    title = "Limits: all hold" if report.limits_met else "Limits: NOT all hold"
    return section(f"{title}, {' and '.join(bare)} with nothing to spare" if bare else title, Bullets(report.limits))


def stated_sections(stated: StatedStrategyVerdict, why_not_kept: str | None = None) -> list[Section]:
    """The verdict on a strategy that the request stated, as it stands, and why the plan has another."""
    blocks: list[Block] = []
    errors = sum(1 for finding in stated.findings if finding.severity == "error")
    if stated.valid and why_not_kept is not None:
        blocks.append(f"It keeps the rules as it stands, and is not the plan: {why_not_kept}.")
    elif stated.valid:
        blocks.append("It is valid as it stands.")
    elif errors:
        blocks.append(f"It is NOT valid as it stands: {count_text(errors, 'violation')}.")
    else:
        blocks.append("It is NOT valid as it stands.")
    blocks += violation_blocks(stated.findings)
    if stated.why_not_built is not None:
        blocks.append(f"No document could be built from it: {stated.why_not_built}")
    if stated.estimate is not None:
        broken = (finding.rule for finding in stated.findings if finding.severity == "error")
        blocks.append(figures_text(stated.estimate, broken, of="as stated"))
    return [section(f"Your strategy: {stated.summary}", *blocks)]


def _choice_sections(report: PlanReport, *, is_whole: bool) -> list[Section]:
    """Why this plan, and which number decided against the runner-ups."""
    why = section("Why this one", report.explanation, Bullets(report.citations if is_whole else (), mark="→"))
    columns = (
        Column("strategy", wraps=True),
        *Column.of_figures("GPUs", "TTFT", "TPOT", "tokens/s/GPU", "memory/GPU"),
        Column("why not", wraps=True),
    )
    shown = ALTERNATIVES_SHOWN if is_whole else _ALTERNATIVES_IN_SHORT
    rows = tuple(_alternative_row(item) for item in report.alternatives[:shown])
    allowing = section("What allowing more would bring", Bullets(report.would_need))
    return [why, section("Runner-ups", Table(columns, rows)), allowing]


def _alternative_row(item: Alternative) -> tuple[str, ...]:
    return (
        item.summary,
        str(item.gpus),
        ms_of(item.ttft_ms),
        ms_of(item.tpot_ms),
        figure_of(item.output_tokens_per_s_per_gpu),
        bytes_of(item.memory_per_gpu_bytes),
        item.reason,
    )


def _next_section(plan: Plan, saved_as: Path | None, *, is_whole: bool) -> Section:
    more = (
        None if is_whole else "--full adds the largest costs, terms of memory, energy, what was read, and all sources."
    )
    if saved_as is None:
        keep = "Add -o plan.json to keep the plan; then validate, estimate, expand or export it."
        return section("Next", keep, more)
    name = shlex.quote(str(saved_as))
    engine = engine_or_usual(None if plan.serving is None else plan.serving.engine)
    commands = (
        f"shardwright validate {name}",
        f"shardwright estimate {name}",
        f"shardwright expand {name} --fold",
        f"shardwright export {name} --to {engine}",
    )
    return section(f"Next (the plan is in {saved_as})", Bullets(commands, mark="$"), more)
