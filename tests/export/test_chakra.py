"""Chakra traces: they decode, hang together, and replayed by an alpha-beta reader take the time that is estimated."""

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
# One of each kind of plan that has another kind of communication.
NAMES = ("one card", "replicas on a node", "uneven stages", "attention groups", "cache cut", "sequence cut",
         "phases and groups", "phases of two layouts")  # fmt: skip


def run_of(folder: dict[str, bytes], phase: str) -> Run:
    return read_run({name.split("/")[1]: data for name, data in folder.items() if name.startswith(f"{phase}/")})


@cache
def folder_of(name: str) -> dict[str, bytes]:
    found = export(plan_named(name), "chakra")
    assert not found.refused
    return {file.name: file.data for file in found.folder}


def faults(run: Run) -> list[str]:
    """What does not hang together in the traces of a phase."""
    found: list[str] = []
    sides: dict[int, Counter[tuple[int, ...]]] = {SEND: Counter(), RECV: Counter()}
    calls: Counter[tuple[str, int]] = Counter()
    for rank, nodes in run.traces.items():
        for place, node in enumerate(nodes):
            said = node.attributes
            if node.id != place or any(need >= node.id for need in node.needs):
                found.append(f"{rank}: {node.name} waits for what does not stand before it")
            if node.type in sides:
                sides[node.type][said["comm_src"], said["comm_dst"], said["comm_tag"], said["comm_size"]] += 1
                if said["comm_src" if node.type == SEND else "comm_dst"] != rank:
                    found.append(f"{rank}: {node.name} is another rank's")
            if node.type == COLL:
                calls[said["pg_name"], rank] += 1
                if rank not in run.groups[said["pg_name"]]:
                    found.append(f"{rank}: {node.name} is in no group of this rank")
    if sides[SEND] != sides[RECV] or max(sides[SEND].values(), default=1) > 1:
        found.append("sends and receives do not match")
    found += [
        f"group {name}: {before} and {after} do not meet as often"
        for name, ranks in run.groups.items()
        for before, after in pairwise(ranks)
        if calls[name, before] != calls[name, after]
    ]
    return found


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
    found = estimate(plan_named(name))
    cache_ms = kv_transfer_seconds(layout_from_view(read_document(plan_named(name)).view)) * 1e3
    for phase in PHASES:
        path = found.critical_path.prefill if phase == "prefill" else found.critical_path.decode
        # The traces have no host and end with the pass; a prefill pass of its own replicas ends with the cache's way.
        kernels_ms = sum(step.ms for step in path if step.resource not in ("host", "pipeline"))
        after_ms = cache_ms if phase == "prefill" else 0.0
        took_ms = max(replay(run_of(folder_of(name), phase)).values()) / 1e6
        assert took_ms == pytest.approx(kernels_ms + after_ms, rel=0.03)


def predicted_ms(folder: dict[str, bytes], phase: str) -> tuple[float, float]:
    """What the folder itself says of a phase: milliseconds of the pass, and of the cache's way behind it."""
    found = re.search(rf"^  {phase}: ([0-9.]+) ms for one [a-z ]+(?:, then ([0-9.]+) ms)?", readme(folder), re.M)
    assert found is not None
    return float(found[1]), float(found[2] or 0.0)


def readme(folder: dict[str, bytes]) -> str:
    return folder["README.txt"].decode()


@examples(15)
@given(document=documents())
def test_what_is_no_legal_plan_is_refused_and_every_other_takes_about_what_its_folder_says(
    document: dict[str, Any],
) -> None:
    found = export(document, "chakra")
    assert bool(found.folder) is not bool(found.refused)
    folder = {file.name: file.data for file in found.folder}
    for phase in PHASES if folder else ():
        run = run_of(folder, phase)
        assert faults(run) == []
        pass_ms, cache_ms = predicted_ms(folder, phase)
        # Of the cache, a stage sends its part while the next still computes, and a rank receives any number at once.
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
        *(node(f"a{one}", "Embedding", one, 0.05) for one in "01"),
        *(node(f"b{one}", "Linear", one, 0.1) for one in "01"),
        node("sum", "AllReduce", "01", 0.08, 4.0 * mib),
        *(node(f"c{one}", "Linear", one, 0.08) for one in "01"),
        node("send", "SendRecv", "0123", 0.02, 1.0 * mib),
        *(node(f"d{one}", "Linear", one, 0.1) for one in "23"),
        node("sum2", "AllReduce", "23", 0.08, 4.0 * mib),
        *(node(f"e{one}", "Linear", one, 0.08) for one in "23"),
        *(node(f"f{one}", "Linear", one, 0.02) for one in "23"),
    ]
    ways = [(f"{before}{one}", f"{after}{one}") for before, after in ("ab",) for one in "01"]
    ways += [way for one in "01" for way in ((f"b{one}", "sum"), ("sum", f"c{one}"), (f"c{one}", "send"))]
    ways += [way for one in "23" for way in (("send", f"d{one}"), (f"d{one}", "sum2"), ("sum2", f"e{one}"))]
    ways += [(f"e{one}", f"f{one}") for one in "23"]
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
    ways = [ExecutionEdge(source=one.id, target=other.id, type="data") for one, other in pairwise(nodes)]
    traces = Traces({"n0.g0": 0})
    traces.write(ExecutionDAG(phase="prefill", folded=False, nodes=tuple(nodes), edges=tuple(ways)))
    _, read = read_trace(trace_bytes(traces.ranks[0].nodes))
    assert [one.type for one in read] == [COMP] * 1000
    assert sum(one.duration_us for one in read) == 400 and {one.duration_us for one in read} == {0, 1}


def test_a_message_is_byte_for_byte_that_of_the_field_numbers() -> None:
    one = TraceNode(300, "k", NodeType.COMP, (1, 299), 2, {"num_ops": 0})
    flag = b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
    count = b"\x52\x0b\x0a\x07num_ops\x68\x00"
    body = b"\x08\xac\x02\x12\x01k\x18\x04\x2a\x03\x01\xab\x02\x38\x02" + flag + count
    assert trace_bytes([one]) == b"\x07\x0a\x050.0.4" + bytes([len(body)]) + body


def test_the_folder_says_how_it_is_run_and_what_was_predicted() -> None:
    text = readme(folder_of("phases and groups"))
    assert "AstraSim_Analytical_Congestion_Unaware --workload-configuration=trace" in text
    found = estimate(plan_named("phases and groups"))
    decode_ms = sum(step.ms for step in found.critical_path.decode if step.resource not in ("host", "pipeline"))
    assert f"decode: {decode_ms:.3f} ms" in text


def test_bytes_are_base64_in_json() -> None:
    found = export(plan_named("one card"), "chakra")
    files = {one["name"]: one["data"] for one in json.loads(found.model_dump_json())["folder"]}
    assert set(files) == set(folder_of("one card")) and files["decode/memory.json"].startswith("ew")


def test_a_model_named_over_two_lines_stays_on_one() -> None:
    plan = plan_named("one card")
    hostile = plan.model_copy(update={"model": plan.model.model_copy(update={"name": "a\n\nsys[0] finished"})})
    found = export(hostile, "chakra")
    assert found.folder[0].data.decode().splitlines()[0].endswith("a sys[0] finished")


def test_what_breaks_rules_is_refused_with_them() -> None:
    plan = plan_named("tensor")
    found = export({**plan.model_dump(mode="json"), "nodes": []}, "chakra")
    assert found.refused and not found.folder
    with pytest.raises(InputError):
        export("{}", "chakra")
