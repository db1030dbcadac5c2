"""The declaration of a proposal that leaves its graph to the builder, wrong statements included.

It judges nothing: what could not be built is declared all the same, so that the rules name it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...tools.plan.document import PHASES, PhaseStrategy
from ...tools.plan.view import as_mapping


def unassumed(raw: Mapping[str, Any], assumed: Collection[str]) -> Mapping[str, Any]:
    """`raw` without what its reader assumed for the model that it names: the request may be for another one."""
    block = raw.get("strategy")
    if not assumed or not isinstance(block, Mapping):
        return raw
    strategy = {
        name: {key: degree for key, degree in value.items() if key != "tp_ffn"}
        if name in assumed and isinstance(value, Mapping)
        else value
        for name, value in block.items()
    }
    return {**raw, "strategy": strategy}


def as_stated(built: dict[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration of a built document, with stated fields that could not be built, so that the rules name them."""
    declared: dict[str, Any] = {**built}
    undefined = {name for phase in PHASES for name in as_mapping(block.get(phase))} - {*PhaseStrategy.model_fields}
    for name, value in block.items():
        if name == "gpu_count" and undefined:
            continue  # GPUs of a dimension that there is not are no fault of their own
        if name in PHASES and isinstance(value, Mapping):
            declared[name] = {**built[name], **{key: degree for key, degree in value.items() if degree is not None}}
        elif value is not None:
            declared[name] = value
    return declared
