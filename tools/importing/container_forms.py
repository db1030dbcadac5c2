"""Objects whose containers are not written out, as containers: KServe's services, values of vLLM's Helm chart,
SkyPilot's tasks.

Of the second: `spec.parallelism` {tensor, pipeline, data, expert}, `spec.prefill` the other side where phases lie
apart, and the flags of its preset in `VLLM_ADDITIONAL_ARGS` (kserve/website, `llmisvc-configuration`).

`servingEngineSpec.modelSpec[]` with `modelURL`, `replicaCount`, `requestGPU`, `lmcacheConfig`, and `vllmConfig`, whose
`extraArgs` are flags (vllm-project/production-stack, `helm/values.yaml`, `helm/templates/deployment-vllm-multi.yaml`).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ..plan.elements import as_int, as_list, as_mapping, as_str
from .process import Process, image_version
from .resources import Allotment, hardware_in, of_object

_KIND, _SINGLE = "LLMInferenceService", "InferenceService"
_ID = "--model_id"
_FLAGS = {"tensor": "--tensor-parallel-size", "pipeline": "--pipeline-parallel-size", "data": "--data-parallel-size"}
_ADDITIONAL = "VLLM_ADDITIONAL_ARGS"


def of_kserve(value: Mapping[str, Any]) -> list[Process] | None:
    """The servers of a KServe object; `None` for another kind of object."""
    spec = as_mapping(value.get("spec"))
    if as_str(value.get("kind")) == _SINGLE:
        return _single(as_mapping(spec.get("predictor")))
    if as_str(value.get("kind")) != _KIND:
        return None
    named = as_mapping(spec.get("model"))
    model = as_str(named.get("name")) or (as_str(named.get("uri")) or "").removeprefix("hf://")
    prefill = as_mapping(spec.get("prefill"))
    if not prefill:
        return [_server(model, spec, "")]
    return [_server(model, prefill, "prefill"), _server(model, spec, "decode")]


def _single(predictor: Mapping[str, Any]) -> list[Process] | None:
    """The server of a predictor whose runtime is vLLM by the format of its model (`huggingface`)."""
    model = as_mapping(predictor.get("model"))
    if as_str(as_mapping(model.get("modelFormat")).get("name")) != "huggingface":
        return None
    words = [str(word) for word in as_list(model.get("args"))]
    storage = as_str(model.get("storageUri")) or ""
    named = [word.replace(_ID, "--model", 1) for word in words if not word.startswith("--model_name")]
    stored = [storage.removeprefix("hf://")] if storage.startswith("hf://") else []
    return [
        Process(
            engine="vllm",
            words=(*stored, *named),
            copies=max(1, as_int(predictor.get("minReplicas")) or 1),
            gpus=of_object(model),
            runs_on=tuple(hardware_in(predictor)),
        )
    ]


def _server(model: str, spec: Mapping[str, Any], phase: str) -> Process:
    degrees = as_mapping(spec.get("parallelism"))
    words = [model] if model else []
    for name, flag in _FLAGS.items():
        if (degree := as_int(degrees.get(name))) is not None:
            words += [flag, str(degree)]
    if degrees.get("expert") is True:
        words.append("--enable-expert-parallel")
    for container in map(as_mapping, as_list(as_mapping(spec.get("template")).get("containers"))):
        for variable in map(as_mapping, as_list(container.get("env"))):
            if variable.get("name") == _ADDITIONAL:
                words += _split(as_str(variable.get("value")) or "")
        words += [word for word in as_list(container.get("args")) if isinstance(word, str) and word.startswith("-")]
    if phase:
        words += ["--disaggregation-mode", phase]
    return Process(
        engine="vllm",
        words=tuple(words),
        hint=phase,
        copies=max(1, as_int(spec.get("replicas")) or 1),
        runs_on=tuple(hardware_in(as_mapping(spec.get("template")))),
    )


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


# Settings of the chart that are no flags: it sets variables by them, whose names alone are told.
_VARIABLES = {"v0": "VLLM_USE_V1", "v1": "VLLM_USE_V1", "prometheusMultiprocDir": "PROMETHEUS_MULTIPROC_DIR"}
_LMCACHE = {"kv_connector": "LMCacheConnectorV1"}
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def of_helm(value: Mapping[str, Any], around: Process) -> Process | None:
    """The servers of a model in the chart's values; `None` for another kind of object."""
    config, model = as_mapping(value.get("vllmConfig")), as_str(value.get("modelURL"))
    if model is None or not config:
        return None
    words = [model]
    for name, setting in config.items():
        if isinstance(setting, str | int | float) and name not in _VARIABLES:
            words.append(f"--{_HUMP.sub('-', name).lower()}={setting}")
    words += [str(word) for word in as_list(config.get("extraArgs"))]
    lmcache = as_mapping(value.get("lmcacheConfig"))
    if lmcache.get("enabled") is True:
        role = as_str(lmcache.get("kvRole")) or "kv_both"
        words += ["--kv-transfer-config", json.dumps({**_LMCACHE, "kv_role": role})]
    variables = {variable: str(config[name]) for name, variable in _VARIABLES.items() if name in config}
    count, image = as_int(value.get("requestGPU")), f"{value.get('repository')}:{value.get('tag')}"
    return replace(
        around,
        words=tuple(words),
        environment=variables,
        copies=max(1, as_int(value.get("replicaCount")) or 1),
        version=image_version([image]),
        gpus=Allotment(count, f"requestGPU: {count}") if count else around.gpus,
    )


_ACCELERATOR = re.compile(r"([\w.-]{1,60})(?::(\d{1,3}))?")


def of_skypilot(value: Mapping[str, Any], around: Process) -> tuple[str, Process] | None:
    """The script of a SkyPilot task and its process; `None` for another kind of object."""
    script, resources = as_str(value.get("run")), as_mapping(value.get("resources"))
    if script is None or not resources:
        return None
    written = resources.get("accelerators")
    kinds = as_mapping(written)
    named = written if isinstance(written, str) else next((f"{kind}:{kinds[kind]}" for kind in kinds), "")
    kind = _ACCELERATOR.fullmatch(named)
    count = int(kind[2] or 1) if kind is not None else None
    environment = {str(name): str(text) for name, text in as_mapping(value.get("envs")).items() if text is not None}
    if count is not None:
        environment["SKYPILOT_NUM_GPUS_PER_NODE"] = str(count)
    return script, replace(
        around,
        environment=environment,
        nodes=as_int(value.get("num_nodes")) or around.nodes,
        gpus=Allotment(count, f"accelerators: {named}") if count else around.gpus,
        runs_on=(*around.runs_on, *([f"accelerators: {kind[1]}"] if kind is not None else [])),
    )
