"""`export --to ray` writes an application, valid by schema, whose replicas have the flags of the plan's commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .placements import MEETING, options
from .plans import OF_VLLM, formed, hostile, plan_named

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "cases" / "ray_schema.json").read_text(encoding="utf-8")
)
WRITTEN = [row for row in OF_VLLM if row[0] != "sequence cut"]


def _application(result: Export) -> dict[str, Any]:
    assert result.text is not None
    config = yaml.safe_load(result.text)
    jsonschema.validate(config, SCHEMA)
    return config["applications"][0]


def _configs(application: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The role and the configuration of each kind of replica."""
    arguments = application["args"]
    if "prefill_config" in arguments:
        return [(role, arguments[f"{role}_config"]) for role in ("prefill", "decode")]
    return [("both", llm_config) for llm_config in arguments.get("llm_configs", [arguments.get("llm_config")])]


def _text(value: object) -> str:
    """A value in the spelling of a command."""
    if value is True:
        return ""
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else json.dumps(value)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "_engine"), WRITTEN)
def test_the_replicas_have_all_gpus_of_the_plan_and_the_flags_of_its_commands(name: str, _engine: str) -> None:
    result = formed(name, "vllm", "ray")
    application, gpus = _application(result), 0
    for role, config in _configs(application):
        keywords = config["engine_kwargs"]
        degrees = [keywords.get(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline", "data")]
        gpus += config["deployment_config"]["num_replicas"] * degrees[0] * degrees[1] * degrees[2]
        first = next(launch for launch in result.launches if launch.role == role)
        known = {flag: value for flag, value in options(first.arguments).items() if flag not in MEETING}
        assert {f"--{key.replace('_', '-')}": _text(value) for key, value in keywords.items()} == known
        if role == "both":
            builder = "build_dp_openai_app" if degrees[2] > 1 else "build_openai_app"
            assert application["import_path"] == f"ray.serve.llm:{builder}"
    assert gpus == plan_named(name).strategy.gpu_count


def test_layers_of_stages_are_said_in_the_environment() -> None:
    ((_, config),) = _configs(_application(formed("own cut", "vllm", "ray")))
    assert config["runtime_env"] == {"env_vars": {"VLLM_PP_LAYER_PARTITION": "42,38"}}


@pytest.mark.parametrize(
    ("name", "engine", "why"),
    [
        ("tensor", "sglang", "runs vLLM here, not sglang"),
        ("tensor", "trtllm", "runs vLLM here, not trtllm"),
        ("sequence cut", "vllm", "without context parallelism"),
    ],
)
def test_what_ray_cannot_be_told_is_refused_with_the_reason(name: str, engine: str, why: str) -> None:
    assert why in formed(name, engine, "ray").refused[0]


@pytest.mark.parametrize("name", ["x'; touch pwned; '", "$(touch pwned)", "a: [b\n---\nc", "{{x}}"])
def test_a_models_name_stays_a_value(name: str) -> None:
    ((_, config),) = _configs(_application(export(hostile(name), "ray")))
    assert config["model_loading_config"] == {"model_id": name, "model_source": name}
