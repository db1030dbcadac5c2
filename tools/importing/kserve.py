"""KServe's objects: an InferenceService with vLLM's flags, and an LLMInferenceService, whose degrees are fields.

Of the second: `spec.parallelism` {tensor, pipeline, data, expert}, `spec.prefill` the other side where phases lie
apart, and the flags of its preset in `VLLM_ADDITIONAL_ARGS` (kserve/website, `llmisvc-configuration`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ..plan.elements import as_int, as_list, as_mapping, as_str
from .process import Process
from .resources import hardware_in, of_object

_KIND, _SINGLE = "LLMInferenceService", "InferenceService"
_ID = "--model_id"
_FLAGS = {"tensor": "--tensor-parallel-size", "pipeline": "--pipeline-parallel-size", "data": "--data-parallel-size"}
_ADDITIONAL = "VLLM_ADDITIONAL_ARGS"


def of_kserve(value: Mapping[str, Any]) -> list[Process] | None:
    """The servers of an object; `None` where it is of another kind."""
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
        for one in map(as_mapping, as_list(container.get("env"))):
            if one.get("name") == _ADDITIONAL:
                words += _split(as_str(one.get("value")) or "")
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
