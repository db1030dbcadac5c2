"""A plan under a load, or on hardware, that is stated beside it and replaces its own."""

from __future__ import annotations

from typing import TypeVar

from ...tools.comparison.side import Document
from ...tools.language.said import Said
from ...tools.plan.document import Plan, ServingBlock, WorkloadBlock
from ...tools.plan.load import without_rate
from ...tools.plan.reader import read_document
from ..intent.complete import complete
from .arguments import Arguments, said_of_arguments
from .search_request import hardware_block

_LOAD = (*WorkloadBlock.model_fields, "trace")
# Fields of `Said` that a plan takes in place of its own, and those that say hardware.
OF_LOAD = (*_LOAD, "kv_offload", "usd_per_gpu_hour")
HARDWARE_FIELDS = (
    "accelerator", "accelerator_object", "nodes", "gpus_per_node", "gpus", "intra_node_bw_gb_s", "inter_node_bw_gb_s",
)  # fmt: skip


D = TypeVar("D", bound=Document)


def under_load(document: D, said: Said) -> D | Plan:
    """The plan of `document` under the load and limits that are `said`; itself if none are, or it is no plan.

    A stated number of requests at once takes the place of the plan's rate.

    Raises:
        InputError: the load agrees with neither the model nor itself, or the model's config cannot be read.
    """
    stated = {name: value for name in _LOAD if (value := getattr(said, name)) is not None}
    plan = read_document(document).plan if stated or said.kv_offload is not None else None
    if plan is None:
        return document
    if said.kv_offload is not None:
        serving = (plan.serving or ServingBlock()).model_copy(update={"kv_offload": said.kv_offload})
        plan = plan.model_copy(update={"serving": serving, "performance": None})
    if not stated:
        return plan
    plan_load = plan.workload
    if said.concurrency is not None and said.request_rate is None:
        plan_load = without_rate(plan_load)
    base = said_of_arguments(plan.model.config, plan.hardware, plan_load, Arguments())
    assert base is not None
    workload = complete(base, Said(**stated)).workload
    return plan.model_copy(update={"workload": workload, "performance": None})


def on_hardware(plan: Plan, said: Said) -> Plan:
    """The plan on the hardware that is `said`, for a strategy to be placed on; unchanged if none is.

    If the number of nodes is open, it stays as before.

    Raises:
        InputError: the hardware cannot be read.
    """
    stated = {name: value for name in HARDWARE_FIELDS if (value := getattr(said, name)) is not None}
    if not stated:
        return plan
    base = said_of_arguments(plan.model.config, None, plan.workload, Arguments())
    assert base is not None
    choice = complete(base.model_copy(update=stated)).hardware
    assert choice is not None
    hardware = hardware_block(choice, choice.nodes or plan.hardware.nodes)
    return plan.model_copy(update={"hardware": hardware, "performance": None})
