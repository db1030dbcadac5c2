"""Chakra traces decode, are consistent, and take the estimated time when an alpha-beta reader replays them."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given

from shardwright.tools.errors import InputError
from shardwright.tools.export.chakra import Dimension, input_files
from shardwright.tools.export.export import export
from shardwright.tools.export.traces import NodeType, TraceNode, Traces, trace_bytes
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.performance.execution_model import ExecutionDAG, ExecutionEdge, ExecutionNode
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.performance.transfer import kv_transfer_seconds
from shardwright.tools.plan.reader import read_document

from ..examples import examples
from ..plan.test_layout_law import documents
from .plans import plan_named
from .trace_reader import COLL, COMP, RECV, SEND, Run, read_run, read_trace, replay

pytestmark = pytest.mark.thorough

PHASES = ("prefill", "decode")
# One plan of each kind of communication.
NAMES = ("one card", "replicas on a node", "uneven stages", "attention groups", "cache cut", "sequence cut",
         "phases and groups", "phases of two layouts")  # fmt: skip


def run_of(folder: dict[str, bytes], phase: str) -> Run:
    return read_run({name.split("/")[1]: data for name, data in folder.items() if name.startswith(f"{phase}/")})


@cache
def folder_of(name: str) -> dict[str, bytes]:
    result = export(plan_named(name), "chakra")
    assert not result.refused
    return {file.name: file.data for file in result.folder}


def faults(run: Run) -> list[str]:
    """The inconsistencies in the traces of a phase, as text."""
    faults_found: list[str] = []
    sides: dict[int, Counter[tuple[int, ...]]] = {SEND: Counter(), RECV: Counter()}
    calls: Counter[tuple[str, int]] = Counter()
    for rank, nodes in run.traces.items():
        for place, node in enumerate(nodes):
            fields = node.attributes
            if node.id != place or any(need >= node.id for need in node.needs):
                faults_found.append(f"{rank}: {node.name} waits for what does not stand before it")
            if node.type in sides:
                sides[node.type][fields["comm_src"], fields["comm_dst"], fields["comm_tag"], fields["comm_size"]] += 1
                if fields["comm_src" if node.type == SEND else "comm_dst"] != rank:
                    faults_found.append(f"{rank}: {node.name} is another rank's")
            if node.type == COLL:
                calls[fields["pg_name"], rank] += 1
                if rank not in run.groups[fields["pg_name"]]:
                    faults_found.append(f"{rank}: {node.name} is in no group of this rank")
    if sides[SEND] != sides[RECV] or max(sides[SEND].values(), default=1) > 1:
        faults_found.append("sends and receives do not match")
    faults_found += [
        f"group {name}: {before} and {after} do not meet as often"
        for name, ranks in run.groups.items()
        for before, after in pairwise(ranks)
        if calls[name, before] != calls[name, after]
    ]
    return faults_found


@pytest.mark.parametrize("name", NAMES)
def test_traces_hang_together_and_their_network_has_all_ranks(name: str) -> None:
    for phase in PHASES:
        run = run_of(folder_of(name), phase)
        assert faults(run) == []
        count = 1
        for size in run.network["npus_count"]:
            count *= size
        assert sorted(run.traces) == list(range(count))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_replayed_takes_the_time_of_the_estimate(name: str) -> None:
    figures = estimate(plan_named(name))
    cache_ms = kv_transfer_seconds(layout_from_view(read_document(plan_named(name)).view)) * 1e3
    for phase in PHASES:
        path = figures.critical_path.prefill if phase == "prefill" else figures.critical_path.decode
        # Traces have no host and end with the pass; a pass of prefill replicas ends with the transfer of the cache.
        kernels_ms = sum(step.ms for step in path if step.resource not in ("host", "pipeline"))
        after_ms = cache_ms if phase == "prefill" else 0.0
        took_ms = max(replay(run_of(folder_of(name), phase)).values()) / 1e6
        assert took_ms == pytest.approx(kernels_ms + after_ms, rel=0.03)


def predicted_ms(folder: dict[str, bytes], phase: str) -> tuple[float, float]:
    """Milliseconds that the folder's README predicts for a pass of `phase`, and for the cache transfer after it."""
    match = re.search(rf"^  {phase}: ([0-9.]+) ms for one [a-z ]+(?:, then ([0-9.]+) ms)?", readme(folder), re.M)
    assert match is not None
    return float(match[1]), float(match[2] or 0.0)


def readme(folder: dict[str, bytes]) -> str:
    return folder["README.txt"].decode()


@examples(15)
@given(document=documents())
def test_what_is_no_legal_plan_is_refused_and_every_other_takes_about_what_its_folder_says(
    document: dict[str, Any],
) -> None:
    result = export(document, "chakra")
    assert bool(result.folder) is not bool(result.refused)
    folder = {file.name: file.data for file in result.folder}
    for phase in PHASES if folder else ():
        run = run_of(folder, phase)
        assert faults(run) == []
        pass_ms, cache_ms = predicted_ms(folder, phase)
        # A stage sends its part of the cache while the next still computes, and a rank may receive several at once.
        assert 0.9 * pass_ms < max(replay(run).values()) / 1e6 < 1.1 * (pass_ms + cache_ms)


def node(name: str, op: Any, devices: str, ms: float = 0.0, comm_bytes: float = 0.0) -> ExecutionNode:
    on = tuple(f"n0.g{number}" for number in devices)
    shape = (("hidden", 1),)
    return ExecutionNode(
        id=name, op=op, phase="prefill", device=on[0] if len(on) == 1 else None, devices=on if len(on) > 1 else None,
        input_shape=shape, output_shape=shape, dtype="bf16", flops=0.0, bytes=0.0, comm_bytes=comm_bytes, ms=ms,
    )  # fmt: skip


def two_stages_of_two() -> ExecutionDAG:
    """PP2 × TP2: on the first stage 50, 100 and 80 us, on the second 100, 80 and 20 us, an all-reduce in each."""
    mib = 1 << 20
    nodes = [
        *(node(f"a{rank}", "Embedding", rank, 0.05) for rank in "01"),
        *(node(f"b{rank}", "Linear", rank, 0.1) for rank in "01"),
        node("sum", "AllReduce", "01", 0.08, 4.0 * mib),
        *(node(f"c{rank}", "Linear", rank, 0.08) for rank in "01"),
        node("send", "SendRecv", "0123", 0.02, 1.0 * mib),
        *(node(f"d{rank}", "Linear", rank, 0.1) for rank in "23"),
        node("sum2", "AllReduce", "23", 0.08, 4.0 * mib),
        *(node(f"e{rank}", "Linear", rank, 0.08) for rank in "23"),
        *(node(f"f{rank}", "Linear", rank, 0.02) for rank in "23"),
    ]
    ways = [(f"{before}{rank}", f"{after}{rank}") for before, after in ("ab",) for rank in "01"]
    ways += [way for rank in "01" for way in ((f"b{rank}", "sum"), ("sum", f"c{rank}"), (f"c{rank}", "send"))]
    ways += [way for rank in "23" for way in (("send", f"d{rank}"), (f"d{rank}", "sum2"), ("sum2", f"e{rank}"))]
    ways += [(f"e{rank}", f"f{rank}") for rank in "23"]
    edges = tuple(ExecutionEdge(source=source, target=target, type="data") for source, target in ways)
    return ExecutionDAG(phase="prefill", folded=False, nodes=tuple(nodes), edges=edges)


def test_two_stages_of_two_ranks_take_what_astra_sim_gave() -> None:
    traces = Traces({f"n0.g{rank}": rank for rank in range(4)})
    traces.write(two_stages_of_two())
    # Fully connected, 50 GB/s (of 2^30 bytes) and 1 us; ASTRA-sim's analytical network, without congestion, gave these.
    files = {f"trace.{rank}.et": trace_bytes(trace.nodes) for rank, trace in traces.ranks.items()}
    ends = replay(read_run({**files, **input_files(traces, [Dimension(4, 50.0 * 2**30, 1e-6)])}))
    assert [ends[0], ends[1]] == pytest.approx([332_563, 332_563], rel=0.02)
    assert [ends[2], ends[3]] == pytest.approx([614_595, 614_595], rel=0.02)


def test_durations_are_whole_microseconds_that_add_up_to_what_a_rank_computes() -> None:
    nodes = [node(f"a{place}", "Linear", "0", 0.0004) for place in range(1000)]
    ways = [ExecutionEdge(source=before.id, target=after.id, type="data") for before, after in pairwise(nodes)]
    traces = Traces({"n0.g0": 0})
    traces.write(ExecutionDAG(phase="prefill", folded=False, nodes=tuple(nodes), edges=tuple(ways)))
    _, nodes_read = read_trace(trace_bytes(traces.ranks[0].nodes))
    assert [step.type for step in nodes_read] == [COMP] * 1000
    assert sum(step.duration_us for step in nodes_read) == 400 and {step.duration_us for step in nodes_read} == {0, 1}


def test_a_message_is_byte_for_byte_that_of_the_field_numbers() -> None:
    trace_node = TraceNode(300, "k", NodeType.COMP, (1, 299), 2, {"num_ops": 0})
    flag = b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
    count = b"\x52\x0b\x0a\x07num_ops\x68\x00"
    body = b"\x08\xac\x02\x12\x01k\x18\x04\x2a\x03\x01\xab\x02\x38\x02" + flag + count
    assert trace_bytes([trace_node]) == b"\x07\x0a\x050.0.4" + bytes([len(body)]) + body


def test_the_folder_says_how_it_is_run_and_what_was_predicted() -> None:
    text = readme(folder_of("phases and groups"))
    assert "AstraSim_Analytical_Congestion_Unaware --workload-configuration=trace" in text
    figures = estimate(plan_named("phases and groups"))
    decode_ms = sum(step.ms for step in figures.critical_path.decode if step.resource not in ("host", "pipeline"))
    assert f"decode: {decode_ms:.3f} ms" in text


def test_bytes_are_base64_in_json() -> None:
    result = export(plan_named("one card"), "chakra")
    files = {file["name"]: file["data"] for file in json.loads(result.model_dump_json())["folder"]}
    assert set(files) == set(folder_of("one card")) and files["decode/memory.json"].startswith("ew")


def test_a_model_named_over_two_lines_stays_on_one() -> None:
    plan = plan_named("one card")
    hostile = plan.model_copy(update={"model": plan.model.model_copy(update={"name": "a\n\nsys[0] finished"})})
    result = export(hostile, "chakra")
    assert result.folder[0].data.decode().splitlines()[0].endswith("a sys[0] finished")


def test_what_breaks_rules_is_refused_with_them() -> None:
    plan = plan_named("tensor")
    result = export({**plan.model_dump(mode="json"), "nodes": []}, "chakra")
    assert result.refused and not result.folder
    with pytest.raises(InputError):
        export("{}", "chakra")
