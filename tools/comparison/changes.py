"""What differs between two plans: what they were asked, and what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic import BaseModel

from ..plan.document import PHASES, Phase, PhaseStrategy
from ..plan.lengths import Arrivals, RequestLengths
from .result import BranchShape, Change, Plain, Side

_DEGREES = {
    "replicas": "replicas",
    "pp": "PP",
    "sp": "SP",
    "attention_dp": "attention DP",
    "kv_sp": "KV SP",
    "tp": "TP",
    "tp_ffn": "TP of the FFN",
    "ep": "EP",
    "tp_expert": "TP in experts",
    "sp_kind": "kind of SP",
}


def questions(a: Side, b: Side) -> Iterator[Change]:
    """Where the two were asked different things."""
    pairs: list[tuple[str, Plain, Plain]] = [
        ("model", a.model, b.model),
        ("accelerator", a.accelerator, b.accelerator),
        ("nodes", a.nodes, b.nodes),
        ("GPUs per node", a.gpus_per_node, b.gpus_per_node),
        ("engine", a.engine, b.engine),
        ("relaxations", ", ".join(a.relaxations) or None, ", ".join(b.relaxations) or None),
    ]
    for block in ("workload", "precision"):
        one, other = (_stated(getattr(side, block)) for side in (a, b))
        pairs += [
            (f"{block} {name}", _plain(one.get(name)), _plain(other.get(name)))
            for name in dict.fromkeys((*one, *other))
        ]
    for what, left, right in pairs:
        if left != right:
            yield Change(what=what, a=left, b=right)


def _stated(block: BaseModel) -> dict[str, Any]:
    """The fields of a block as JSON has them, lengths and arrivals as they are."""
    whole = {name: getattr(block, name, None) for name in ("lengths", "arrivals")}
    return block.model_dump(mode="json") | {name: value for name, value in whole.items() if value is not None}


def _plain(value: Any) -> Plain:
    if isinstance(value, RequestLengths | Arrivals):
        return str(value)
    return " to ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else value


def changes(a: Side, b: Side) -> Iterator[Change]:
    """What was decided differently: replicas and GPUs, the degrees of each phase, stages, devices, experts."""
    pairs: list[tuple[str, Plain, Plain]] = [
        ("DP", a.strategy.dp, b.strategy.dp),
        ("GPUs", a.gpus, b.gpus),
    ]
    for phase in PHASES:
        pairs += _phase_pairs(phase, getattr(a.strategy, phase), getattr(b.strategy, phase))
        shapes = [next((shape for shape in side.layout if shape.phase == phase), None) for side in (a, b)]
        for what, name in (
            ("stages", "stages"),
            ("layers of each stage", "layers_per_stage"),
            ("GPUs of each stage", "gpus_per_stage"),
            ("experts on a GPU", "experts_per_gpu"),
        ):
            left, right = (_shape_value(shape, name) for shape in shapes)
            pairs.append((f"{phase}: {what}", left, right))
    for what, left, right in pairs:
        if left != right:
            yield Change(what=what, a=left, b=right)


def _phase_pairs(phase: Phase, a: PhaseStrategy, b: PhaseStrategy) -> list[tuple[str, Plain, Plain]]:
    found: list[tuple[str, Plain, Plain]] = []
    for name, title in _DEGREES.items():
        # A degree of a relaxation that is not stated is 1; replicas and kinds that are not stated are none.
        absent = None if name in ("replicas", "sp_kind") else 1
        left, right = (getattr(one, name) for one in (a, b))
        found.append((f"{phase}: {title}", absent if left is None else left, absent if right is None else right))
    return found


def _shape_value(shape: BranchShape | None, name: str) -> Plain:
    if shape is None:
        return None
    if name == "stages":
        return len(shape.layers_per_stage)
    value: int | tuple[int, ...] = getattr(shape, name)
    if isinstance(value, int):
        return value
    return value[0] if len(set(value)) == 1 else "/".join(map(str, value))
