"""Published layouts are valid plans under the relaxations that they need, and refused without any of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.catalog.models import load_model
from shardwright.tools.plan.builder import BuildRequest, build_plan
from shardwright.tools.plan.document import (
    HardwareBlock,
    ModelBlock,
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import gpu_count
from shardwright.tools.plan.view import PlanView
from shardwright.tools.validate import validate

_TABLE = Path(__file__).parents[1] / "cases" / "deployments.json"
ROWS: list[dict[str, Any]] = json.loads(_TABLE.read_text(encoding="utf-8"))
NAMES = [row["name"] for row in ROWS]
NEEDED = [(row["name"], relaxation, rule) for row in ROWS for relaxation, rule in row["relaxations"].items()]


@cache
def built(name: str) -> dict[str, Any]:
    """The plan of the row `name`; callers must not change it."""
    row = next(row for row in ROWS if row["name"] == name)
    size, _, accelerator = row["hardware"].partition(":")
    nodes, _, gpus = size.partition("x")
    strategy = Strategy(
        dp=row["dp"],
        gpu_count=1,
        prefill=PhaseStrategy.model_validate(row["prefill"]),
        decode=PhaseStrategy.model_validate(row["decode"]),
    )
    entry = load_model(row["model"])
    request = BuildRequest(
        model=ModelBlock(name=entry.name, config=dict(entry.config)),
        hardware=HardwareBlock(
            accelerator=accelerator,
            nodes=int(nodes),
            gpus_per_node=int(gpus),
            inter_node_bw_gb_s=row.get("inter_node_bw_gb_s"),
        ),
        workload=WorkloadBlock.model_validate(row["load"]),
        precision=PrecisionBlock.model_validate(row["precision"]),
        strategy=strategy.model_copy(update={"gpu_count": gpu_count(strategy)}),
        policy=PolicyBlock.model_validate({"relaxations": list(row["relaxations"])}),
        redundant_experts=row["redundant_experts"],
    )
    return build_plan(request).model_dump(mode="json")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_layout_in_service_is_valid_under_the_relaxations_that_it_names(name: str) -> None:
    report = validate(built(name))
    assert [f"{finding.rule} {finding.message}" for finding in report.violations if finding.severity == "error"] == []
    row = next(row for row in ROWS if row["name"] == name)
    assert set(report.relaxations) == set(row["relaxations"])


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "relaxation", "rule"), NEEDED)
def test_without_a_relaxation_the_rule_that_it_relaxes_fires_alone(name: str, relaxation: str, rule: str) -> None:
    plan = built(name)
    others = [other for other in plan["policy"]["relaxations"] if other != relaxation]
    strict = {**plan, "policy": {**plan["policy"], "relaxations": others}}
    errors = {finding.rule for finding in validate(strict).violations if finding.severity == "error"}
    assert errors == {rule}


@pytest.mark.parametrize("name", [row["name"] for row in ROWS if "experts_per_device" in row])
def test_each_device_hosts_as_many_experts_as_was_published(name: str) -> None:
    row = next(row for row in ROWS if row["name"] == name)
    view = PlanView(built(name))
    hosted: dict[str, set[int]] = {}
    for phase in view.phases:
        for stage in phase.stages:
            groups = [group for moe in stage.operators for group in moe.children_of_type("ExpertNode")]
            hosted.setdefault(phase.phase or "", set()).update(len(group.experts or ()) for group in groups)
    for phase_name, experts in row["experts_per_device"].items():
        assert hosted[phase_name] == {experts}


def test_every_relaxation_is_needed_by_a_layout_in_service() -> None:
    from typing import get_args

    from shardwright.tools.plan.document import Relaxation

    assert {relaxation for _, relaxation, _ in NEEDED} == set(get_args(Relaxation))
