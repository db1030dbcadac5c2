"""The input of a turn beside its words: fields of the request that are set or opened again, or a plan document."""

from __future__ import annotations

from typing import Any

from ...tools.catalog.models import find_model
from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.language.said import Said, StatedDegrees, StatedStrategy
from ...tools.plan.document import TWO_BATCH, Plan, Strategy
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ..stated.arguments import Arguments, said_of_arguments

# One field of a form sets several fields of a request, and replaces what was stated of them.
_COUNTS = ("nodes", "gpus_per_node", "gpus", "gpus_of_kinds", "gpus_open")
_LENGTHS = ("lengths", "trace")
_FIELDS: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_config_object"),
    "hardware": ("accelerator", "accelerator_object", *_COUNTS, "intra_node_bw_gb_s", "inter_node_bw_gb_s"),
    "input_tokens": ("input_tokens", "input_tokens_range", *_LENGTHS),
    "output_tokens": ("output_tokens", "output_tokens_range", *_LENGTHS),
    **{limit.figure: (limit.field,) for limit in LATENCY_LIMITS},
    "precision": ("precisions",),
    "engine": ("engine", "engine_version"),
}
# Fields that are opened again along with a field of a form, and stay when that is set to another value.
_BESIDES: dict[str, tuple[str, ...]] = {
    **{limit.figure: (limit.statistic,) for limit in LATENCY_LIMITS},
    "precision": ("weights", "kv_cache", "activations"),
}
_DEGREES = ("tp", "tp_ffn", "pp", "ep", "sp", "attention_dp", "replicas")


class Given(Frozen):
    """What holds from this turn on: `plan` as it stands; or `said`, in place of the request's fields in `dropped`.

    `begins`: nothing that was said before holds.
    """

    said: Said = Said()
    dropped: tuple[str, ...] = ()
    plan: Plan | None = None
    begins: bool = False


def fields_of(name: str, *, is_open: bool) -> tuple[str, ...]:
    """The fields of a request that the field `name` of a form sets, or leaves open again."""
    return (*_FIELDS.get(name, (name,)), *(_BESIDES.get(name, ()) if is_open else ()))


def stated_strategy(strategy: Strategy) -> StatedStrategy:
    """The degrees of `strategy`, as a person states them."""
    prefill, decode = (
        StatedDegrees(**{degree: getattr(phase, degree) for degree in _DEGREES})
        for phase in (strategy.prefill, strategy.decode)
    )
    return StatedStrategy(dp=strategy.dp if prefill.replicas is None else None, prefill=prefill, decode=decode)


def said_of_plan(plan: Plan, *, keeps_strategy: bool) -> Said:
    """The request behind `plan`, as a person states it; with its strategy if `keeps_strategy`.

    Raises:
        InputError: it holds what no request can state.
    """
    asked = plan.model_dump(mode="json", include={"hardware", "precision"}, exclude_none=True)
    policy = plan.policy.model_dump(mode="json", exclude_none=True)
    stated: dict[str, Any] = {**policy, "precision": asked["precision"]}
    if plan.serving is not None:
        stated["serving"] = plan.serving
    said = said_of_arguments(_model_of(plan), asked["hardware"], plan.workload, Arguments(**stated)) or Said()
    more: dict[str, Any] = {}
    if plan.serving is not None:
        more = plan.serving.model_dump(include={"max_batch", "prefill_chunk_tokens"})
        more["overlap"] = "two_batch" if plan.serving.overlap in TWO_BATCH else None
    if keeps_strategy:
        is_apart = True if plan.strategy.prefill.replicas is not None else None
        more |= {"strategy": stated_strategy(plan.strategy), "disaggregated": is_apart}
    return said.model_copy(update=more)


def _model_of(plan: Plan) -> str | dict[str, Any]:
    """The model by the name under which its very config is known, else by its config."""
    try:
        if dict(find_model(plan.model.name).config) == plan.model.config:
            return plan.model.name
    except InputError:
        pass
    return {**plan.model.config, "_name_or_path": plan.model.name}
