"""A node names the devices that it runs on and no other: one more, in any list, makes the plan invalid."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.rules.examples import base_names, base_plan
from shardwright.tools.validate import validate

pytestmark = pytest.mark.thorough


def _with_added(document: dict[str, Any], name: str, device: str, *, everywhere: bool) -> dict[str, Any]:
    """The plan with `device` added to the list of node `name`, or to all lists of such nodes that are equal to it."""
    node = next(node for node in document["nodes"] if node["id"] == name)
    kind, devices = node["type"], list(node["devices"])
    for other in document["nodes"]:
        if other is node or (everywhere and other["type"] == kind and other.get("devices") == devices):
            other["devices"] = [*devices, device]
    return document


@pytest.mark.parametrize("everywhere", [False, True], ids=["one node", "all such nodes"])
@pytest.mark.parametrize("base", base_names())
def test_a_device_too_many_in_any_list_makes_a_plan_invalid(base: str, everywhere: bool) -> None:
    nodes = [node for node in base_plan(base)["nodes"] if node.get("devices")]
    used = sorted({device for node in nodes for device in node["devices"]})
    accepted = [
        (node["id"], device)
        for node in nodes
        for device in (next((device for device in used if device not in node["devices"]), None), "n0.g7")
        if device is not None
        and device not in node["devices"]
        and validate(_with_added(base_plan(base), node["id"], device, everywhere=everywhere)).valid
    ]
    assert not accepted
