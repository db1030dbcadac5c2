"""`export --to docker-compose`: services of the known form, that see the GPUs of the plan and run its commands."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import shardwright
from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export, Launch

from .plans import WITHOUT_MPIRUN, devices_of, formed, hostile

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "compose_schema.json").read_text(encoding="utf-8")
)
_ADDRESSES = {f"N{place}": f"10.0.0.{place}" for place in range(8)}
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+):([-?])([^}]*)\})")


def _filled(text: str, **environment: str) -> str:
    """`text` as Compose reads it with these variables, by its manual of interpolation."""

    def value(found: re.Match[str]) -> str:
        literal, name, otherwise, default = found.groups()
        if literal:
            return literal
        assert otherwise == "-" or environment.get(name), f"{name}: {default}"
        return environment.get(name) or default

    filled = _VARIABLE.sub(value, text)
    assert "${" not in _VARIABLE.sub("", text)
    return filled


def _file(found: Export) -> dict[str, Any]:
    assert found.text is not None
    return _loaded(found.text)


@cache
def _loaded(text: str) -> dict[str, Any]:
    return yaml.safe_load(text)


def _services(found: Export) -> list[tuple[Launch, dict[str, Any]]]:
    """The services, each with the command that it stands for."""
    services = _file(found)["services"]
    return [(one, services[f"{one.node}-replica{one.server}"]) for one in found.launches]


def _gpus(service: dict[str, Any]) -> list[str]:
    """The GPUs of a service in the order of its ranks, as its container numbers them."""
    (devices,) = service["deploy"]["resources"]["reservations"]["devices"]
    seen = sorted(devices["device_ids"], key=int)
    return [seen[int(place)] for place in service["environment"]["CUDA_VISIBLE_DEVICES"].split(",")]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_each_gpu_of_the_plan_is_one_services_in_the_order_of_its_ranks(name: str, engine: str) -> None:
    found = formed(name, engine, "docker-compose")
    jsonschema.validate(_file(found), SCHEMA)
    services = _services(found)
    assert len(services) == len(_file(found)["services"])
    devices = [f"{launch.node}.g{gpu}" for launch, service in services for gpu in _gpus(service)]
    assert len(devices) == len(set(devices)) and set(devices) == devices_of(name)
    nodes = {launch.node for launch, _ in services}
    for launch, service in services:
        assert ",".join(_gpus(service)) == launch.environment["CUDA_VISIBLE_DEVICES"]
        assert service.get("profiles") == ([launch.node] if len(nodes) > 1 else None)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_the_services_run_the_commands_of_the_script(name: str, engine: str) -> None:
    found = formed(name, engine, "docker-compose")
    values = {**_ADDRESSES, "MODEL": "/models/m"}
    contents = _file(found).get("configs", {})
    for launch, service in _services(found):
        for words, expected in (
            (service["command"], launch.arguments),
            ([service["environment"][name] for name in launch.environment][1:], [*launch.environment.values()][1:]),
        ):
            for variable, value in values.items():
                expected = [re.sub(rf"\${variable}\b", value, word) for word in expected]
            assert [_filled(word, **values) for word in words] == expected
        # Where requests are answered is where health is asked for.
        first = next(one for one in found.launches if one.server == launch.server)
        assert ("healthcheck" in service) is (launch == first)
        for mounted in service.get("configs", []):
            file = next(one for one in found.files if f"{service['working_dir']}/{one.name}" == mounted["target"])
            assert contents[mounted["source"]]["content"] == file.text and file.name in service["command"]


def test_addresses_and_another_checkpoint_have_to_be_named_on_several_nodes() -> None:
    words = _services(formed("stages on nodes", "vllm", "docker-compose"))[0][1]["command"]
    assert "${N0:?the address of node n0}" in words
    words = _services(formed("another checkpoint", "trtllm", "docker-compose"))[0][1]["command"]
    assert "${MODEL:?a checkpoint in nvfp4}" in words


@pytest.mark.parametrize("name", ["x'; touch pwned; '", "$(touch pwned)", "a: [b\n---\nc", "${N0}}", "$$HOME $MODEL"])
def test_a_models_name_is_one_word_as_it_stands(name: str) -> None:
    ((_, service),) = _services(export(hostile(name), "docker-compose"))
    assert _filled(service["command"][2]) == name


def test_other_gpus_than_nvidias_are_refused_with_the_reason() -> None:
    other = shardwright.plan(model="Qwen3-8B", hardware="1x8:mi300x", input_tokens=512, output_tokens=64)
    assert other.plan is not None
    for form in ("docker-compose", "dynamo", "llm-d"):
        named = {**other.plan.model_dump(mode="json"), "serving": {"engine": "vllm"}}
        assert "NVIDIA's GPUs alone" in export(named, form).refused[0]
