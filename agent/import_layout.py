"""A plan of launch commands with what they set otherwise than the engine would: batches, and the GPUs of servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..tools.catalog.architecture import Architecture
from ..tools.errors import InputError
from ..tools.export.server import servers_of
from ..tools.importing.deployment import Deployment
from ..tools.performance.layout import LoadedLayout, layout_from_view
from ..tools.plan.builder import BuildRequest
from ..tools.plan.document import Plan
from ..tools.plan.reader import read_document
from .stated_strategy import build_stated


def settled(plan: Plan, request: BuildRequest, deployment: Deployment, architecture: Architecture) -> Plan:
    """The plan with what the commands set otherwise than the engine would: its batches, and the GPUs of its servers."""
    read = read_document(plan)
    try:
        layout = layout_from_view(read.view)
        serving, names = _serving(layout, deployment), _named_devices(layout, deployment)
    except InputError:  # the rules say what is wrong with it
        return plan
    finally:
        read.view.release()
    if serving and request.serving is not None:
        plan = build_stated(replace(request, serving=request.serving.model_copy(update=serving)), architecture)
    if names:
        raw = plan.model_dump(mode="json")
        for node in raw["nodes"]:
            if "devices" in node:
                node["devices"] = [names.get(device, device) for device in node["devices"]]
        plan = Plan.model_validate(raw)
    return plan


def _serving(layout: LoadedLayout, deployment: Deployment) -> dict[str, Any]:
    """The settings of the commands that are not those of a plan that states none."""
    stated, usual = deployment.scheduling, layout.setting
    found: dict[str, Any] = {}
    tokens = stated.token_budget or usual.token_budget
    if tokens != usual.token_budget:
        found["prefill_chunk_tokens"] = tokens
    if stated.max_sequences not in (None, min(usual.max_sequences, tokens)):
        found["max_batch"] = stated.max_sequences
    if stated.overlaps:
        found["overlap"] = "two_batch"
    return found


def _named_devices(layout: LoadedLayout, deployment: Deployment) -> dict[str, str]:
    """The GPU that the commands name for each that the plan's own placement has, where they differ."""
    servers = servers_of(layout)
    if len(servers) != len(deployment.devices):
        return {}
    by_group = deployment.engine == "vllm"
    placed = [device for one in servers for device in (one.group_major() if by_group else one.stage_major())]
    named = [device for one in deployment.devices for device in one]
    return dict(zip(placed, named, strict=True)) if placed != named and len(placed) == len(named) else {}
