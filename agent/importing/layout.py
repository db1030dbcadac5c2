"""A plan of launch commands with the batches and GPUs of servers that they set otherwise than the engine would.

If nobody states how many requests come at once, as many do as the servers are set to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ...tools.catalog.architecture import Architecture
from ...tools.engines.names import ENGINES, EngineName
from ...tools.errors import InputError
from ...tools.export.engine_targets import ENGINE_TARGETS
from ...tools.export.kept_flags import written_by_itself
from ...tools.export.server import servers_of
from ...tools.importing.deployment import Deployment
from ...tools.importing.kept_flags import Kept, beside
from ...tools.importing.launch import Launch
from ...tools.performance.capacity import longest_held
from ...tools.performance.layout import LoadedLayout, layout_from_view
from ...tools.performance.memory import max_concurrency
from ...tools.plan.builder import BuildRequest
from ...tools.plan.document import Plan
from ...tools.plan.reader import read_document
from ..intent.intent import Assumption, HardwareChoice
from ..stated.strategy import build_stated


def filled(
    request: BuildRequest,
    launch: Launch,
    deployment: Deployment,
    architecture: Architecture,
    assumptions: tuple[Assumption, ...],
) -> tuple[BuildRequest, tuple[Assumption, ...]]:
    """The request with the number of requests at once to judge by, and the assumptions that say where it comes from.

    Unless it or a rate is stated: as many as the commands let the servers run, or as fit where fewer do.
    """
    load, each = request.workload, deployment.scheduling.max_sequences
    is_open = load.request_rate is None and any(entry.field == "concurrency" for entry in assumptions)
    commands = sorted(launch.commands, key=lambda command: command.phase != "decode")
    flags = next((command.flags for command in commands if "max_sequences" in command.flags.values), None)
    if not is_open or not each or flags is None:
        return request, assumptions
    decode = request.strategy.decode
    schedulers = (decode.replicas or request.strategy.dp) * (decode.attention_dp or 1)
    reason = f"{flags.written['max_sequences']}: so many are run at once"
    if schedulers > 1:
        reason = f"{flags.written['max_sequences']}: {each:,} by each of {schedulers} schedulers"
    count, fit = each * schedulers, _most_that_fit(request, architecture)
    if 0 < fit < count:
        count, reason = fit, f"{reason}, {count:,} in all, of which so many fit into memory"
    derived = Assumption(field="concurrency", value=count, reason=reason)
    load = load.model_copy(update={"concurrency": count})
    return replace(request, workload=load), tuple(
        derived if entry.field == "concurrency" else entry for entry in assumptions
    )


def _most_that_fit(request: BuildRequest, architecture: Architecture) -> int:
    """The most requests at once that fit into memory; 0 where the rules say why none does."""
    read = read_document(build_stated(request, architecture))
    try:
        return max_concurrency(layout_from_view(read.view))
    except InputError:
        return 0
    finally:
        read.view.release()


def held_length(plan: Plan, at_most: int) -> int | None:
    """Tokens of the longest request, of at most so many, that the cache holds; `None` where rules say why not."""
    read = read_document(plan)
    try:
        return longest_held(layout_from_view(read.view), at_most)
    except InputError:
        return None
    finally:
        read.view.release()


def beyond_machines(plan: Plan, stated: HardwareChoice | None) -> Iterator[str]:
    """Remarks if the degrees take more GPUs than there are, or than a machine has unless their number is `stated`."""
    used, hardware = plan.strategy.gpu_count, plan.hardware
    owned, each = hardware.nodes * hardware.gpus_per_node, used // max(1, plan.strategy.dp)
    if used > owned:
        yield f"The degrees take {used} GPUs, and the hardware has {owned}: the engine does not start on it"
    elif stated is not None and stated.nodes is None and stated.gpus_per_node and each > hardware.gpus_per_node:
        yield (
            f"The degrees take {each} GPUs, and a machine has {hardware.gpus_per_node}: judged on {hardware.nodes} "
            f"machines; on one the engine does not start"
        )


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


def with_flags(plan: Plan, engine: EngineName, kept: Kept) -> Plan:
    """The plan with the flags of its servers that an export would not write by itself."""
    target = ENGINE_TARGETS[engine]
    if plan.serving is None or not kept.flags:
        return plan
    read = read_document(plan)
    try:
        written = written_by_itself(layout_from_view(read.view), plan.model.name, target)
    except InputError:  # the rules say what is wrong with it
        written = {}
    finally:
        read.view.release()
    flags = beside(kept, written, target.engine.vocabulary)
    return plan.model_copy(update={"serving": plan.serving.model_copy(update={"flags": flags})})


def _serving(layout: LoadedLayout, deployment: Deployment) -> dict[str, Any]:
    """The settings of the commands that differ from those of a plan that states none."""
    stated, usual = deployment.scheduling, layout.setting
    settings: dict[str, Any] = {}
    tokens, usual_tokens = stated.token_budget, usual.token_budget(layout.phase("prefill").attention_groups)
    if tokens not in (None, usual_tokens):
        settings["prefill_chunk_tokens"] = tokens
    most = min(usual.max_sequences, settings.get("prefill_chunk_tokens", usual.token_budget(1)))
    if stated.max_sequences not in (None, most):
        settings["max_batch"] = stated.max_sequences
    if stated.overlaps:
        settings["overlap"] = "two_batch"
    return settings


def _named_devices(layout: LoadedLayout, deployment: Deployment) -> dict[str, str]:
    """The GPU that the commands name for each GPU of the plan's own placement; empty if they agree."""
    servers = servers_of(layout)
    if len(servers) != len(deployment.devices):
        return {}
    order = ENGINES[deployment.engine].rank_order
    placed = [device for server in servers for device in server.devices(order)]
    named = [device for server in deployment.devices for device in server]
    return dict(zip(placed, named, strict=True)) if placed != named and len(placed) == len(named) else {}
