"""The report of a search for a mix of workloads: the strategies, and what each kind of request meets in the best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .request import left_out_lines, not_acted_on_lines
from .text import NONE, Column, Section, Table, count_text, figure, figure_of, ms_of, render, section

if TYPE_CHECKING:
    from ...tools.search.mix import MixCandidate
    from ..mix import MixAnswer


def render_mix(answer: MixAnswer, *, top: int, width: int, bold: bool = False, saved_as: Path | None = None) -> str:
    """The whole report with the first `top` strategies; `saved_as` is the file that holds the plan, if any."""
    from ...tools.plan.describe import describe, in_format

    best = answer.candidates[0] if answer.candidates else None
    head = f"{answer.model} on {answer.hardware}, {answer.objective}, {len(answer.workloads)} kinds of requests"
    leading = "" if best is None else describe(best.strategy) + in_format(answer.precision)
    verdict = "No strategy fits into memory" if best is None else f"Nearest: {leading}"
    if best is not None and answer.feasible:
        is_assumed = any(assumption.field == "concurrency" for assumption in answer.assumptions)
        in_flight = f"{count_text(best.concurrency, 'request')} in flight{' (assumed)' * is_assumed}"
        verdict = f"Best for the mixture: {leading} with {in_flight}"
    counts = f"{answer.evaluated:,} strategies evaluated"
    if answer.rejected:
        counts += ", of them rejected: " + ", ".join(f"{rule} {count:,}" for rule, count in answer.rejected.items())
    left_lines = (*left_out_lines(answer.left_out), *not_acted_on_lines(answer.not_acted_on))
    sections = [section("", head, verdict, *left_lines)]
    if best is not None:
        sections += [_kinds(answer, best), _ranking(answer, top)]
    saved = (
        f"The plan is in {saved_as}; it states the mixture, without the limits of its kinds"
        if saved_as and answer.plan
        else None
    )
    return render([*sections, section("Counts", counts, saved)], width=width, bold=bold)


def _kinds(answer: MixAnswer, best: MixCandidate) -> Section:
    columns = (
        Column("kind", wraps=True),
        *Column.of_figures("share", "in/out", "TTFT", "TPOT", "alone, tokens/s"),
        Column("why not", wraps=True),
    )
    total = sum(kind.weight for kind in answer.workloads)
    rows: list[tuple[str, ...]] = []
    for kind in answer.workloads:
        part = best.parts[kind.name]
        rows.append(
            (
                kind.name,
                f"{kind.weight / total:.0%}",
                f"{kind.input_tokens}/{kind.output_tokens}",
                ms_of(part.ttft_ms),
                ms_of(part.tpot_ms),
                figure_of(part.output_tokens_per_s),
                "; ".join(part.why_not) or NONE,
            )
        )
    return section("Each kind, served by it alone", Table(columns, tuple(rows)))


def _ranking(answer: MixAnswer, top: int) -> Section:
    from ...tools.plan.describe import describe

    columns = (
        Column("strategy", wraps=True),
        *Column.of_figures("GPUs", "in flight", "requests/s", "tokens/s", "tokens/s/GPU"),
        Column("why not", wraps=True),
    )
    rows = tuple(
        (
            describe(row.strategy), str(row.gpus), f"{row.concurrency:,}", figure(row.requests_per_s),
            figure(row.output_tokens_per_s), figure(row.output_tokens_per_s_per_gpu), "; ".join(row.why_not) or NONE,
        )
        for row in answer.candidates[:top]
    )  # fmt: skip
    return section("Strategies under the mixture", Table(columns, rows))
