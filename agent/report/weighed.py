"""The section of a plan's report on strategies that the request weighs against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..languages.say import say
from .text import NONE, Column, Section, Table, bytes_of, figure_of, ms_of, section

if TYPE_CHECKING:
    from ..results import PlanReport


def compared_sections(report: PlanReport | None) -> list[Section]:
    """The strategies that the request weighs, each as it stands, and which is ahead; nothing where it weighs none."""
    found = None if report is None else report.compared
    if found is None:
        return []
    columns = (
        Column("strategy", wraps=True),
        Column("GPUs", figures=True),
        Column("TTFT", figures=True),
        Column("TPOT", figures=True),
        Column("tokens/s", figures=True),
        Column("memory/GPU", figures=True),
        Column("beside the plan", wraps=True),
    )
    rows = tuple(
        (
            one.summary or NONE,
            NONE if one.gpus is None else str(one.gpus),
            ms_of(one.ttft_ms),
            ms_of(one.tpot_ms),
            figure_of(one.output_tokens_per_s),
            bytes_of(one.memory_per_gpu_bytes),
            one.reason,
        )
        for one in found.strategies
    )
    more = f"{found.left_out} more were not looked at" if found.left_out else None
    return [section(say("What you compare"), Table(columns, rows), found.verdict, found.experts, more)]
