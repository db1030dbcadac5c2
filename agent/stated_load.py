"""A plan document under a load that was stated beside it, in place of its own."""

from __future__ import annotations

from typing import TypeVar

from ..tools.comparison.side import Document
from ..tools.language.said import Said
from ..tools.plan.document import Plan, ServingBlock, WorkloadBlock
from ..tools.plan.load import without_rate
from ..tools.plan.reader import read_document
from .intent.complete import complete
from .stated_arguments import Arguments, said_of_arguments

_LOAD = (*WorkloadBlock.model_fields, "trace")


D = TypeVar("D", bound=Document)


def under_load(document: D, said: Said) -> D | Plan:
    """The plan of `document` under what is `said` of load and limits; itself where nothing is, or it is no plan.

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
    own = plan.workload
    if said.concurrency is not None and said.request_rate is None:
        own = without_rate(own)
    base = said_of_arguments(plan.model.config, plan.hardware, own, Arguments())
    assert base is not None
    workload = complete(base, Said(**stated)).workload
    return plan.model_copy(update={"workload": workload, "performance": None})
