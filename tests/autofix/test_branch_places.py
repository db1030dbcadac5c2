"""A phase branch of a replica apart that one wrong field misnames or misplaces is put right, and the strategy stays."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.examples import base_names, base_plan

# Every branch of every plan whose replicas serve one phase each.
BRANCHES = [
    (name, node["id"])
    for name in base_names()
    if base_plan(name)["strategy"]["prefill"].get("replicas")
    for node in base_plan(name)["nodes"]
    if node["type"] == "PhaseNode"
]
every_branch = pytest.mark.parametrize(("name", "branch"), BRANCHES)


def put_right(name: str, branch: str, **fields: Any) -> None:
    """Assert that a repair gives the base plan back after the branch states `fields` instead of its own."""
    document = base_plan(name)
    node = next(node for node in document["nodes"] if node["id"] == branch)
    for field in ("tokens_per_step", "recurrence") if "phase" in fields else ():
        node.pop(field, None)
    node.update(fields)
    assert autofix(document).document == base_plan(name)


@every_branch
def test_a_misnamed_branch_gets_the_name_that_its_cache_edges_show(name: str, branch: str) -> None:
    put_right(name, branch, phase="prefill" if branch.endswith("decode") else "decode")


@every_branch
def test_a_branch_below_a_stage_or_another_replica_gets_back_to_its_own(name: str, branch: str) -> None:
    for node in base_plan(name)["nodes"]:
        if node["type"] in ("PipelineStageNode", "ReplicaNode") and not branch.startswith(node["id"].split(".")[0]):
            put_right(name, branch, parent=node["id"])
