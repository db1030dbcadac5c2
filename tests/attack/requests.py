"""Any request in words gets a refusal of one line, or an answer whose parts all agree."""

from __future__ import annotations

import json

import shardwright
from shardwright import PlanResult
from shardwright.agent.report.plan import render_plan

from .documents import impossible
from .probe import Case, FailedError, Probe, Refused

# Relative difference allowed between figures of the plan and of the plan read again: the last digits of a sum.
_TOLERANCE = 1e-9
# Seconds that a search may take; the work around it takes some more.
_TIME_LIMIT_S = 5.0


def check_request(case: Case, probe: Probe) -> None:
    """Plan and search for the request of `case`."""
    for check in (_check_plan, _check_search):
        try:
            check(case.text, probe)
        except FailedError:
            continue


def _check_plan(text: str, probe: Probe) -> None:
    result = probe.call("plan", lambda: shardwright.plan(text, time_limit_s=_TIME_LIMIT_S))
    if isinstance(result, Refused):
        return
    probe.call("plan --format json", lambda: result.model_dump_json(indent=2))
    probe.call("plan --format text", lambda: render_plan(result, width=100).encode(errors="replace"))
    if result.plan is None:
        if result.valid or result.report.explanation == "":
            probe.wrong("plan", "no plan and no reason")
        return
    _check_document(result, probe)


def _check_document(result: PlanResult, probe: Probe) -> None:
    assert result.plan is not None
    document = result.plan.model_dump_json()
    report = probe.must("validate", lambda: shardwright.validate(document), "it was planned")
    if not report.valid or not result.valid:
        probe.wrong("validate", "refuses what was planned", [violation.message for violation in report.violations])
    for fault in impossible(json.loads(document)):
        probe.wrong("plan", f"valid, though {fault}", fault)
    price = result.intent.usd_per_gpu_hour if result.intent is not None else None
    figures = probe.must("estimate", lambda: shardwright.estimate(document, price), "it was planned")
    if result.estimate is None:
        probe.wrong("plan", "no estimate of what was planned")
        return
    for name in ("ttft_ms", "tpot_ms", "end_to_end_ms"):
        planned, estimated = getattr(result.estimate.latency, name), getattr(figures.latency, name)
        if abs(planned - estimated) > _TOLERANCE * max(abs(planned), abs(estimated)):
            probe.wrong("estimate", f"{name} of the plan read again is another", f"{planned} and {estimated}")


def _check_search(text: str, probe: Probe) -> None:
    answer = probe.call("search", lambda: shardwright.search(text, top=3, time_limit_s=_TIME_LIMIT_S))
    if isinstance(answer, Refused):
        return
    probe.call("search --format json", lambda: answer.model_dump_json(indent=2))
    if answer.feasible and answer.best is None:
        probe.wrong("search", "feasible, and no strategy")
    if not answer.feasible and answer.infeasible is None and not answer.within_reach and not answer.rejected:
        probe.wrong("search", "nothing found and no reason")
