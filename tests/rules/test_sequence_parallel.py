"""The rules of sequence parallelism."""

from __future__ import annotations

import pytest

from shardwright.tools.rules.base import Edit, Example
from shardwright.tools.rules.examples import apply, base_plan

from .corruptions import fired

ATTENTION = "r0.prefill.s0.b0.attn"


@pytest.mark.parametrize(("tokens", "warned"), [(1, True), (8191, True), (8192, False), (131072, False)])
def test_short_prompts_are_below_8192_tokens(tokens: int, warned: bool) -> None:
    document = apply(Example("dense-sp2-tp2", (Edit("set_top", field="/workload/input_tokens", value=tokens),)))
    assert (fired(document, "SP004") != []) is warned


def test_short_prompts_are_no_matter_without_sequence_shards() -> None:
    document = apply(Example("dense-tp4", (Edit("set_top", field="/workload/input_tokens", value=1),)))
    assert fired(document, "SP004") == []


def test_a_scatter_and_the_closing_gather_stand_in_for_the_sum() -> None:
    document = apply(Example("dense-sp2-tp2", (Edit("set", f"{ATTENTION}.ar", "type", "ReduceScatterNode"),)))
    for family in ("TP", "SP"):
        assert fired(document, family) == []


def test_one_sequence_rank_on_all_shards_is_no_split() -> None:
    edits = tuple(Edit("set", f"r0.decode.s0.b0.attn.tp{i}", "rank", {"tp": i, "sp": 0}) for i in range(2))
    assert fired(apply(Example("dense-tp2", edits)), "SP") == []


def test_the_cache_is_split_in_decode_where_the_relaxation_is_named() -> None:
    assert fired(base_plan("relaxed-kv-sp2"), "SP") == []


def test_a_declared_degree_in_decode_is_named_where_it_stands() -> None:
    edit = Edit("set_top", field="/strategy/decode/sp", value=2)
    [message] = fired(apply(Example("dense-tp2", (edit,))), "SP003")
    assert "strategy.decode.sp is 2" in message
