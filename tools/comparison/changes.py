"""What differs between two plans: what they were asked, and what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from pydantic import BaseModel

from ..errors import InputError
from ..performance.layout import layout_from_view
from ..plan.canonical import content_hash
from ..plan.document import PHASES, Phase, PhaseStrategy
from ..plan.lengths import Arrivals, RequestLengths
from ..plan.prefixes import SharedPrefixes
from ..plan.reader import ReadDocument
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


_SETTINGS = {
    "max_batch": "requests that a scheduler runs at once",
    "step_tokens": "tokens of a step",
    "memory_utilization": "share of a GPU's memory",
    "overlap": "overlap of two batches",
    "microbatches": "microbatches",
    "kv_offload": "host memory",
}
# What may differ between two engines though nobody stated it.
OF_ENGINES = frozenset(("engine", "engine version", "relaxations"))
ENGINE_DEFAULTS = frozenset((_SETTINGS["max_batch"], _SETTINGS["step_tokens"]))


def questions(a: Side, b: Side) -> Iterator[Change]:
    """Where the two were asked different things."""
    pairs: list[tuple[str, Plain, Plain]] = [
        ("model", a.model, b.model),
        ("accelerator", a.accelerator, b.accelerator),
        ("nodes", a.nodes, b.nodes),
        ("GPUs per node", a.gpus_per_node, b.gpus_per_node),
        ("engine", a.engine, b.engine),
        ("engine version", a.engine_version, b.engine_version),
        ("relaxations", ", ".join(a.relaxations) or None, ", ".join(b.relaxations) or None),
        ("constraints", "; ".join(a.constraints) or None, "; ".join(b.constraints) or None),
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
    """The fields of a block as JSON has them, lengths and arrivals as they are; what a rate has in flight aside."""
    whole = {name: getattr(block, name, None) for name in ("lengths", "prefixes", "arrivals")}
    made = {"concurrency"} if getattr(block, "request_rate", None) is not None else set[str]()
    stated = block.model_dump(mode="json", exclude=made)
    return stated | {name: value for name, value in whole.items() if value is not None}


def _plain(value: Any) -> Plain:
    if isinstance(value, RequestLengths | SharedPrefixes | Arrivals):
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
    settings = (side.settings.model_dump() for side in (a, b))
    one, other = settings
    # Of two engines each has its own where nothing is stated: that is the engine's difference.
    pairs += [(title, one.get(name), other.get(name)) for name, title in _SETTINGS.items()]
    for what, left, right in pairs:
        if left != right:
            yield Change(what=what, a=left, b=right)


def differ_unlisted(first: ReadDocument, second: ReadDocument) -> bool:
    """Whether two plans differ in what no list names: what runs on which GPU, the model's config, links.

    Graphs are compared by what they place, not by how they are written: the vocabulary that an engine splits by itself
    may be shown as split or not.
    """
    plans = first.plan, second.plan
    if plans[0] is None or plans[1] is None:
        return True
    if (plans[0].model.config, plans[0].hardware) != (plans[1].model.config, plans[1].hardware):
        return True
    try:
        layouts = [layout_from_view(read.view) for read in (first, second)]
    except InputError:
        return content_hash(plans[0]) != content_hash(plans[1])
    return layouts[0].replicas != layouts[1].replicas


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
