"""A timeline ends at the estimated time, nothing on a lane overlaps, and Perfetto can read the trace."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from shardwright.tools.performance.estimate import estimate
from shardwright.tools.performance.execution_model import devices_of
from shardwright.tools.plan.document import Phase
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.show.timeline import Timeline, chrome_trace, phase_timeline

PLANS = ("dense-1", "dense-pp4", "dense-sp2-tp2", "moe-shared-tp2-ep4", "disaggregated-moe", "hybrid-tp2-ep2-pp2")
PHASES: tuple[Phase, ...] = ("prefill", "decode")


@cache
def of(name: str, phase: Phase) -> Timeline:
    return phase_timeline(PlanView(base_plan(name)), phase)


@cache
def events(name: str) -> list[dict[str, Any]]:
    return json.loads(chrome_trace(PlanView(base_plan(name))))["traceEvents"]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", PLANS)
def test_it_ends_with_the_critical_path_of_the_estimate(name: str, phase: Phase) -> None:
    path = getattr(estimate(base_plan(name)).critical_path, phase)
    on_gpus = sum(step.ms for step in path if step.resource not in ("host", "pipeline"))
    assert of(name, phase).ms == pytest.approx(on_gpus, rel=1e-9)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", PLANS)
def test_the_lit_path_is_whole(name: str, phase: Phase) -> None:
    timeline = of(name, phase)
    assert sum(
        end - start for start, end in (timeline.spans_ms[place] for place in timeline.critical)
    ) == pytest.approx(timeline.ms)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", PLANS)
def test_every_operator_is_on_a_lane_of_each_of_its_devices(name: str, phase: Phase) -> None:
    timeline = of(name, phase)
    shown = {(lane.device, place) for lane in timeline.lanes for place in lane.places}
    wanted = {
        (device, place)
        for place, node in enumerate(timeline.dag.nodes)
        if timeline.spans_ms[place][1] > timeline.spans_ms[place][0]
        for device in devices_of(node)
    }
    assert shown == wanted


@pytest.mark.parametrize("name", PLANS)
def test_slices_of_a_thread_follow_one_another(name: str) -> None:
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events(name):
        if event["ph"] == "X":
            start_ns = round(event["ts"] * 1e3)
            threads.setdefault((event["pid"], event["tid"]), []).append(
                (start_ns, start_ns + round(event["dur"] * 1e3))
            )
    assert threads
    for slices in threads.values():
        assert all(end <= start for (_, end), (start, _) in pairwise(sorted(slices)))


@pytest.mark.parametrize("name", PLANS)
def test_ranks_and_lanes_have_names(name: str) -> None:
    named = {(event["pid"], event["tid"]) for event in events(name) if event["name"] == "thread_name"}
    processes = {event["pid"]: event["args"]["name"] for event in events(name) if event["name"] == "process_name"}
    assert {(event["pid"], event["tid"]) for event in events(name) if event["ph"] == "X"} <= named
    assert [processes[rank] for rank in sorted(processes)] == sorted(PlanView(base_plan(name)).devices)


def test_an_arrow_leads_from_each_transfer_between_stages_to_a_later_slice_of_another_rank() -> None:
    arrows = [event for event in events("dense-pp4") if event["ph"] in ("s", "f")]
    starts = {arrow["id"]: arrow for arrow in arrows if arrow["ph"] == "s"}
    ends = {arrow["id"]: arrow for arrow in arrows if arrow["ph"] == "f"}
    transfers = [node for phase in PHASES for node in of("dense-pp4", phase).dag.nodes if node.op == "SendRecv"]
    assert len(starts) == len(ends) == len(arrows) / 2 == len(transfers) > 0
    for number, start in starts.items():
        assert start["pid"] != ends[number]["pid"] and start["ts"] < ends[number]["ts"]


def test_a_sound_plan_of_one_gpu_sends_nothing() -> None:
    assert not [event for event in events("dense-1") if event["ph"] in ("s", "f") or event.get("cat") == "links"]
