"""What commands start under what was said, as the builder of plans takes it."""

from __future__ import annotations

from ..tools.catalog.architecture import Architecture
from ..tools.engines.defaults import engine_relaxations
from ..tools.importing.deployment import Deployment
from ..tools.importing.launch import Launch
from ..tools.plan.builder import BuildRequest
from ..tools.plan.document import HardwareBlock, ServingBlock
from ..tools.plan.elements import as_mapping
from ..tools.plan.kv_offload import KVOffload
from .intent.intent import Intent
from .search_request import hardware_block

_USUAL_NODE = 8


def request_of(intent: Intent, launch: Launch, deployment: Deployment, architecture: Architecture) -> BuildRequest:
    """All that is known, as the plan's builder takes it."""
    hardware = _hardware(intent, deployment)
    brought = engine_relaxations(launch.engine, architecture)
    policy = intent.policy
    own = as_mapping(launch.planned.get("policy")).get("relaxations")
    if own is not None:
        # Of an export the policy is known: what the engine brings need not be named in it.
        kept = {*own, *(name for name in deployment.relaxations if name not in brought)}
        policy = policy.model_copy(update={"relaxations": tuple(sorted(kept))})
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
    """Memory of the host as the commands state it, over the link that is said; what is said where they state none."""
    said = None if intent.serving is None else intent.serving.kv_offload
    stated = deployment.scheduling.kv_offload
    if said is None or stated is None:
        return stated or said
    return stated.model_copy(update={"host_bw_gb_s": said.host_bw_gb_s})


def _hardware(intent: Intent, deployment: Deployment) -> HardwareBlock:
    """The cluster that was said; of one without a number of nodes as many as are used."""
    assert intent.hardware is not None  # an accelerator was said
    used, size = deployment.strategy.gpu_count, intent.hardware.gpus_per_node or _USUAL_NODE
    return hardware_block(intent.hardware, intent.hardware.nodes or -(-used // size))
