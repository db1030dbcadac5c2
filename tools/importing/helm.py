"""Values of the Helm chart of vLLM's production stack: models with their engine's settings in camel case.

`servingEngineSpec.modelSpec[]` with `modelURL`, `replicaCount`, `requestGPU` and `vllmConfig`, whose `extraArgs` are
flags (vllm-project/production-stack, `helm/values.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..plan.elements import as_int, as_list, as_mapping, as_str
from .process import Process, image_version
from .resources import Allotment

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def of_helm(value: Mapping[str, Any], around: Process) -> Process | None:
    """The servers of a model; `None` where an object is of another kind."""
    config, model = as_mapping(value.get("vllmConfig")), as_str(value.get("modelURL"))
    if model is None or not config:
        return None
    words = [model]
    for name, setting in config.items():
        if isinstance(setting, str | int | float):
            words.append(f"--{_HUMP.sub('-', name).lower()}={setting}")
    words += [str(word) for word in as_list(config.get("extraArgs"))]
    count, image = as_int(value.get("requestGPU")), f"{value.get('repository')}:{value.get('tag')}"
    return replace(
        around,
        words=tuple(words),
        copies=max(1, as_int(value.get("replicaCount")) or 1),
        version=image_version([image]),
        gpus=Allotment(count, f"requestGPU: {count}") if count else around.gpus,
    )
