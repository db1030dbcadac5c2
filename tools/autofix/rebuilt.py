"""The document of a chosen strategy: the builder's graph with all that can stay the author's.

Ids, device order, expert placement, runs of layers and header blocks are the author's wherever the new degrees leave
room for them. What comes out has been checked by every rule, and may have failed: the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Any

from pydantic import BaseModel, ValidationError

from ..errors import InputError
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.view import PlanView
from ..validate import ValidationReport, validate
from .intent import PlanIntent, build_request, layout_like
from .reference import reference_for
from .target import Fields, Target, target_of

_BLOCKS: Mapping[str, type[BaseModel]] = {
    "model": ModelBlock,
    "hardware": HardwareBlock,
    "workload": WorkloadBlock,
    "precision": PrecisionBlock,
    "policy": PolicyBlock,
    "serving": ServingBlock,
}


def built_plan(
    intent: PlanIntent, view: PlanView, strategy: Strategy
) -> tuple[dict[str, Any], ValidationReport, int] | None:
    """The plan of `strategy` with all that can stay the author's, its report, and how many nodes keep their ids.

    `None` where it cannot be built.
    """
    layout = layout_like(intent, strategy, _filled(intent, strategy))
    request = None if layout is None else build_request(intent, strategy, layout)
    if request is None or intent.architecture is None:
        return None
    try:
        reference = reference_for(view, request, intent.architecture)
    except InputError:
        return None
    target = target_of(view, reference)
    document = _document(view, target, target.nodes)
    report = validate(document)
    if not report.valid:
        # What the author decided inside operators may not go with the new degrees: the builder's way does.
        usual = {
            name: {**node.raw, "id": name, "parent": target.nodes[name]["parent"]}
            for name, node in zip(target.nodes, reference.view.nodes, strict=True)
        }
        other = _document(view, target, usual)
        checked = validate(other)
        if checked.valid:
            document, report = other, checked
    return document, report, len(target.own)


def _filled(intent: PlanIntent, strategy: Strategy) -> int:
    """Redundant experts: the author's, and as many more as make all groups of the new degrees alike (rule EN003)."""
    experts = 0 if intent.architecture is None else intent.architecture.num_experts
    if not intent.redundant_experts or not experts:
        return 0
    groups = lcm(strategy.prefill.ep, strategy.decode.ep)
    return -(-(experts + intent.redundant_experts) // groups) * groups - experts


def _document(view: PlanView, target: Target, nodes: Mapping[str, Fields]) -> dict[str, Any]:
    shown = [dict(view.by_id[name].raw) for name in sorted(target.shown)]
    edges = [dict(edge) for edge in target.edges.values()]
    header = {**target.header, **_own_blocks(view, target.header)}
    return {**header, "nodes": [*map(dict, nodes.values()), *shown], "edges": edges}


def _own_blocks(view: PlanView, header: Mapping[str, Any]) -> dict[str, Any]:
    """The author's blocks that say what those of `header` say, as the author wrote them."""
    own: dict[str, Any] = {}
    for name, block in _BLOCKS.items():
        try:
            same = name in view.raw and block.model_validate(view.raw[name]) == block.model_validate(header.get(name))
        except ValidationError:
            continue
        if same:
            own[name] = view.raw[name]
    return own
