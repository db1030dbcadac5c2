"""Where parts of a plan disagree, repair follows the majority, and restores parts of which little is left."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.rules.base import Edit, set_top
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.validate import validate


def layers(stage: str, first: int, last: int) -> list[Edit]:
    """Edits that make a stage and its one block hold the layers `first` to `last`."""
    return [Edit("set", name, "layers", [first, last]) for name in (stage, f"{stage}.b0")]


def experts(operator: str, *groups: list[Any]) -> list[Edit]:
    """Edits that make the groups of a MoE operator host these experts."""
    return [Edit("set", f"{operator}.e{number}", "experts", group) for number, group in enumerate(groups)]


def ranks(operator: str, dimension: str, *places: int) -> list[Edit]:
    """Edits that give the shards of an operator these ranks along `dimension`."""
    return [Edit("set", f"{operator}.tp{number}", "rank", {dimension: at}) for number, at in enumerate(places)]


def hung(operator: str, parent: str, count: int) -> list[Edit]:
    """Edits that move the shards of an operator below another parent."""
    return [Edit("set", f"{operator}.tp{number}", "parent", parent) for number in range(count)]


def shifted(base: str, stage: str, by: int) -> list[Edit]:
    """The devices of everything below a stage moved along their node."""
    below = [node for node in base_plan(base)["nodes"] if node["id"].startswith(f"{stage}.") and "devices" in node]
    return [
        Edit("set", node["id"], "devices", [f"n0.g{int(device[4:]) + by}" for device in node["devices"]])
        for node in below
    ]


def gathered(operator: str, count: int) -> list[Edit]:
    """Edits that add an AllGather of keys and values before the shards of an operator."""
    devices = [f"n0.g{number}" for number in range(count)]
    node = {"id": "gather", "type": "AllGatherNode", "parent": operator, "devices": devices}
    ends = [
        {"source": "gather", "target": f"{operator}.tp{number}", "type": "synchronization"} for number in range(count)
    ]
    return [Edit("add_node", value=node), *(Edit("add_edge", value=edge) for edge in ends)]


def stray_phase(replica: str, phase: str) -> Edit:
    """The edit that adds an empty phase branch."""
    return Edit("add_node", value={"id": "stray", "type": "PhaseNode", "parent": replica, "phase": phase})


DECODE = "r0.decode.s0.b0"
DAMAGED: dict[str, tuple[str, list[Edit]]] = {
    "one branch of four has a cut of its own": (
        "dense-dp2-pp2",
        [*layers("r0.prefill.s0", 0, 5), *layers("r0.prefill.s1", 6, 7)],
    ),
    "one branch of four is cut in favour of the last stage": (
        "dense-dp2-pp2",
        [*layers("r0.decode.s0", 0, 1), *layers("r0.decode.s1", 2, 7)],
    ),
    "replicas share the layers out in each phase": (
        "dense-dp2-pp2",
        [
            edit
            for replica, first in (("r1", 0), ("r0", 4))
            for phase in ("prefill", "decode")
            for stage in (0, 1)
            for edit in layers(f"{replica}.{phase}.s{stage}", first + 2 * stage, first + 2 * stage + 1)
        ],
    ),
    "replicas share the experts out": (
        "moe-dp2-ep2",
        [
            *experts("r0.prefill.s0.b0.moe", [[0, 3]], [[4, 7]]),
            *experts("r1.prefill.s0.b0.moe", [[8, 11]], [[12, 15]]),
        ],
    ),
    "all groups but the first are copies of it": (
        "moe-ep4",
        experts("r0.decode.s0.b0.moe", [[0, 3]], [[0, 3]], [[0, 3]], [[0, 3]]),
    ),
    "half of the groups have nothing left": (
        "moe-ep4",
        experts("r0.prefill.s0.b0.moe", [[0, 7]], [[8, 15]], [], []),
    ),
    "tensor ranks of attention are called dp": ("dense-tp4", ranks(f"{DECODE}.attn", "dp", 0, 1, 2, 3)),
    "tensor ranks of an FFN are called dp": ("dense-dp2-tp2", ranks(f"{DECODE}.ffn", "dp", 0, 1)),
    "tensor ranks of decode are called sp": ("dense-tp4", ranks(f"{DECODE}.attn", "sp", 0, 1, 2, 3)),
    "decode is declared and drawn with SP": (
        "dense-tp4",
        [
            set_top("/strategy/decode/sp", 4),
            set_top("/strategy/decode/tp", 1),
            *ranks(f"{DECODE}.attn", "sp", 0, 1, 2, 3),
            Edit("set", f"{DECODE}.attn.ar", "type", "AllGatherNode"),
            *gathered(f"{DECODE}.attn", 4),
        ],
    ),
    "another TP is declared, and shards hang below the stage": (
        "dense-tp4",
        [set_top("/strategy/decode/tp", 2), *hung(f"{DECODE}.attn", "r0.decode.s0", 4)],
    ),
    "another TP is declared, and a rank stands twice": (
        "dense-tp4",
        [set_top("/strategy/decode/tp", 2), *ranks(f"{DECODE}.attn", "tp", 0, 0, 2, 3)],
    ),
    "another EP is declared, and an expert group is lost": (
        "moe-ep4",
        [set_top("/strategy/decode/ep", 1), Edit("remove_node", f"{DECODE}.moe.e3")],
    ),
    "a decode branch with nothing in it hangs in a prefill replica": (
        "disaggregated-moe",
        [stray_phase("r0", "decode")],
    ),
    "a prefill branch with nothing in it hangs in a decode replica": (
        "disaggregated-pp2",
        [stray_phase("r1", "prefill")],
    ),
    "layers are counted from 1": (
        "dense-pp2-tp2",
        [
            edit
            for phase in ("prefill", "decode")
            for stage in (0, 1)
            for edit in layers(f"r0.{phase}.s{stage}", 4 * stage + 1, 4 * stage + 4)
        ],
    ),
    "ranks are counted from 1": ("dense-tp4", ranks(f"{DECODE}.attn", "tp", 1, 2, 3, 4)),
    "experts are counted from 1": ("moe-ep2", experts(f"{DECODE}.moe", [[1, 8]], [[9, 16]])),
    "the bound between two runs of layers is moved": (
        "hybrid-tp2-ep2-pp2",
        [Edit("set", DECODE, "layers", [0, 1]), Edit("set", "r0.decode.s0.b1", "layers", [2, 3])],
    ),
    "a stage is shifted onto a device of the stage before": (
        "dense-pp2-tp2",
        shifted("dense-pp2-tp2", "r0.prefill.s1", -1),
    ),
    "a stage is shifted onto a device of the stage after": ("dense-pp2-tp2", shifted("dense-pp2-tp2", DECODE, 1)),
    "a stage is shifted onto devices of another replica": (
        "dense-dp2-tp2",
        shifted("dense-dp2-tp2", "r0.prefill.s0", 2),
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_most_of_the_plan_shows_is_what_comes_out(name: str) -> None:
    base, edits = DAMAGED[name]
    original = base_plan(base)
    broken = edited(base_plan(base), tuple(edits))
    assert not validate(broken).valid
    mended = autofix(broken)
    assert mended.valid
    assert content_hash(mended.document or {}) == content_hash(original)
    assert not autofix(mended.document or {}).fixes


def hosted(document: dict[str, Any], operator: str) -> list[list[Any]]:
    """The experts of each group of an operator."""
    return [node["experts"] for node in document["nodes"] if node["id"].startswith(f"{operator}.e")]


CROSSWISE = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]


def test_experts_of_an_operator_in_ruins_are_hosted_as_in_the_others() -> None:
    placed = edited(base_plan("moe-ep4"), tuple(experts("r0.prefill.s0.b0.moe", *CROSSWISE)))
    assert validate(placed).valid
    broken = edited(placed, tuple(experts("r0.decode.s0.b0.moe", [0], [], [], [15])))
    mended = autofix(broken)
    assert mended.valid
    assert hosted(mended.document or {}, "r0.decode.s0.b0.moe") == CROSSWISE


def test_a_placement_of_which_one_expert_is_lost_stays_what_it_is() -> None:
    placed = edited(
        base_plan("moe-ep4"), tuple(experts("r0.decode.s0.b0.moe", CROSSWISE[0], CROSSWISE[1][:3], *CROSSWISE[2:]))
    )
    mended = autofix(placed)
    assert mended.valid
    assert hosted(mended.document or {}, "r0.decode.s0.b0.moe") == CROSSWISE


def test_of_two_cuts_that_are_equally_frequent_the_declared_one_stays() -> None:
    edits = [
        Edit("set_top", field="/strategy/decode/stage_layers", value=[3, 5]),
        *layers("r1.decode.s0", 0, 2),
        *layers("r1.decode.s1", 3, 7),
    ]
    mended = autofix(edited(base_plan("dense-dp2-pp2"), tuple(edits)))
    assert mended.valid
    strategy = (mended.document or {})["strategy"]
    assert strategy["decode"]["stage_layers"] == [3, 5]
    assert strategy["prefill"].get("stage_layers") is None
