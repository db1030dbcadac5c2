"""What commands start, under what is stated beside them, as the builder of plans takes it."""

from __future__ import annotations

from ...tools.catalog.architecture import Architecture
from ...tools.engines.defaults import engine_relaxations
from ...tools.importing.deployment import Deployment
from ...tools.importing.launch import Launch
from ...tools.plan.builder import BuildRequest
from ...tools.plan.document import HardwareBlock, ServingBlock
from ...tools.plan.elements import as_mapping
from ...tools.plan.kv_offload import KVOffload
from ..intent.intent import Intent
from ..stated.search_request import hardware_block

_USUAL_NODE = 8


def request_of(intent: Intent, launch: Launch, deployment: Deployment, architecture: Architecture) -> BuildRequest:
    """The deployment under the intent, as the builder of plans takes it."""
    hardware = _hardware(intent, deployment)
    brought = engine_relaxations(launch.engine, architecture)
    policy = intent.policy
    exported = as_mapping(launch.planned.get("policy")).get("relaxations")
    if exported is not None:
        # The policy of an export is known: it need not name what the engine brings.
        relaxations = {*exported, *(name for name in deployment.relaxations if name not in brought)}
        policy = policy.model_copy(update={"relaxations": tuple(sorted(relaxations))})
    else:
        policy = policy.model_copy(
            update={"relaxations": tuple(sorted({*policy.relaxations, *deployment.relaxations}))}
        )
    serving = ServingBlock(
        engine=launch.engine,
        engine_version=None if launch.planned else launch.version,
        kv_offload=_kv_offload(intent, deployment),
    )
    return BuildRequest(
        model=intent.model.block,
        hardware=hardware,
        workload=intent.workload,
        precision=intent.precision,
        strategy=deployment.strategy,
        policy=policy,
        serving=serving,
        redundant_experts=deployment.redundant_experts,
    )


def _kv_offload(intent: Intent, deployment: Deployment) -> KVOffload | None:
    """Host memory as the commands state it, over the link that the intent states; the intent's if they state none."""
    intended = None if intent.serving is None else intent.serving.kv_offload
    stated = deployment.scheduling.kv_offload
    if intended is None or stated is None:
        return stated or intended
    return stated.model_copy(update={"host_bw_gb_s": intended.host_bw_gb_s})


def _hardware(intent: Intent, deployment: Deployment) -> HardwareBlock:
    """The stated cluster; if its number of nodes is open, as many as the strategy uses."""
    assert intent.hardware is not None  # an accelerator was said
    used, size = deployment.strategy.gpu_count, intent.hardware.gpus_per_node or _USUAL_NODE
    return hardware_block(intent.hardware, intent.hardware.nodes or -(-used // size))
