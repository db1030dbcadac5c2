"""Reads the setting of a plan out of its view: model, hardware, workload, precision and policy.

A fault that makes the arithmetic impossible is an `InputError` that names it; what a rule can judge is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from ..catalog.hardware import hardware_facts
from ..errors import InputError
from ..plan.document import HardwareBlock, PolicyBlock, PrecisionBlock, Relaxation, ServingBlock, WorkloadBlock
from ..plan.view import PlanView
from .setting import Setting, make_setting

Block = TypeVar("Block", bound=BaseModel)
_KNOWN_RELAXATIONS: frozenset[str] = frozenset(get_args(Relaxation))


def read_block(model: type[Block], raw: Mapping[str, Any], where: str) -> Block:
    """`raw` as `model`; unknown fields and unreadable optional ones are left out (rule ST001 reports them).

    Raises:
        InputError: a required field is missing or unreadable.
    """
    kept = {name: value for name, value in raw.items() if name in model.model_fields}
    for _ in range(len(kept) + 1):
        try:
            return model.model_validate(kept)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else ""
            if name not in kept or model.model_fields[name].is_required():
                raise InputError(f"{where}.{name}: {first['msg']}") from None
            del kept[name]
    raise InputError(f"{where} cannot be read")


def read_setting(view: PlanView) -> Setting:
    """Model, hardware, workload, precision and policy of a plan.

    Raises:
        InputError: what cannot be read, by name.
    """
    if view.architecture is None:
        raise InputError(view.architecture_error or "model.config cannot be read")
    block = read_block(HardwareBlock, view.hardware, "hardware")
    hardware = hardware_facts(
        block.accelerator,
        block.nodes,
        block.gpus_per_node,
        intra_node_bw_gb_s=block.intra_node_bw_gb_s,
        inter_node_bw_gb_s=block.inter_node_bw_gb_s,
    )
    known = {**view.policy, "relaxations": sorted(view.relaxations & _KNOWN_RELAXATIONS)}
    return make_setting(
        view.architecture,
        hardware,
        read_block(WorkloadBlock, view.workload, "workload"),
        read_block(PrecisionBlock, view.precision, "precision"),
        read_block(PolicyBlock, known, "policy"),
        read_block(ServingBlock, view.serving, "serving"),
    )
