"""What an author says beside the strategy: model, hardware, load, number formats, policy, serving.

What the document leaves out is taken from the defaults that came with it, else from the model catalogue or from what
the graph shows, and noted; what is nowhere to be read is listed as missing, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel

from ..catalog.architecture import Architecture
from ..catalog.config import read_architecture
from ..catalog.dtypes import DType
from ..catalog.hardware import find_accelerator
from ..catalog.models import find_model
from ..errors import InputError, ShardwrightError
from ..performance.setting_reading import read_block
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    Relaxation,
    ServingBlock,
    WorkloadBlock,
)
from ..plan.schema import shown
from ..plan.view import PlanView, as_int, as_mapping, as_str, parse_device
from .intent_notes import Notes

_Block = TypeVar("_Block", bound=BaseModel)
_UNNAMED = "unnamed model"


@dataclass(frozen=True, slots=True)
class PlanDefaults:
    """What was asked for: taken for what a document leaves out, and for nothing else."""

    model: ModelBlock | None = None
    hardware: HardwareBlock | None = None
    workload: WorkloadBlock | None = None
    precision: PrecisionBlock | None = None


def read_model(
    view: PlanView, default: ModelBlock | None, notes: Notes
) -> tuple[ModelBlock | None, Architecture | None]:
    """The model with its architecture; fields that its config lacks are the catalogue's, where that knows the name."""
    name, config = as_str(view.model.get("name")), dict(as_mapping(view.model.get("config")))
    if name is None and not config:
        if default is None:
            notes.lack("model")
            return None, None
        notes.say("model", default.name, "the request")
        name, config = default.name, default.config
    if config and view.architecture is not None and config == as_mapping(view.model.get("config")):
        return ModelBlock(name=(name or _UNNAMED)[:500] or _UNNAMED, config=config), view.architecture
    whole, error = _readable(name, config, notes)
    if whole is None:
        notes.lack(f"model.config ({error})")
        return None, None
    return ModelBlock(name=(name or _UNNAMED)[:500] or _UNNAMED, config=whole[0]), whole[1]


def _readable(
    name: str | None, config: dict[str, Any], notes: Notes
) -> tuple[tuple[dict[str, Any], Architecture] | None, str]:
    """A config that can be read: the stated one, else with what it lacks from the catalogue; or why there is none."""
    error = "the document states none"
    if config:
        try:
            return (config, read_architecture(config, where="model.config")), ""
        except ShardwrightError as refusal:
            error = str(refusal)
    if name is None:
        return None, error
    try:
        entry = find_model(name)
        merged = {**entry.config, **config}
        architecture = read_architecture(merged, where="model.config")
    except ShardwrightError as refusal:
        return None, f"{error}; {refusal}" if not isinstance(refusal, InputError) or config else str(refusal)
    notes.say("model.config", entry.name, "the model catalogue" if not config else "the document and the catalogue")
    return (merged, architecture), ""


def read_hardware(view: PlanView, default: HardwareBlock | None, gpus: int, notes: Notes) -> HardwareBlock | None:
    """The hardware; where its size is not stated, what the graph names, else what `gpus` devices need."""
    raw = _merged(view.hardware, default, "hardware", notes)
    accelerator = raw.get("accelerator")
    if accelerator is None:
        notes.lack("hardware.accelerator")
        return None
    node = 8
    if isinstance(accelerator, str):
        try:
            node = find_accelerator(accelerator).typical_node_accelerators or node
        except InputError as error:
            notes.lack(f"hardware.accelerator ({error})")
            return None
    if as_int(raw.get("gpus_per_node")) is None or as_int(raw.get("nodes")) is None:
        nodes, per_node = _size(view, as_int(raw.get("gpus_per_node")), node, gpus)
        raw["nodes"] = raw.get("nodes") if as_int(raw.get("nodes")) is not None else nodes
        raw["gpus_per_node"] = per_node
        notes.say("hardware", f"{raw['nodes']} x {per_node}", "the devices that the graph names, or the strategy needs")
    return _block(HardwareBlock, raw, "hardware", notes)


def _size(view: PlanView, stated_per_node: int | None, usual: int, gpus: int) -> tuple[int, int]:
    """Nodes and GPUs in each: what holds every device that the graph names and `gpus` in all."""
    places = [place for place in map(parse_device, view.devices) if place is not None]
    named_nodes = 1 + max((node for node, _ in places), default=0)
    named_gpus = 1 + max((gpu for _, gpu in places), default=0)
    per_node = stated_per_node or (min(usual, gpus) if named_nodes == 1 and named_gpus <= gpus <= usual else usual)
    per_node = max(per_node, named_gpus) if stated_per_node is None else per_node
    return max(named_nodes, -(-gpus // max(1, per_node))), per_node


def read_workload(view: PlanView, default: WorkloadBlock | None, notes: Notes) -> WorkloadBlock | None:
    """The load."""
    return _block(WorkloadBlock, _merged(view.workload, default, "workload", notes), "workload", notes)


def read_precision(
    view: PlanView,
    default: PrecisionBlock | None,
    architecture: Architecture,
    hardware: HardwareBlock | None,
    notes: Notes,
) -> PrecisionBlock | None:
    """The number formats; the checkpoint's own for weights, and 16 bits else, where nothing is said."""
    raw = _merged(view.precision, default, "precision", notes)
    part = None if hardware is None else hardware.accelerator
    part = find_accelerator(part) if isinstance(part, str) else part
    sixteen: DType = "bf16" if part is None else part.computes_in("bf16")
    if raw.get("weights") is None:
        own = architecture.native_precision
        raw["weights"] = own if own != "bf16" else sixteen
        notes.say("precision.weights", raw["weights"], "the checkpoint's own format")
    for name in ("kv_cache", "activations"):
        if raw.get(name) is None:
            raw[name] = "fp16" if raw["weights"] == "fp16" else sixteen
            notes.say(f"precision.{name}", raw[name], "16 bits, as nothing else is said")
    return _block(PrecisionBlock, raw, "precision", notes)


def read_policy(view: PlanView) -> PolicyBlock:
    """The policy, with the relaxations that exist; none is ever added."""
    known = [name for name in get_args(Relaxation) if name in view.relaxations]
    return read_block(PolicyBlock, {**view.policy, "relaxations": known}, "policy")


def read_serving(view: PlanView) -> ServingBlock | None:
    """How an engine is to run the plan, where that is said."""
    return read_block(ServingBlock, view.serving, "serving") if view.serving else None


def _merged(raw: Mapping[str, Any], default: BaseModel | None, where: str, notes: Notes) -> dict[str, Any]:
    """The document's fields, and the default's where it has none."""
    stated = {name: value for name, value in raw.items() if value is not None}
    if default is None:
        return stated
    asked: dict[str, Any] = default.model_dump(mode="json", exclude_defaults=True)
    for name, value in asked.items():
        if name not in stated:
            notes.say(f"{where}.{name}", value, "the request")
    return {**asked, **stated}


def _block(model: type[_Block], raw: Mapping[str, Any], where: str, notes: Notes) -> _Block | None:
    try:
        return read_block(model, raw, where)
    except InputError as error:
        field, _, problem = f"{error}".partition(": ")
        given = raw.get(field.partition(".")[2])
        notes.lack(field if given is None else f"{field} ({shown(given)}: {problem})")
        return None
