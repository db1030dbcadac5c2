"""SkyPilot's tasks as containers: `run` is a script, `envs` its variables, `resources.accelerators` its GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..plan.elements import as_int, as_mapping, as_str
from .process import Process
from .resources import Allotment

_KIND = re.compile(r"([\w.-]{1,60})(?::(\d{1,3}))?")


def of_skypilot(value: Mapping[str, Any], around: Process) -> tuple[str, Process] | None:
    """The script of a task, with what stands around it; `None` where an object is of another kind."""
    script, resources = as_str(value.get("run")), as_mapping(value.get("resources"))
    if script is None or not resources:
        return None
    written = resources.get("accelerators")
    kinds = as_mapping(written)
    named = written if isinstance(written, str) else next((f"{kind}:{kinds[kind]}" for kind in kinds), "")
    kind = _KIND.fullmatch(named)
    count = int(kind[2] or 1) if kind is not None else None
    environment = {str(name): str(one) for name, one in as_mapping(value.get("envs")).items() if one is not None}
    if count is not None:
        environment["SKYPILOT_NUM_GPUS_PER_NODE"] = str(count)
    return script, replace(
        around,
        environment=environment,
        nodes=as_int(value.get("num_nodes")) or around.nodes,
        gpus=Allotment(count, f"accelerators: {named}") if count else around.gpus,
        runs_on=(*around.runs_on, *([f"accelerators: {kind[1]}"] if kind is not None else [])),
    )
