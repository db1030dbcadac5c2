"""The space of a search under constraints is the space without them, less the strategies that break the rule."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import TypeAdapter

from shardwright.tools.catalog.models import find_model
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.constraints import Constraint
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.search.space import SpaceRequest
from shardwright.tools.validate import validate

from ..spaces import strategies

CONSTRAINTS: TypeAdapter[list[Constraint]] = TypeAdapter(list[Constraint])


def degree(name: str, relation: str, most: int | None = None, **more: Any) -> dict[str, Any]:
    value = {"name": name, "relation": relation} | ({} if most is None else {"degree": most})
    return {"kind": "degree", "value": value, "words": f"{name} {relation} {most}", **more}


def kind(name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"kind": name, "value": value, "words": f"{name} {value}", **more}


CASES: tuple[tuple[dict[str, Any], ...], ...] = (
    (degree("tp", "<=", 2),),
    (degree("tp", "=", 2),),
    (degree("tp", "forbidden"),),
    (degree("pp", "forbidden"),),
    (degree("pp", "<=", 2, phase="prefill"),),
    (degree("tp", "=", 2, phase="decode"),),
    (degree("ep", "<=", 2),),
    (kind("replicas", 2),),
    (kind("replicas", 2, phase="decode"),),
    (kind("replicas", 3), degree("tp", "forbidden")),
    (kind("reserved_nodes", 1),),
    (kind("reserved_gpus", 1),),
    (kind("reserved_gpus", 3), kind("within_node", "tp")),
    (kind("within_node", "pp"),),
    (kind("within_node", "ep"), kind("within_node", "tp")),
)
MODELS = {"dense": "Qwen/Qwen2.5-0.5B-Instruct", "experts": "Qwen/Qwen3-30B-A3B"}


def space_of(model: str, *, disaggregated: bool | None = None) -> SpaceRequest:
    return SpaceRequest(
        architecture=find_model(model).architecture(),
        nodes=2,
        gpus_per_node=2,
        input_tokens=512,
        disaggregated=disaggregated,
        relaxations=frozenset({"tp_in_expert"}),
    )


def breaks(model: str, strategy: Strategy, constraints: list[Constraint]) -> bool:
    """Whether the rule finds a plan of `strategy` to break the constraints."""
    entry = find_model(model)
    document = build_plan(
        BuildRequest(
            model=ModelBlock(name=entry.name, config=entry.config),
            hardware=HardwareBlock(accelerator="h100-sxm", nodes=2, gpus_per_node=2),
            workload=WorkloadBlock(input_tokens=512, output_tokens=64),
            precision=PrecisionBlock(weights="bf16", kv_cache="bf16", activations="bf16"),
            policy=PolicyBlock(relaxations=("tp_in_expert",), constraints=tuple(constraints)),
            strategy=strategy,
        )
    )
    return any(violation.rule == "CO008" for violation in validate(document).violations)


@pytest.mark.one_in(7)
@pytest.mark.parametrize("case", CASES, ids=lambda case: " and ".join(constraint["words"] for constraint in case))
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_space_holds_what_the_rule_finds_kept_and_nothing_else(
    model: str, case: tuple[dict[str, Any], ...]
) -> None:
    constraints = CONSTRAINTS.validate_python(list(case))
    for disaggregated in (False, True):
        space = space_of(model, disaggregated=disaggregated)
        everything = list(strategies(space))[::7]
        allowed = set(map(repr, strategies(replace(space, constraints=tuple(constraints)))))
        for strategy in everything:
            # The last devices are reserved; a plan that leaves gaps may use one of them.
            assert (repr(strategy) in allowed) != breaks(model, strategy, constraints) or any(
                constraint.kind == "reserved_gpus" for constraint in constraints
            )
