"""The changes that turn the header of a document into the wanted one, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from ..plan.document import (
    PHASES,
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    Plan,
    PolicyBlock,
    PrecisionBlock,
    ReasoningStep,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.performance import PerformanceClaim
from ..rules.findings import Change, same

# Stands for a field that is absent.
ABSENT: Any = object()
_BLOCKS: Mapping[str, type[BaseModel]] = {
    "model": ModelBlock,
    "hardware": HardwareBlock,
    "workload": WorkloadBlock,
    "precision": PrecisionBlock,
    "policy": PolicyBlock,
    "strategy": Strategy,
    "serving": ServingBlock,
}
# What the author demands is never taken back: a target has no more of it than could be read.
_DEMANDED = frozenset({"constraints"})
_OPTIONAL = frozenset({"policy", "serving"})


def header_differences(raw: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    """The changes that make the header of `raw` state what `wanted` does."""
    for name in raw:
        if name not in Plan.model_fields and not (name in _DEMANDED and raw[name]):
            yield Change("remove", (name,))
    for name in ("format", "version"):
        if not same(raw.get(name), wanted[name]):
            yield Change("set", (name,), wanted[name])
    for name, model in _BLOCKS.items():
        yield from _block_differences((name,), raw.get(name, ABSENT), wanted.get(name), model)
    if not same(raw.get("construction", ABSENT), wanted["construction"]):
        yield Change("set", ("construction",), wanted["construction"])
    if "reasoning" in raw and _read(tuple[ReasoningStep, ...], raw["reasoning"]) is None:
        yield Change("set", ("reasoning",), wanted["reasoning"])
    if raw.get("performance") is not None and _read(PerformanceClaim, raw["performance"]) is None:
        yield Change("remove", ("performance",))


def kept_blocks(raw: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The header `wanted`, with blocks that mean the same written as in `raw`."""
    header = dict(wanted)
    for name, model in _BLOCKS.items():
        stated = _read(model, raw.get(name))
        if stated is not None and stated == _read(model, wanted.get(name)):
            header[name] = raw[name]
    return header


def _block_differences(
    path: tuple[str, ...], stated: Any, wanted: Mapping[str, Any] | None, model: type[BaseModel]
) -> Iterator[Change]:
    """The changes that turn the block `stated` at `path` into `wanted`."""
    if wanted is None:
        if stated is not ABSENT and stated is not None:
            yield Change("remove", path)
        return
    meant = model.model_validate(wanted)
    if _read(model, stated) == meant or (stated is ABSENT and path[0] in _OPTIONAL and meant == model()):
        return
    if not isinstance(stated, dict):
        yield Change("set", path, dict(wanted))
        return
    fields = dict[str, Any](stated)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
    yield from (Change("remove", (*path, name)) for name in fields if name not in model.model_fields)
    for name, field in model.model_fields.items():
        value, current = wanted.get(name), fields.get(name, ABSENT)
        if name in _DEMANDED and current:
            continue
        if path == ("strategy",) and name in PHASES:
            yield from _block_differences((*path, name), current, value, PhaseStrategy)
        elif value is None:
            if current is not ABSENT and current is not None:
                yield Change("remove", (*path, name))
        elif not same(current, value) and not (current is ABSENT and same(value, field.get_default())):
            yield Change("set", (*path, name), value)


def _read(model: Any, value: Any) -> Any:
    """`value` as the format reads it; `None` if it is invalid."""
    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError:
        return None
