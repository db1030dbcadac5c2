"""What of a document's header (all but nodes and edges) differs from what it should say, field by field.

A field that is left out says its default; a block that the format reads as the wanted one is as it should be however
it is written. The words of `reasoning` are the author's, and `performance` is a claim: rules judge both, not this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from ..plan.document import (
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
from ..rules.edits import Change
from .fields import ABSENT, same

_BLOCKS: Mapping[str, type[BaseModel]] = {
    "model": ModelBlock,
    "hardware": HardwareBlock,
    "workload": WorkloadBlock,
    "precision": PrecisionBlock,
    "policy": PolicyBlock,
    "strategy": Strategy,
    "serving": ServingBlock,
}
_PHASES = frozenset({"prefill", "decode"})
_OPTIONAL = frozenset({"policy", "serving"})


def header_differences(raw: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    """The changes that make the header of `raw` say what `wanted` does."""
    for name in raw:
        if name not in Plan.model_fields:
            yield Change("remove", (name,))
    for name in ("format", "version"):
        if not same(raw.get(name), wanted[name]):
            yield Change("set", (name,), wanted[name])
    for name, model in _BLOCKS.items():
        yield from _block_differences((name,), raw.get(name, ABSENT), wanted.get(name), model)
    if not same(raw.get("construction", ABSENT), wanted["construction"]):
        yield Change("set", ("construction",), wanted["construction"])
    if "reasoning" in raw and not _reads(tuple[ReasoningStep, ...], raw["reasoning"]):
        yield Change("set", ("reasoning",), wanted["reasoning"])
    if raw.get("performance") is not None and not _reads(PerformanceClaim, raw["performance"]):
        yield Change("remove", ("performance",))


def _block_differences(
    path: tuple[str, ...], stated: Any, wanted: Mapping[str, Any] | None, model: type[BaseModel]
) -> Iterator[Change]:
    if wanted is None:
        if stated is not ABSENT and stated is not None:
            yield Change("remove", path)
        return
    meant = model.model_validate(wanted)
    if stated is ABSENT and path[0] in _OPTIONAL and meant == model():
        return
    if not isinstance(stated, dict):
        yield Change("set", path, dict(wanted))
        return
    if _read(model, stated) == meant:
        return
    yield from _field_differences(path, dict[str, Any](stated), wanted, model)  # pyright: ignore[reportUnknownArgumentType] - raw JSON


def _field_differences(
    path: tuple[str, ...], stated: Mapping[str, Any], wanted: Mapping[str, Any], model: type[BaseModel]
) -> Iterator[Change]:
    for name in stated:
        if name not in model.model_fields:
            yield Change("remove", (*path, name))
    for name, field in model.model_fields.items():
        value = wanted.get(name, ABSENT)
        own = stated.get(name, ABSENT)
        if path == ("strategy",) and name in _PHASES:
            yield from _block_differences((*path, name), own, value, PhaseStrategy)
        elif value is ABSENT or value is None:
            if own is not ABSENT and own is not None:
                yield Change("remove", (*path, name))
        elif not same(own, value) and not (own is ABSENT and same(value, _plain(field.get_default()))):
            yield Change("set", (*path, name), value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a default


def _reads(model: Any, value: Any) -> bool:
    try:
        TypeAdapter(model).validate_python(value)
    except ValidationError:
        return False
    return True


def _read(model: type[BaseModel], value: Any) -> BaseModel | None:
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
