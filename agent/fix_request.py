"""What was asked for, in words, as the defaults of a repair: taken for what a proposal leaves out, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tools.autofix.intent import PlanDefaults
from ..tools.errors import InputError
from ..tools.plan.document import HardwareBlock, ModelBlock
from ..tools.plan.view import as_mapping, as_str
from .intent.complete import complete
from .intent.intent import HardwareChoice, Said
from .intent.request import read_words


def plan_defaults(request: str, document: Mapping[str, Any] | None) -> PlanDefaults:
    """The model, hardware, load and number formats that `request` asks for; `document` may name the model instead.

    Raises:
        InputError: neither names a model, or the request cannot be (an unknown name, an impossible figure).
    """
    said = read_words(request)
    if said.model is None and said.model_config_object is None:
        said = said.model_copy(update=_model_of(document or {}))
    intent = complete(said)
    return PlanDefaults(
        model=ModelBlock(name=intent.model.name, config=intent.model.config),
        hardware=None if intent.hardware is None else _hardware(intent.hardware),
        workload=intent.workload,
        precision=intent.precision if _states_precision(said) else None,
    )


def _states_precision(said: Said) -> bool:
    return any((said.weights, said.kv_cache, said.activations))


def _model_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The model of a document as a field of what was said."""
    block = as_mapping(document.get("model"))
    config = as_mapping(block.get("config"))
    if config:
        return {"model_config_object": dict(config)}
    return {"model": as_str(block.get("name"))}


def _hardware(choice: HardwareChoice) -> HardwareBlock:
    if choice.nodes is None:
        raise InputError("the request names an accelerator and not how many: say so ('8 H100', '2x8 H200')")
    return HardwareBlock(
        accelerator=choice.accelerator,
        nodes=choice.nodes,
        gpus_per_node=choice.gpus_per_node,
        intra_node_bw_gb_s=choice.intra_node_bw_gb_s,
        inter_node_bw_gb_s=choice.inter_node_bw_gb_s,
    )
