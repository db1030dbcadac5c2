"""The small plans that the rules' examples start from, and the edits that make examples of them.

The builder writes a base plan from a tiny model (`data/base_plans.json`); an `Example` names a base and the edits that
make it good or bad. Nothing here judges a plan. An edit that names an absent node is a fault of the example.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ..errors import InputError, UnknownNameError
from ..input.files import shipped
from ..plan.builder import BuildRequest, build_plan
from ..plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from ..plan.placement import gpu_count
from .base import Edit, Example

_DATA = shipped(__name__, "base_plans.json")
# A prompt long enough for sequence parallelism to pay off (004 §4.5).
_LONG_PROMPT_TOKENS = 16384
_PLANS: Mapping[str, Mapping[str, Any]] = _DATA["plans"]


def config_of(name: str) -> dict[str, Any]:
    """The config of a model of the base plans, merged with that of the model which it is `like`."""
    model = _DATA["models"][name]
    return {**(config_of(model["like"]) if "like" in model else {}), **model["config"]}


DENSE, MOE, MLA = map(config_of, ("dense", "moe", "mla"))


def base_names() -> tuple[str, ...]:
    """The names that `base_plan` knows."""
    return tuple(_PLANS)


@cache
def _built(name: str) -> dict[str, Any]:
    plan = _PLANS[name]
    config, prefill = config_of(plan["model"]), plan.get("prefill", {})
    strategy = Strategy(
        dp=plan.get("dp", 1),
        gpu_count=1,
        prefill=PhaseStrategy.model_validate(prefill),
        decode=PhaseStrategy.model_validate({**prefill, **plan.get("decode", {})}),
    )
    request = BuildRequest(
        model=ModelBlock(name=f"tiny {config['model_type']}", config=config),
        hardware=HardwareBlock(
            accelerator="h100-sxm", nodes=plan.get("nodes", 1), gpus_per_node=plan.get("gpus_per_node", 8)
        ),
        workload=WorkloadBlock(input_tokens=_LONG_PROMPT_TOKENS, output_tokens=64, concurrency=4),
        precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        policy=PolicyBlock.model_validate({"relaxations": plan.get("relaxations", [])}),
        redundant_experts=plan.get("redundant_experts", 0),
    )
    return build_plan(request).model_dump(mode="json")


def base_plan(name: str) -> dict[str, Any]:
    """A fresh copy of the base plan of that name, as a JSON object.

    Raises UnknownNameError: there is no such base plan.
    """
    if name not in _PLANS:
        raise UnknownNameError("base plan", name, tuple(_PLANS))
    return copy.deepcopy(_built(name))


def apply(example: Example) -> dict[str, Any]:
    """The document of `example`: its base plan after its edits, in order.

    Raises InputError: an edit names a node, an edge or a place that the document does not have; UnknownNameError: there
    is no such base plan.
    """
    return edited(base_plan(example.base), example.edits)


def edited(document: dict[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """`document`, changed by `edits` in order.

    Raises InputError: an edit names a node, an edge or a place that the document does not have.
    """
    for edit in edits:
        _EDITORS[edit.action](document, edit)
    return document


def _find_node(document: dict[str, Any], edit: Edit) -> dict[str, Any]:
    for node in document["nodes"]:
        if node.get("id") == edit.id:
            return node
    raise InputError(f"edit {edit.action!r}: the plan has no node {edit.id!r}")


def _remove_node(document: dict[str, Any], edit: Edit) -> None:
    gone = {_find_node(document, edit)["id"]}
    while True:
        below = {node["id"] for node in document["nodes"] if node["parent"] in gone} - gone
        if not below:
            break
        gone |= below
    document["nodes"] = [node for node in document["nodes"] if node["id"] not in gone]
    document["edges"] = [
        edge for edge in document["edges"] if edge["source"] not in gone and edge["target"] not in gone
    ]


def _set(document: dict[str, Any], edit: Edit) -> None:
    _find_node(document, edit)[edit.field] = copy.deepcopy(edit.value)


def _add(document: dict[str, Any], edit: Edit) -> None:
    document["nodes" if edit.action == "add_node" else "edges"].append(copy.deepcopy(edit.value))


def _remove_edge(document: dict[str, Any], edit: Edit) -> None:
    """Remove the edges that have all the fields of `edit.value`."""
    wanted = edit.value.items()
    remaining = [edge for edge in document["edges"] if not wanted <= edge.items()]
    if len(remaining) == len(document["edges"]):
        raise InputError(f"edit 'remove_edge': the plan has no edge {edit.value!r}")
    document["edges"] = remaining


def _set_top(document: dict[str, Any], edit: Edit) -> None:
    place, key = _place(document, edit)
    place[key] = copy.deepcopy(edit.value)


def _scale(document: dict[str, Any], edit: Edit) -> None:
    place, key = _place(document, edit)
    place[key] *= edit.value


def _evaluate(document: dict[str, Any], _: Edit) -> None:
    # Few examples need the performance model.
    from ..performance.estimate import estimate

    document["performance"] = estimate(document).model_dump(mode="json", exclude_none=True)


def _place(document: dict[str, Any], edit: Edit) -> tuple[Any, str | int]:
    """The container of the value at the JSON Pointer of `edit`, and its key; a list must have the place already."""
    *parents, last = edit.field.removeprefix("/").split("/")
    place: Any = document
    try:
        for key in parents:
            place = place[_key(place, key)]
        key = _key(place, last)
        if isinstance(key, int) or edit.action == "scale":
            place[key]
    except (KeyError, IndexError, ValueError):
        raise InputError(f"edit {edit.action!r}: the plan has nothing at {edit.field!r}") from None
    return place, key


def _key(place: object, text: str) -> str | int:
    return int(text) if isinstance(place, list) else text


_EDITORS = {
    "add_node": _add,
    "remove_node": _remove_node,
    "set": _set,
    "add_edge": _add,
    "remove_edge": _remove_edge,
    "set_top": _set_top,
    "evaluate": _evaluate,
    "scale": _scale,
}
