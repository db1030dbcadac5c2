"""The execution DAG is sound, complete and in agreement with the estimate, for every kind of layout."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError
from shardwright.tools.performance import execution
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.performance.execution_model import ExecutionDAG, ExecutionEdge
from shardwright.tools.performance.operation import TokenLoad
from shardwright.tools.performance.schedule import host_seconds
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import HardwareBlock, ModelBlock, PolicyBlock

from .execution_check import critical_path_ms, dag_faults

CASES = json.loads((Path(__file__).parents[1] / "cases" / "layouts.json").read_text())
PHASES = ("prefill", "decode")


# Some layers stand for all sixty, which are alike but for the first three: graphs grow with the depth.
FEW_LAYERS = {"DeepSeek-V3": 12, "DeepSeek-V3.2": 12}


def case_layout(case: dict[str, Any], layout_of: Any) -> Any:
    return layout_of(case["model"], case["degrees"], layers=FEW_LAYERS.get(case["model"]), **case.get("options", {}))


class Expanded(Struct, frozen=True):
    """A phase of a layout, written out and folded."""

    layout: Any
    phase: str
    unfolded: ExecutionDAG
    folded: ExecutionDAG


@pytest.fixture(
    scope="module",
    params=[pytest.param((case, phase), id=f"{case['name']}-{phase}") for case in CASES for phase in PHASES],
)
def expanded(request: pytest.FixtureRequest, layout_of: Any) -> Expanded:
    """Each phase of each kind of layout; one is held at a time."""
    case, phase = request.param
    layout = case_layout(case, layout_of)
    return Expanded(layout, phase, expand_plan(layout, phase), expand_plan(layout, phase, fold=True))


@pytest.mark.thorough
def test_every_node_is_joined_shapes_fit_and_folding_keeps_the_time(expanded: Expanded) -> None:
    layout, phase, unfolded, folded = expanded.layout, expanded.phase, expanded.unfolded, expanded.folded
    assert list(dag_faults(unfolded)) == []
    assert list(dag_faults(folded)) == []
    whole, short = critical_path_ms(unfolded)[0], critical_path_ms(folded)[0]
    assert short == pytest.approx(whole, rel=1e-9)
    estimate = estimate_layout(layout)
    path = estimate.critical_path.prefill if phase == "prefill" else estimate.critical_path.decode
    # The graph has no host and ends with the pass: the estimate adds steps of host and pipeline.
    beside_ms = sum(step.ms for step in path if step.resource in ("host", "pipeline"))
    assert whole == pytest.approx(sum(step.ms for step in path) - beside_ms, rel=1e-9)


@pytest.mark.one_in(16)
def test_folded_and_unfolded_do_the_same_work(expanded: Expanded) -> None:
    def work(dag: ExecutionDAG) -> tuple[float, float]:
        flops = moved = 0.0
        for node in dag.nodes:
            times = (node.repeat or 1) * (1 if node.devices is None or node.is_collective else len(node.devices))
            flops, moved = flops + node.flops * times, moved + node.bytes * times
        return flops, moved

    assert work(expanded.unfolded) == pytest.approx(work(expanded.folded))


def test_both_halves_of_an_overlap_are_written_out_and_their_work_is_that_of_the_batch(layout_of: Any) -> None:
    def written(overlap: bool) -> ExecutionDAG:
        options = {"concurrency": 8, "serving": {"overlap": overlap}}
        return expand_plan(layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2}, **options), "decode", fold=True)

    whole, halved = written(overlap=False), written(overlap=True)
    assert sum(node.flops * (node.repeat or 1) for node in halved.nodes) == pytest.approx(
        sum(node.flops * (node.repeat or 1) for node in whole.nodes)
    )
    for half in (0, 1):
        cores = [node for node in halved.nodes if node.op == "Attention" and f".half{half}." in node.id]
        assert [node.layer for node in cores] == list(range(32))
        assert {dict(node.input_shape)["batch"] for node in cores} == {4}


def test_every_layer_runs_on_every_device_of_its_operators(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 2}, dp=2)
    cores = Counter((node.device, node.layer) for node in expand_plan(layout, "decode").nodes if node.op == "Attention")
    assert set(cores.values()) == {1}
    assert len(cores) == 32 * 2 * 2
    assert {layer for device, layer in cores if device in ("n0.g0", "n0.g1")} == set(range(16))


def test_a_chunked_prompt_passes_the_stages_one_chunk_after_the_other(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"pp": 2}, input_tokens=20_000)
    dag = expand_plan(layout, "prefill", fold=True)
    assert list(dag_faults(dag)) == []
    assert sum(node.op == "Embedding" for node in dag.nodes) == 3
    assert sum(node.role == "lm_head" for node in dag.nodes) == 1
    estimate = estimate_layout(layout).latency
    # On the path lie the host times of three passes, and of one in each stage behind the first.
    path, host_ms = critical_path_ms(dag)[0], host_seconds(layout.setting, TokenLoad(1, 2, 0), 0.0) * 1e3
    assert path < estimate.prefill_ms <= path + (2 + len(layout.phase("prefill").stages)) * host_ms + 1e-6


def test_nodes_of_a_plan_name_the_nodes_that_they_unroll(layout_of: Any) -> None:
    layout = layout_of("DeepSeek-V3", {"tp": 2, "tp_ffn": 2, "ep": 4, "pp": 2}, weights="fp8")
    setting = layout.setting
    plan = build_plan(
        BuildRequest(
            model=ModelBlock(name="DeepSeek-V3", config=find_model("DeepSeek-V3").config),
            hardware=HardwareBlock(accelerator="h100-sxm", nodes=1, gpus_per_node=8),
            workload=setting.workload,
            precision=setting.precision,
            strategy=layout.strategy,
            policy=PolicyBlock(),
        )
    )
    nodes = {node.id: node for node in plan.nodes}
    for node in expand_plan(plan, "decode").nodes:
        assert node.plan_node in nodes
        unrolled = nodes[node.plan_node]
        if node.op == "Expert":
            assert unrolled.type == "ExpertNode" and node.device in unrolled.devices
        if node.op == "Attention":
            assert unrolled.type == "ShardNode" and node.device in unrolled.devices
        if node.op == "AllToAll":
            assert unrolled.type == "AllToAllNode" and set(node.devices or ()) == set(unrolled.devices)


def test_collectives_send_and_compute_does_not(layout_of: Any) -> None:
    dag = expand_plan(layout_of("DeepSeek-V3", {"tp": 2, "tp_ffn": 2, "ep": 4}, weights="fp8"), "prefill")
    for node in dag.nodes:
        # A collective whose work another one does as well (tokens that are everywhere need no dispatch) is free.
        assert (node.comm_bytes > 0) == (node.is_collective and node.ms > 0)
        assert not (node.is_collective and node.flops)
        assert (node.device is None) == node.is_collective


def test_no_node_is_faster_than_the_roofline(layout_of: Any) -> None:
    layout = layout_of("Mixtral-8x7B", {"tp": 2, "ep": 2}, gpus_per_node=2)
    facts = layout.setting.hardware
    for phase in PHASES:
        for node in expand_plan(layout, phase, fold=True).nodes:
            assert node.ms * 1e-3 >= node.flops / facts.peak_flops(node.dtype) - 1e-12
            assert node.ms * 1e-3 >= node.bytes / facts.memory_bandwidth_bytes_s - 1e-12


def test_a_missing_predecessor_or_a_shape_that_does_not_fit_is_found(layout_of: Any) -> None:
    dag = expand_plan(layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2}), "decode", fold=True)
    cut = dag.model_copy(update={"edges": dag.edges[1:]})
    assert any("no predecessor" in fault for fault in dag_faults(cut))
    wrong = next(node for node in dag.nodes if node.op == "Attention")
    nodes = tuple(
        node.model_copy(update={"output_shape": (("batch", 1), ("seq", 1), ("heads", 7))}) if node is wrong else node
        for node in dag.nodes
    )
    assert any("its predecessors give" in fault for fault in dag_faults(dag.model_copy(update={"nodes": nodes})))
    back = ExecutionEdge(source=dag.nodes[-1].id, target=dag.nodes[0].id, type="order")
    assert "the graph has a cycle" in list(dag_faults(dag.model_copy(update={"edges": (*dag.edges, back)})))


def test_a_dag_beyond_the_limit_is_refused_and_folding_is_named(layout_of: Any) -> None:
    layout = layout_of(
        "Llama-3.1-405B", {"tp": 8, "tp_ffn": 8, "pp": 2}, nodes=64, dp=32, input_tokens=100_000, output_tokens=16
    )
    with pytest.raises(InputError, match="fold"):
        expand_plan(layout, "prefill")
    assert len(expand_plan(layout, "decode", fold=True).nodes) < execution.MAX_NODES


@pytest.mark.thorough
def test_a_prompt_of_a_thousand_chunks_is_folded_to_its_first_its_last_and_those_between(layout_of: Any) -> None:
    layout = layout_of(
        "Llama-3.1-70B", {"tp": 2, "tp_ffn": 2, "pp": 4}, nodes=64, dp=64, input_tokens=8192, output_tokens=16,
        serving={"prefill_chunk_tokens": 8},
    )  # fmt: skip
    dag = expand_plan(layout, "prefill", fold=True)
    assert list(dag_faults(dag)) == []
    passes = Counter(node.id.split(".")[2] for node in dag.nodes)
    assert set(passes) == {"c0", "c1", "c2"}
    tokens = sum((node.repeat or 1) * dict(node.input_shape)["seq"] for node in dag.nodes if node.op == "Attention")
    assert tokens == 64 * 80 * 8192
