"""A device that a whole stage names twice is one fault, whatever else results from it."""

from __future__ import annotations

import pytest

from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate


@pytest.mark.parametrize("base", ["dense-tp2", "moe-ep2", "dense-sp2"])
@pytest.mark.parametrize("with_shards", [False, True])
def test_a_stage_whose_lists_repeat_one_device_is_told_by_one_rule(base: str, with_shards: bool) -> None:
    document = base_plan(base)
    nodes = document["nodes"]
    stage = next(node["id"] for node in nodes if node["type"] == "PipelineStageNode")
    for node in nodes:
        devices = node.get("devices") or ()
        if node["id"].startswith(f"{stage}.") and len(devices) > (not with_shards):
            node["devices"] = ["n0.g0"] * len(devices)
    assert {violation.rule for violation in validate(document).violations if violation.severity == "error"} == {"GP004"}
