"""A shared expert that ends on its own devices, where its stage has more, is legal, and stays as its author drew it."""

from __future__ import annotations

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.validate import validate

SHARED = [f"r0.{phase}.s0.b0.moe.shared" for phase in ("prefill", "decode")]
OWN = ["n0.g0", "n0.g1"]
ON_TWO = [Edit("set", f"{operator}.ar", "devices", OWN) for operator in SHARED]
ON_ONE = [
    Edit("set_top", field="/strategy/prefill/tp_ffn", value=1),
    Edit("set_top", field="/strategy/decode/tp_ffn", value=1),
    *(Edit("remove_node", f"{operator}.{part}") for operator in SHARED for part in ("tp1", "ar")),
    *(Edit("set", f"{operator}.tp0", "rank", {}) for operator in SHARED),
]


@pytest.mark.parametrize("edits", [ON_TWO, ON_ONE], ids=["summed on its own two", "on one and not gathered"])
def test_a_shared_expert_that_ends_on_its_own_devices_stays_so(edits: list[Edit]) -> None:
    narrow = edited(base_plan("moe-shared-tp2-ep4"), tuple(edits))
    assert validate(narrow).valid
    faults = (Edit("set", "r0.decode", "tokens_per_step", 2), Edit("remove_node", "r0.prefill.s0.b0.attn.kv"))
    mended = autofix(edited(narrow, faults)).document
    assert mended is not None
    for operator in SHARED:
        below = [[node for node in plan["nodes"] if node["parent"] == operator] for plan in (narrow, mended)]
        assert below[0] == below[1]
