"""Why a figure of the current plan is as high as it is: what a request alone takes, what others add, what binds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....tools.plan.document import WorkloadBlock
from ....tools.plan.performance import PerformanceEstimate
from ...languages.say import say
from ...report.estimate import load_section, range_lines, time_section
from ...report.explanation import explanation_section
from ...report.memory import memory_section
from ...report.text import ms_text, render, section
from ..outcome import Outcome
from ..words import title_of
from .work import Work

_OF_MEMORY = re.compile(r"memory|vram|显存", re.I)
# From this ratio of the mean to the median a few requests make the mean.
_FEW_MAKE_IT = 1.25


def why_slow(work: Work, subject: str) -> Outcome:
    """What makes up the time, or the memory, that `subject` finds high or low.

    Raises:
        InputError: there is no plan.
    """
    now, figures = work.now, work.figures()
    sections = [section("", title_of(now.result), *range_lines(figures.ranges))]
    if _OF_MEMORY.search(subject):
        sections.append(memory_section(figures, work.width))
    else:
        sections += [
            section("", *_made_of(figures, work.plan.workload)),
            load_section(figures),
            time_section(figures, work.width, is_whole=False),
            explanation_section(figures),
        ]
    sections.append(section("", say("/estimate shows all of it.")))
    latency = figures.latency
    told = {"ttft_ms": latency.ttft_ms, "tpot_ms": latency.tpot_ms}
    return Outcome("estimate", render(sections, width=work.width), told=told)


def _made_of(figures: PerformanceEstimate, workload: WorkloadBlock) -> Iterator[str]:
    """What the means are made of."""
    latency, first = figures.latency, figures.latency.percentiles.ttft_ms
    alone = latency.alone
    if figures.load.saturated:
        yield say("Requests come faster than they are served, so TTFT grows as long as they do.")
    else:
        yield say(
            "TTFT {mean}: {alone} for a request alone, the rest is waiting for others.",
            mean=ms_text(latency.ttft_ms),
            alone=ms_text(alone.ttft_ms),
        )
    if not figures.load.saturated and latency.ttft_ms > first.p50 * _FEW_MAKE_IT:
        at_once = say(
            "the {users:,} users all begin at once, and the last of that burst wait longest", users=workload.concurrency
        )
        at_random = say("requests come at random, and those that come close together wait")
        is_closed = workload.request_rate is None and workload.arrivals is None
        yield say(
            "Few requests make that mean: half have it in {half}, one in 20 above {tail}; {why}.",
            half=ms_text(first.p50),
            tail=ms_text(first.p95),
            why=at_once if is_closed else at_random,
        )
    yield say(
        "TPOT {mean}: {alone} for a request alone; {running:.0f} are in decode on average and share each step.",
        mean=ms_text(latency.tpot_ms),
        alone=ms_text(alone.tpot_ms),
        running=figures.load.running,
    )
