"""A deployment as the performance model reads it: setting, strategy on devices, layout. No graph is built.

Settings and layouts are kept per deployment, since many rows differ in their load alone.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec.structs import replace

from ..catalog.architecture import Architecture
from ..catalog.config_fields import MAX_POSITIONS
from ..catalog.hardware import HardwareFacts, hardware_facts
from ..errors import InputError
from ..performance.budget import device_terms
from ..performance.capacity import cache_tokens
from ..performance.layout import LoadedLayout, make_layout, make_setting
from ..performance.serving.inputs import requests_in
from ..performance.serving.load import Arrivals, ClosedLoop, Lengths, OpenLoop
from ..plan.document import PolicyBlock, ServingBlock, WorkloadBlock
from .situation import Deployment, Situation, architecture_of

# An open loop has no number of users; memory and batches follow from the rate.
_OPEN_LOOP_CONCURRENCY = 1
# What was measured ran: where the default share of a GPU's memory has no room for one request, it was started with a
# larger one. vLLM refuses gpt-oss-120b on one H100 at 0.90 and starts it at 0.95 (its issue 27508).
_RAISED_SHARES = (0.95, 0.98)


@lru_cache(maxsize=4096)
def _facts(accelerator: str, nodes: int, gpus_per_node: int) -> HardwareFacts:
    return hardware_facts(accelerator, nodes, gpus_per_node)


@lru_cache(maxsize=4096)
def _base(deployment: Deployment) -> LoadedLayout:
    """The layout at a load of one token each way.

    Raises InputError: a fact that the arithmetic needs is not known, or the devices do not suffice.
    """
    architecture = architecture_of(deployment.model)
    if deployment.has_dummy_weights:
        architecture = _with_chosen_experts(architecture)
    setting = make_setting(
        # What was measured ran, scaled or extrapolated positions or not: lengths are the row's, never capped.
        replace(architecture, max_position_embeddings=MAX_POSITIONS),
        _facts(deployment.accelerator, deployment.nodes, deployment.gpus_per_node),
        WorkloadBlock(input_tokens=1, output_tokens=1),
        deployment.precision,
        PolicyBlock(relaxations=deployment.relaxations),
        serving_of(deployment),
    )
    if deployment.engine.streams_at_intervals:
        # Its launch scripts ask for asynchronous scheduling where that is no default yet.
        setting = replace(setting, asks_to_hide_host=True)
    return make_layout(setting, deployment.strategy)


def _with_chosen_experts(architecture: Architecture) -> Architecture:
    """The model as it runs with dummy weights: its router sends every token to the same experts, as if it had no more.

    Measured decode steps of Mixtral-8x7B take as long with 16 sequences as with one (NVIDIA's sizing sweep).
    """
    kinds = {id(layer): layer for layer in architecture.layers}
    for key, layer in kinds.items():
        if layer.moe is not None:
            kinds[key] = replace(layer, moe=replace(layer.moe, experts=layer.moe.top_k))
    return replace(architecture, layers=tuple(kinds[id(layer)] for layer in architecture.layers))


def serving_of(deployment: Deployment) -> ServingBlock:
    """The engine as a plan states it."""
    return ServingBlock(engine=deployment.engine.name, engine_version=deployment.engine.version)


def workload_of(arrivals: Arrivals, lengths: Lengths) -> WorkloadBlock:
    """The load as a plan states it: mean lengths, and how many requests are in flight at most."""
    mean = lengths.mean_share
    match arrivals:
        case ClosedLoop(users=users):
            concurrency = users
        case OpenLoop():
            concurrency = _OPEN_LOOP_CONCURRENCY
        case _:
            concurrency = requests_in(arrivals)
    return WorkloadBlock(
        input_tokens=max(1, round(lengths.input_tokens * mean)),
        output_tokens=max(1, round(lengths.output_tokens * mean)),
        concurrency=concurrency,
    )


def layout_of(situation: Situation) -> LoadedLayout:
    """The layout of a situation, its setting under the situation's load.

    Raises InputError: as for any layout; the reason is fit to be printed.
    """
    base = _base(situation.deployment)
    loaded = base.setting.with_workload(workload_of(situation.arrivals, situation.lengths))
    layout = base.with_setting(loaded)
    for share in _RAISED_SHARES:
        if cache_tokens(layout) >= loaded.request_tokens:
            break
        raised = replace(loaded, memory_utilization=share)
        layout = base.with_setting(raised)
    return layout


def check_weights_fit(layout: LoadedLayout) -> None:
    """Refuse a deployment whose weights alone are more than the memory: it cannot have run as its row states it.

    Raises InputError: they are.
    """
    memory_bytes = layout.setting.hardware.memory_bytes
    weights_bytes = max(
        terms.weights for replica in layout.representatives for terms in device_terms(layout.setting, replica).values()
    )
    if weights_bytes > memory_bytes:
        raise InputError(
            f"the weights take {weights_bytes / 1e9:.0f} GB of a GPU that has {memory_bytes / 1e9:.0f} GB: "
            "precision or layout cannot be as stated"
        )
