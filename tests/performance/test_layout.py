"""A layout read from a plan's graph is the one that search made without it; what cannot be read is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError
from shardwright.tools.performance.estimate import estimate, estimate_layout
from shardwright.tools.performance.execution import expand_plan
from shardwright.tools.performance.layout import layout_from_view
from shardwright.tools.performance.memory import device_memory
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import HardwareBlock, ModelBlock, Plan, PolicyBlock
from shardwright.tools.plan.view import PlanView

from ..examples import examples

CASES = json.loads((Path(__file__).parents[1] / "cases" / "layouts.json").read_text())


def plan_of(layout: Any, model: str) -> Plan:
    setting = layout.setting
    facts = setting.hardware
    return build_plan(
        BuildRequest(
            model=ModelBlock(name=model, config=find_model(model).config),
            hardware=HardwareBlock(accelerator=facts.accelerator, nodes=facts.nodes, gpus_per_node=facts.gpus_per_node),
            workload=setting.workload,
            precision=setting.precision,
            strategy=layout.strategy,
            serving=setting.serving,
            policy=PolicyBlock(
                relaxations=tuple(sorted(setting.relaxations)), memory_utilization=setting.memory_utilization
            ),
        )
    )


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_graph_and_strategy_give_the_same_memory_and_times(case: dict[str, Any], layout_of: Any) -> None:
    layout = layout_of(case["model"], case["degrees"], **case.get("options", {}))
    plan = plan_of(layout, case["model"])
    read = layout_from_view(PlanView(plan.model_dump(mode="json")))
    assert device_memory(read) == device_memory(layout)
    assert estimate(plan).model_copy(update={"benchmark": None}) == estimate_layout(layout)
    assert read.strategy.gpu_count == layout.strategy.gpu_count


@pytest.fixture(scope="module")
def document(layout_of: Any) -> dict[str, Any]:
    layout = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 2})
    return plan_of(layout, "Llama-3.1-8B").model_dump(mode="json")


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("model.config", {}, "hidden_size"),
        ("hardware.accelerator", "h9000", "h9000"),
        ("hardware.nodes", 0, "hardware.nodes"),
        ("workload.input_tokens", "many", "workload.input_tokens"),
        ("precision.weights", "bf17", "precision.weights"),
        ("nodes", [], "PH001"),
    ],
)
def test_what_cannot_be_read_is_named(path: str, value: Any, named: str, document: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(document))
    *parents, last = path.split(".")
    target = broken
    for name in parents:
        target = target[name]
    target[last] = value
    with pytest.raises(InputError, match=named):
        layout_from_view(PlanView(broken))


def test_layers_that_the_model_does_not_have_are_named(document: dict[str, Any]) -> None:
    broken = json.loads(json.dumps(document))
    stage = next(node for node in broken["nodes"] if node["type"] == "PipelineStageNode")
    stage["layers"] = [0, 10**9]
    with pytest.raises(InputError, match="0 to 31"):
        layout_from_view(PlanView(broken))


def test_unknown_and_unreadable_optional_fields_do_not_stop_the_reading(document: dict[str, Any]) -> None:
    odd = json.loads(json.dumps(document))
    odd["workload"] |= {"ttft_ms_max": "soon", "colour": "red"}
    odd["policy"] = {"relaxations": ["attention_dp", "ignore_memory"], "memory_utilization": 7}
    layout = layout_from_view(PlanView(odd))
    assert layout.setting.relaxations == {"attention_dp"}
    assert layout.setting.memory_utilization == 0.9
    assert layout.setting.workload.ttft_ms_max is None


def test_degrees_come_from_the_graph_not_from_the_declaration(document: dict[str, Any]) -> None:
    lying = json.loads(json.dumps(document))
    lying["strategy"]["decode"]["tp"] = 64
    assert layout_from_view(PlanView(lying)).phase("decode").degrees.tp == 2


JUNK: list[Any] = [None, -1, 0, 10**9, "x", [], {}, [[0, 10**9]], ["n0.g0"], ["gpu7"], True, 3.5, {"tp": 10**9}, [0, 3]]


@examples(80)
@given(data=st.data())
def test_a_damaged_plan_is_estimated_or_refused_in_one_line(data: st.DataObject, document: dict[str, Any]) -> None:
    damaged = json.loads(json.dumps(document))
    for _ in range(data.draw(st.integers(1, 4))):
        part = data.draw(st.sampled_from(["drop", "nodes", "workload", "hardware", "precision", "config"]))
        if part == "drop":
            del damaged["nodes"][data.draw(st.integers(0, len(damaged["nodes"]) - 1))]
            continue
        target = (
            damaged["nodes"][data.draw(st.integers(0, len(damaged["nodes"]) - 1))]
            if part == "nodes"
            else damaged["model"]["config"] if part == "config" else damaged[part]
        )  # fmt: skip
        target[data.draw(st.sampled_from(sorted(target)))] = data.draw(st.sampled_from(JUNK))
    try:
        estimate(damaged)
        expand_plan(damaged, "decode", fold=True)
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("junk", [None, [], {}, {"nodes": [1]}, {"nodes": [{"id": "a", "type": "PhaseNode"}]}, "plan"])
def test_junk_is_an_input_error(junk: Any) -> None:
    with pytest.raises(InputError):
        layout_from_view(PlanView(junk))
