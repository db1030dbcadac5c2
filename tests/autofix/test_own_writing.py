"""What an author writes in another legal way than the builder stays so, whatever is mended beside it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.intent import read_intent
from shardwright.tools.plan.blocks import Block
from shardwright.tools.plan.builder import build_plan
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.validate import validate

from ..rules.corruptions import scattered


def _scattered_on_its_own_devices() -> dict[str, Any]:
    """An FFN on two of four GPUs: they reduce, and all of them gather."""
    wanted = edited(base_plan("dense-tp4"), [Edit("set_top", field="/strategy/prefill/tp_ffn", value=2)])
    document = scattered(autofix(wanted, keep_strategy=True).document or {}, random.Random(0))
    return edited(document, [Edit("set", "r0.prefill.s0.b0.ffn.ar", "devices", ["n0.g0", "n0.g1"])])


def _shared_experts_of_a_later_layer() -> dict[str, Any]:
    """Two layers in each period, and shared experts that state which of them is theirs."""
    intent = read_intent(PlanView(base_plan("moe-shared-tp2-ep4")))
    request, architecture = intent.request, intent.architecture
    assert request is not None and architecture is not None
    cut = (Block(0, architecture.num_layers - 1, 2),)
    blocks = {(0, phase, 0): cut for phase in ("prefill", "decode")}
    document = build_plan(replace(request, blocks=blocks)).model_dump(mode="json")
    offsets = {node["id"]: node.get("offset", 0) for node in document["nodes"] if node["type"] == "MoENode"}
    for node in document["nodes"]:
        if node["type"] == "FFNNode":
            node["offset"] = offsets[node["parent"]]
    assert set(offsets.values()) == {0, 1}
    return document


@pytest.mark.parametrize("written", [_scattered_on_its_own_devices, _shared_experts_of_a_later_layer])
def test_what_is_written_in_another_legal_way_stays(written: Callable[[], dict[str, Any]]) -> None:
    document = written()
    assert validate(document).valid
    miscounted = {**document, "strategy": {**document["strategy"], "gpu_count": 5}}
    result = autofix(miscounted)
    assert result.valid and result.document == document
