"""The search that answers an `Intent` on hardware."""

from __future__ import annotations

from math import ceil

from msgspec.structs import replace

from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.architecture import Architecture
from ...tools.catalog.config import read_architecture
from ...tools.catalog.hardware import find_accelerator
from ...tools.engines.names import JUDGED
from ...tools.errors import InputError
from ...tools.performance.layout import facts_of
from ...tools.plan.builder import BuildRequest
from ...tools.plan.document import HardwareBlock, ModelBlock, Strategy
from ...tools.search.candidate import SearchRequest
from ...tools.search.reach import resized
from ..intent.formats import formats_on
from ..intent.intent import HardwareChoice, Intent, ModelChoice


def architecture_of(model: ModelChoice | ModelBlock) -> Architecture:
    """The architecture of a request's or a plan's model, by its config.

    Raises:
        InputError: the config cannot be read.
    """
    return read_architecture(model.config, where=f"config of {model.name}")


def accelerator_of(choice: HardwareChoice) -> Accelerator:
    """The accelerator of a hardware choice, looked up where it is a name."""
    return choice.accelerator if isinstance(choice.accelerator, Accelerator) else find_accelerator(choice.accelerator)


def hardware_block(choice: HardwareChoice, nodes: int) -> HardwareBlock:
    """The hardware block of a plan on `nodes` nodes of the chosen hardware."""
    return HardwareBlock(
        accelerator=choice.accelerator,
        nodes=nodes,
        gpus_per_node=choice.gpus_per_node,
        intra_node_bw_gb_s=choice.intra_node_bw_gb_s,
        inter_node_bw_gb_s=choice.inter_node_bw_gb_s,
    )


def search_request(intent: Intent, architecture: Architecture, hardware: HardwareBlock) -> SearchRequest:
    """The search that answers `intent` on `hardware`.

    Raises:
        InputError: phases apart are asked of a release whose servers cannot hand caches over.
    """
    accelerator = hardware.accelerator
    if not isinstance(accelerator, Accelerator):
        accelerator = find_accelerator(accelerator)
    # Where no hardware was named, the formats were assumed for none.
    precision, precisions = intent.precision.on(accelerator), ()
    if intent.precisions is not None:
        formats = formats_on(intent.precisions, architecture.native_precision, accelerator)
        precision, precisions = formats[0], formats if len(formats) > 1 else ()
    request = SearchRequest(
        architecture=architecture,
        hardware=hardware,
        facts=facts_of(hardware, accelerator),
        workload=intent.workload,
        precision=precision,
        precisions=precisions,
        policy=intent.policy,
        serving=intent.serving,
        assumed_engine=intent.assumed_engine,
        concurrency_open=intent.concurrency_open,
        disaggregated=intent.disaggregated,
        calibration=intent.calibration,
    )
    if request.disaggregated and not request.can_hand_over and request.named_engine is not None:
        engine = JUDGED[request.named_engine]
        flag = engine.vocabulary.flag("transfer")
        raise InputError(
            f"prefill and decode apart: {engine.title} {intent.serving and intent.serving.engine_version} has no {flag}"
            f"{engine.vocabulary.releases(flag.lstrip('-'))}; name a later release, or leave the phases together"
        )
    return request


def with_concurrency(request: SearchRequest, concurrency: int) -> SearchRequest:
    """The request with its concurrency decided."""
    workload = request.workload.model_copy(update={"concurrency": concurrency})
    return replace(request, workload=workload, concurrency_open=False)


def build_request(model: ModelBlock, request: SearchRequest, strategy: Strategy) -> BuildRequest:
    """What the builder makes the plan of `strategy` of, as an answer to `request`."""
    return BuildRequest(
        model=model,
        hardware=request.hardware,
        workload=request.workload,
        precision=request.precision,
        strategy=strategy,
        policy=request.policy,
        serving=request.serving,
    )


def open_node(intent: Intent, request: SearchRequest) -> int | None:
    """GPUs of a usual node of the request's accelerator if the number of GPUs was left open; else `None`."""
    is_open = intent.hardware is None or intent.hardware.nodes is None
    return request.facts.accelerator.typical_node_accelerators if is_open else None


def with_room_for(gpus: int, request: SearchRequest, usual_node: int) -> SearchRequest:
    """The request on at least so many GPUs, in nodes of the usual size if it has fewer."""
    if gpus <= request.facts.gpus:
        return request
    return resized(request, ceil(gpus / usual_node), min(gpus, usual_node))
