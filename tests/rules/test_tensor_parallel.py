"""The rules of tensor parallelism."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit, Example
from shardwright.tools.rules.examples import apply, base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.rules.sharding import misranked_dimension

from ..plan.tiny import DENSE, tiny_plan
from .corruptions import fired

ATTENTION = "r0.prefill.s0.b0.attn"


def shards_view(ranks: list[dict[str, int]]) -> PlanView:
    nodes: list[dict[str, Any]] = [{"id": "op", "type": "AttentionNode", "parent": None}]
    nodes += [{"id": f"s{i}", "type": "ShardNode", "parent": "op", "rank": rank} for i, rank in enumerate(ranks)]
    return PlanView({"nodes": nodes, "edges": []})


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_a_whole_grid_of_ranks_has_no_wrong_dimension(dp: int, sp: int, tp: int, rng: Any) -> None:
    ranks = [{"dp": d, "sp": s, "tp": t} for d in range(dp) for s in range(sp) for t in range(tp)]
    rng.shuffle(ranks)
    assert misranked_dimension(shards_view(ranks).by_id["op"]) is None


@given(st.integers(1, 3), st.integers(2, 4), st.integers(0, 11), st.integers(0, 5))
def test_one_wrong_tensor_rank_is_found_in_its_dimension(sp: int, tp: int, which: int, wrong: int) -> None:
    ranks = [{"sp": s, "tp": t} for s in range(sp) for t in range(tp)]
    shard = ranks[which % len(ranks)]
    right = shard["tp"]
    shard["tp"] = wrong
    assert misranked_dimension(shards_view(ranks).by_id["op"]) == (None if wrong == right else "tp")


def test_reduce_scatter_and_all_gather_stand_in_for_an_all_reduce() -> None:
    gather = {"id": "back", "type": "AllGatherNode", "parent": ATTENTION, "devices": ["n0.g0", "n0.g1"]}
    edits = (
        Edit("set", f"{ATTENTION}.ar", "type", "ReduceScatterNode"),
        Edit("add_node", value=gather),
        Edit("add_edge", value={"source": f"{ATTENTION}.ar", "target": "back", "type": "synchronization"}),
    )
    assert fired(apply(Example("dense-tp2", edits)), "TP") == []
    assert fired(apply(Example("dense-tp2", edits[:2])), "TP003") != []


def test_the_sum_may_follow_the_exchange_of_sequence_shards() -> None:
    plan = base_plan("dense-ulysses2-tp2")
    total, out = f"{ATTENTION}.ar", f"{ATTENTION}.a2aout"
    for edge in plan["edges"]:
        if edge["target"] == total:
            edge["target"] = out
        elif (edge["source"], edge["target"]) == (total, out):
            edge["source"], edge["target"] = out, total
    for family in ("TP", "SP"):
        assert fired(plan, family) == []


def test_a_relaxation_allows_what_it_names_and_nothing_else() -> None:
    for base, rule in (("relaxed-tp-in-expert", "TP006"), ("relaxed-vocab-parallel", "TP001")):
        assert fired(base_plan(base), rule) == []
        others = ["attention_dp", "kv_sequence_decode", "redundant_experts"]
        assert fired(apply(Example(base, (Edit("set_top", field="/policy/relaxations", value=others),))), rule) != []


def test_the_gathered_tokens_of_attention_groups_are_scattered_back() -> None:
    from shardwright.tools.plan.document import PhaseStrategy

    config = {**DENSE, "num_attention_heads": 8}
    plan = tiny_plan(config, PhaseStrategy(attention_dp=4, tp_ffn=4), relaxations=("attention_dp",))
    document = plan.model_dump(mode="json", exclude_none=True)
    assert any(node["type"] == "ReduceScatterNode" for node in document["nodes"])
    assert fired(document, "TP") == []
    document["edges"] = [edge for edge in document["edges"] if not edge["source"].endswith("ffn.ag")]
    assert fired(document, "TP003") != []


@pytest.mark.parametrize(
    ("query_heads", "kv_heads", "fits"),
    [(8, 8, True), (8, 4, True), (8, 2, True), (8, 1, True), (12, 3, False), (6, 2, False), (12, 6, False)],
)
def test_tp4_fits_where_it_divides_the_heads_or_repeats_them(query_heads: int, kv_heads: int, fits: bool) -> None:
    edits = (
        Edit("set_top", field="/model/config/num_attention_heads", value=query_heads),
        Edit("set_top", field="/model/config/num_key_value_heads", value=kv_heads),
    )
    assert (fired(apply(Example("dense-tp4", edits)), "TP005") == []) is fits


def test_the_latent_of_mla_sets_no_bound_on_tp() -> None:
    edits = (Edit("set_top", field="/model/config/num_key_value_heads", value=3),)
    assert fired(apply(Example("mla-tp2-ep2-pp2", edits)), "TP005") == []


@pytest.mark.parametrize(
    ("key_heads", "value_heads", "fits"), [(4, 8, True), (2, 8, False), (4, 4, True), (6, 6, False)]
)
def test_tp4_divides_the_key_and_value_heads_of_linear_attention(key_heads: int, value_heads: int, fits: bool) -> None:
    from shardwright.tools.plan.document import PhaseStrategy

    config = {
        **DENSE,
        "model_type": "qwen3_next",
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 256,
        "shared_expert_intermediate_size": 256,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    plan = tiny_plan(config, PhaseStrategy(tp=4, ep=4, tp_ffn=4))
    findings = fired(plan.model_dump(mode="json", exclude_none=True), "TP005")
    assert (findings == []) is fits
    assert all("linear attention" in message for message in findings)


def test_a_group_across_the_nodes_of_one_scale_up_domain_is_no_warning() -> None:
    example = find_rule("TP007").bad
    assert fired(apply(example), "TP007") != []
    rack = (
        Edit("set_top", field="/hardware/accelerator", value="gb200"),
        Edit("set_top", field="/hardware/gpus_per_node", value=4),
    )
    assert fired(apply(Example(example.base, (*example.edits, *rack))), "TP007") == []


@pytest.mark.thorough
def test_a_nest_of_shards_is_looked_at_in_reasonable_time() -> None:
    depth = 20_000
    nodes: list[dict[str, Any]] = [{"id": "0", "type": "ShardNode", "parent": None, "rank": {"tp": 0}}]
    nodes += [{"id": str(i), "type": "ShardNode", "parent": str(i - 1), "rank": {"tp": 0}} for i in range(1, depth)]
    assert len(fired({"nodes": nodes, "edges": []}, "TP001")) == depth - 1
