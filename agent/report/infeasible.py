"""An answer that there is no plan: what binds, by how much, the least hardware that would do, what comes closest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .request import left_out_lines, not_acted_on_lines, read_as_lines, silence_lines, trace_lines, workload_text
from .search_tables import figures_line, strategy_text
from .text import Bullets, Section, bytes_text, count_text, section

if TYPE_CHECKING:
    from ...tools.search.candidate import Candidate
    from ..intent.intent import Intent
    from ..results import Infeasible, PlanResult


def infeasible_sections(result: PlanResult) -> list[Section]:
    """The answer to a request that has no plan."""
    from ...tools.performance.limits import percentile_notes

    infeasible = result.infeasible
    if infeasible is None:
        return [section("", "No plan.")]
    lines = [*trace_lines(None if result.report is None else result.report.trace)]
    lines += infeasible_lines(infeasible)
    if result.report is not None:
        lines[1:1] = silence_lines(result.report.model_use)
        lines += not_acted_on_lines(result.report.not_acted_on)
        lines += read_as_lines(result.report.assumptions)
    intent = result.intent
    if intent is not None:
        on = _wanted_hardware(intent)
        lines += [
            f"Asked for: {intent.model.name}{on}",
            workload_text(intent.workload, intent.assumptions, as_many_as_hold=intent.concurrency_open),
            *percentile_notes(intent.workload),
        ]
    if result.report is not None:
        lines += left_out_lines(result.report.left_out)
    return [section("", *lines), infeasible_section(infeasible)]


def infeasible_lines(infeasible: Infeasible) -> list[str]:
    """Why there is no plan, and that a steady rate has one, or ways of an engine that the strict rules leave out."""
    at_start = [] if infeasible.at_start is None else [infeasible.at_start]
    if infeasible.with_engine is None:
        return [f"Infeasible: {infeasible.reason}", *at_start]
    return [f"Infeasible as asked: {infeasible.reason}", *at_start, f"But {infeasible.with_engine}"]


def infeasible_section(infeasible: Infeasible) -> Section:
    """What binds, by how much, the least hardware that would do, and what comes closest."""
    limit = "a stated limit" if infeasible.rule == "PE010" else f"explained by: shardwright rules {infeasible.rule}"
    facts = [f"What binds: rule {infeasible.rule} ({limit})"]
    if infeasible.shortfall_bytes is not None:
        facts.append(f"Shortfall: {bytes_text(infeasible.shortfall_bytes)} on the fullest GPU of the closest plan")
    without = " without that" if infeasible.with_engine else ""
    facts.append(f"Least hardware that would do{without}: {_needs_text(infeasible)}")
    facts += (f"Would do: {way}" for way in infeasible.other_ways)
    facts += (f"Nearer, and not enough: {way}" for way in infeasible.nearer)
    if infeasible.closest:
        facts.append(f"Closest: {_closest_text(infeasible.closest)}")
    return section("Why, and what would do", Bullets(tuple(facts)))


def _closest_text(closest: Candidate) -> str:
    """The strategy, what stands against it, and its figures where it fits into memory."""
    text = ", why not: ".join(filter(None, (strategy_text(closest), "; ".join(closest.why_not))))
    if closest.ttft_ms is None:
        return text
    figures = figures_line(closest)
    return f"{text}. {figures[0].upper() + figures[1:] if closest.queue_grows else f'It has {figures}'}"


def _wanted_hardware(intent: Intent) -> str:
    hardware = intent.hardware
    if hardware is None:
        return ""
    name = hardware.accelerator if isinstance(hardware.accelerator, str) else hardware.accelerator.id
    if hardware.nodes is None:
        return f" on as few {name} as do"
    return f" on {count_text(hardware.nodes, 'node')} × {hardware.gpus_per_node} {name}"


def _needs_text(infeasible: Infeasible) -> str:
    needs = infeasible.needs
    parts: list[str] = []
    if needs.gpus is not None:
        parts.append(f"{needs.gpus:,} × {needs.accelerator}" if needs.accelerator else count_text(needs.gpus, "GPU"))
    if needs.nodes is not None:
        parts.append(f"in {count_text(needs.nodes, 'node')}")
    if needs.instead_of is not None:
        parts.append(f"instead of {count_text(needs.instead_of, 'GPU')}")
    text = " ".join(parts)
    if needs.note:
        text = f"{text} ({needs.note})" if text else needs.note
    return text or "not known"
