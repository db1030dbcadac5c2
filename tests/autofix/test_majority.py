"""Where parts of a plan disagree, repair follows what most of it shows, and puts back what little is left of."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.validate import validate


def layers(stage: str, first: int, last: int) -> list[Edit]:
    """A stage, and its one block, made to hold these layers."""
    return [Edit("set", name, "layers", [first, last]) for name in (stage, f"{stage}.b0")]


def experts(operator: str, *groups: list[Any]) -> list[Edit]:
    """The groups of a MoE operator made to host these experts."""
    return [Edit("set", f"{operator}.e{number}", "experts", group) for number, group in enumerate(groups)]


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
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_most_of_the_plan_shows_is_what_comes_out(name: str) -> None:
    base, edits = DAMAGED[name]
    whole = base_plan(base)
    broken = edited(base_plan(base), tuple(edits))
    assert not validate(broken).valid
    mended = autofix(broken)
    assert mended.valid
    assert content_hash(mended.document or {}) == content_hash(whole)
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
