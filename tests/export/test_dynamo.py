"""`export --to dynamo` writes a graph, valid by schema, whose workers have the engine's flags and the plan's GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .manifests import objects_of
from .placements import MEETING, options
from .plans import EXPORTED, formed, hostile, plan_named


def _components(result: Export) -> list[dict[str, Any]]:
    (graph,) = objects_of(result)
    frontend, *workers = graph["spec"]["components"]
    assert frontend["type"] == "frontend"
    return workers


def _main(component: dict[str, Any]) -> dict[str, Any]:
    (container,) = component["podTemplate"]["spec"]["containers"]
    return container


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "engine"), EXPORTED)
def test_the_workers_have_all_gpus_of_the_plan_and_the_flags_of_its_commands(name: str, engine: str) -> None:
    result = formed(name, engine, "dynamo")
    gpus, servers = 0, 0
    for component in _components(result):
        container, nodes = _main(component), component.get("multinode", {"nodeCount": 1})["nodeCount"]
        gpus += component["replicas"] * nodes * int(container["resources"]["limits"]["nvidia.com/gpu"])
        role = {"worker": "both"}.get(component["type"], component["type"])
        (first, *_) = [
            launch
            for launch in result.launches
            if launch.role == role and launch.server >= (servers if role == "both" else 0)
        ]
        servers += component["replicas"]
        assert container["command"] == ["python3", "-m", f"dynamo.{engine}"]
        flags = options(tuple(container["args"]))
        assert flags.pop("--model-path" if engine == "sglang" else "--model") == plan_named(name).model.name or (
            result.text is not None and "A-CHECKPOINT-IN-" in result.text
        )
        assert flags.get("--disaggregation-mode", "both") == role
        if engine == "trtllm":
            config = next(file.text for file in result.files if file.name == f"trtllm_{first.server}.yaml")
            assert json.loads(flags["--override-engine-args"]) == yaml.safe_load(config)
            continue
        known = {flag: value for flag, value in options(first.arguments).items() if flag not in MEETING}
        known.pop("--model-path", None)
        assert {**flags, "--disaggregation-mode": ""} == {**known, "--disaggregation-mode": ""}
    assert gpus == plan_named(name).strategy.gpu_count


def test_layers_of_stages_are_said_and_gpus_and_addresses_are_not() -> None:
    (component,) = _components(formed("own cut", "vllm", "dynamo"))
    assert {variable["name"] for variable in _main(component)["env"]} == {"HF_TOKEN", "VLLM_PP_LAYER_PARTITION"}
    for component in _components(formed("phases and groups", "vllm", "dynamo")):
        assert {variable["name"] for variable in _main(component)["env"]} == {"HF_TOKEN"}


def test_another_version_of_the_engine_in_the_containers_is_said() -> None:
    text = formed("tensor", "vllm", "dynamo").text
    assert text is not None and "have version 0.31.0 of the engine, and these flags are those of 0.33.0" in text


def test_what_the_operator_would_start_otherwise_is_refused() -> None:
    name = "x'; touch pwned; '"
    assert (
        "hands commands for several nodes to a shell" in export(hostile(name, "stages on nodes"), "dynamo").refused[0]
    )


@pytest.mark.parametrize("name", ["x'; touch pwned; '", "$(HF_TOKEN) $$", "a: [b\n---\nkind: Pod"])
def test_a_models_name_stays_a_value(name: str) -> None:
    (component,) = _components(export(hostile(name), "dynamo"))
    # Kubernetes replaces `$$` by `$`, and `$(NAME)` by the variable.
    assert _main(component)["args"][1] == name.replace("$", "$$")
