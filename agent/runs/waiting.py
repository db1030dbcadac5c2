"""Requests that wait for others to end, since what runs takes fewer at a time than its load has.

An engine queues what its KV cache or its largest batch does not hold. Rule ME001 wants room for all requests of a plan
at once; a deployment that lacks it runs all the same, and its users wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from ...tools.calibration.custom import CustomCalibration
from ...tools.checkpoint import if_time
from ...tools.frozen import Sparse
from ...tools.performance.layout import LoadedLayout, layout_from_view
from ...tools.performance.planned_run import planned_run
from ...tools.plan.describe import number
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ...tools.plan.reader import read_document
from ...tools.rules.base import Violation
from ..report.text import ms_text


class Waiting(Sparse):
    """Of the `requests` of the load `at_once` are served at a time, and the others wait in line.

    `ttft_ms` is what users see, the wait included; `ttft_ms_without` what they would were only so many there.
    `for_cache`: the KV cache holds no more, else the largest batch.
    """

    requests: int
    at_once: int
    for_cache: bool
    ttft_ms: float
    ttft_ms_without: float

    def __str__(self) -> str:
        holds = "The KV cache holds" if self.for_cache else "Its largest batch has"
        return (
            f"{holds} {self.at_once:,} of the {self.requests:,} requests at a time, and more wait in line: TTFT "
            f"{ms_text(self.ttft_ms)}; {ms_text(self.ttft_ms_without)} were only {self.at_once:,} there"
        )


def waiting_of(plan: Plan, figures: PerformanceEstimate, calibration: CustomCalibration | None) -> Waiting | None:
    """Who waits in `plan`; `None` if nobody does, no request is served, or requests come at a rate.

    Raises:
        InputError: a fact that the figures need is not known.
    """
    load, at_once = plan.workload, figures.memory.requests_at_once
    if load.request_rate is not None or at_once is None or not 0 < at_once < load.concurrency:
        return None
    alone = plan.model_copy(update={"workload": load.model_copy(update={"concurrency": at_once})})
    with _layout_of(alone, calibration) as layout:
        run = planned_run(layout)
    return Waiting(
        requests=load.concurrency,
        at_once=at_once,
        for_cache=at_once == figures.memory.kv_cache_capacity_requests,
        ttft_ms=figures.latency.ttft_ms,
        ttft_ms_without=run.times.ttft.mean * 1e3,
    )


def waits_in_words(
    plan: Plan, figures: PerformanceEstimate | None, calibration: CustomCalibration | None
) -> str | None:
    """Who waits in a plan, and what a larger batch would do; `None` if nobody does."""
    waiting = None if figures is None else if_time("what waiting costs", lambda: waiting_of(plan, figures, calibration))
    if waiting is None or waiting.for_cache:
        return None if waiting is None else str(waiting)
    larger = if_time("a larger batch", lambda: _with_larger_batch(plan, waiting.requests, calibration))
    return ". ".join(filter(None, (str(waiting), larger)))


def _with_larger_batch(plan: Plan, requests: int, calibration: CustomCalibration | None) -> str:
    """What a batch of `requests`, or as many as a step has tokens, would do."""
    with _layout_of(plan, calibration) as layout:
        most = min(requests, layout.setting.token_budget(1))
        serving = layout.setting.serving.model_copy(update={"max_batch": most})
        times = planned_run(layout.with_setting(replace(layout.setting, serving=serving))).times
    return (
        f"With a batch of {most:,} (--max-batch): TTFT {ms_text(times.ttft.mean * 1e3)}, TPOT "
        f"{ms_text(times.tpot.mean * 1e3)}, {number(times.output_tokens_per_s)} tokens/s"
    )


@contextmanager
def _layout_of(plan: Plan, calibration: CustomCalibration | None) -> Iterator[LoadedLayout]:
    """The layout of a plan, for as long as it is looked at."""
    read = read_document(plan)
    try:
        layout = layout_from_view(read.view)
        yield layout.with_setting(layout.setting.with_calibration(calibration))
    finally:
        read.view.release()


def lacks_room_alone(findings: Sequence[Violation], figures: PerformanceEstimate) -> bool:
    """Whether the only fault is that the requests of the load do not fit at once, while one of them does."""
    errors = [finding for finding in findings if finding.severity == "error"]
    short = bool(errors) and all((error.rule, error.message_id) == ("ME001", "short-of-memory") for error in errors)
    return short and figures.memory.max_concurrency > 0
