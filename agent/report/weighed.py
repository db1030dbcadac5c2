"""The section of a plan's report on strategies that the request weighs against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..languages.say import say
from .text import NONE, Column, Section, Table, bytes_of, figure_of, ms_of, section

if TYPE_CHECKING:
    from ..results import PlanReport


def compared_sections(report: PlanReport | None) -> list[Section]:
    """The strategies that the request weighs, each as it stands, and which is ahead; nothing where it weighs none."""
    compared = None if report is None else report.compared
    if compared is None:
        return []
    columns = (
        Column("strategy", wraps=True),
        *Column.of_figures("GPUs", "TTFT", "TPOT", "tokens/s", "memory/GPU"),
        Column("beside the plan", wraps=True),
    )
    rows = tuple(
        (
            strategy.summary or NONE,
            NONE if strategy.gpus is None else str(strategy.gpus),
            ms_of(strategy.ttft_ms),
            ms_of(strategy.tpot_ms),
            figure_of(strategy.output_tokens_per_s),
            bytes_of(strategy.memory_per_gpu_bytes),
            strategy.reason,
        )
        for strategy in compared.strategies
    )
    more = f"{compared.left_out} more were not looked at" if compared.left_out else None
    notes = compared.verdict, compared.hardware, compared.experts, more
    return [section(say("What you compare"), Table(columns, rows), *notes)]
