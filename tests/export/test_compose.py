"""`export --to docker-compose` writes services, valid by schema, that see the plan's GPUs and run its commands."""

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
    """`text` after Compose's interpolation of these variables, by its manual."""

    def value(match: re.Match[str]) -> str:
        literal, name, otherwise, default = match.groups()
        if literal:
            return literal
        assert otherwise == "-" or environment.get(name), f"{name}: {default}"
        return environment.get(name) or default

    filled = _VARIABLE.sub(value, text)
    assert "${" not in _VARIABLE.sub("", text)
    return filled


def _file(result: Export) -> dict[str, Any]:
    assert result.text is not None
    return _loaded(result.text)


@cache
def _loaded(text: str) -> dict[str, Any]:
    return yaml.safe_load(text)


def _services(result: Export) -> list[tuple[Launch, dict[str, Any]]]:
    """Each launch with the service that runs it."""
    services = _file(result)["services"]
    return [(launch, services[f"{launch.node}-replica{launch.server}"]) for launch in result.launches]


def _gpus(service: dict[str, Any]) -> list[str]:
    """The GPUs of a service in rank order, numbered as on the host."""
    (devices,) = service["deploy"]["resources"]["reservations"]["devices"]
    seen = sorted(devices["device_ids"], key=int)
    return [seen[int(place)] for place in service["environment"]["CUDA_VISIBLE_DEVICES"].split(",")]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_each_gpu_of_the_plan_is_one_services_in_the_order_of_its_ranks(name: str, engine: str) -> None:
    result = formed(name, engine, "docker-compose")
    jsonschema.validate(_file(result), SCHEMA)
    services = _services(result)
    assert len(services) == len(_file(result)["services"])
    devices = [f"{launch.node}.g{gpu}" for launch, service in services for gpu in _gpus(service)]
    assert len(devices) == len(set(devices)) and set(devices) == devices_of(name)
    nodes = {launch.node for launch, _ in services}
    for launch, service in services:
        assert ",".join(_gpus(service)) == launch.environment["CUDA_VISIBLE_DEVICES"]
        assert service.get("profiles") == ([launch.node] if len(nodes) > 1 else None)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "engine"), WITHOUT_MPIRUN)
def test_the_services_run_the_commands_of_the_script(name: str, engine: str) -> None:
    result = formed(name, engine, "docker-compose")
    values = {**_ADDRESSES, "MODEL": "/models/m"}
    contents = _file(result).get("configs", {})
    for launch, service in _services(result):
        for words, expected in (
            (service["command"], launch.arguments),
            ([service["environment"][name] for name in launch.environment][1:], [*launch.environment.values()][1:]),
        ):
            for variable, value in values.items():
                expected = [re.sub(rf"\${variable}\b", value, word) for word in expected]
            assert [_filled(word, **values) for word in words] == expected
        # The health check is on the service that answers requests.
        first = next(peer for peer in result.launches if peer.server == launch.server)
        assert ("healthcheck" in service) is (launch == first)
        for mounted in service.get("configs", []):
            file = next(file for file in result.files if f"{service['working_dir']}/{file.name}" == mounted["target"])
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
