"""Figures that anybody can work out by hand, of Llama-3.1-70B and DeepSeek-V3: counts exactly, times with a tolerance.

Ideal figures (bytes over a link's whole rate, FLOPs over a peak) are compared with the bytes and FLOPs that the model
counts, measured ones with the model's times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.performance.collectives import ExpertRoutes, Group, Links, distinct_destinations
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.operation import Operation, TokenLoad
from shardwright.tools.performance.schedule import PhaseTimer
from shardwright.tools.plan.document import Phase

LayoutOf = Callable[..., LoadedLayout]
CASES = json.loads((Path(__file__).parents[1] / "cases" / "worked_numbers.json").read_text(encoding="utf-8"))
TP8 = {"tp": 8, "tp_ffn": 8}
WIDE_EP = {"weights": "fp8", "activations": "fp8", "relaxations": ("attention_dp",)}
LINK, NIC, MEMORY, PEAK = 450e9, 50e9, 3.35e12, 989e12
PLAIN = Links(hardware_facts("h100-sxm", 2, 8))


def operations(layout: LoadedLayout, phase: Phase, load: TokenLoad) -> Iterator[tuple[Operation, int]]:
    """Every operation of one pass through the first stage, and how often it runs."""
    timer = PhaseTimer(layout.setting, layout.phase(phase))
    for piece in timer.stages[0].pass_pieces(load, None, with_head=True):
        for operation in piece.operations:
            yield operation, piece.count


def total(layout: LoadedLayout, phase: Phase, load: TokenLoad, op: str, field: str) -> float:
    """The sum of `field` over all operations of kind `op` in a pass."""
    return sum(
        getattr(operation, field) * count for operation, count in operations(layout, phase, load) if operation.op == op
    )


def named(layout: LoadedLayout, phase: Phase, load: TokenLoad, name: str) -> Operation:
    """The last operation of that name in a pass."""
    return [operation for operation, _ in operations(layout, phase, load) if operation.name == name][-1]


@pytest.fixture(scope="module")
def llama(layout_of: LayoutOf) -> LoadedLayout:
    """Llama-3.1-70B in bf16 over 8 H100, the vocabulary split."""
    return layout_of("Llama-3.1-70B", TP8, relaxations=("vocab_parallel",))


@pytest.fixture(scope="module")
def deepseek(layout_of: LayoutOf) -> LoadedLayout:
    """DeepSeek-V3 in fp8 over 8 H800, attention data-parallel."""
    return layout_of("DeepSeek-V3", {"attention_dp": 8, "ep": 8}, accelerator="h800", **WIDE_EP)


@pytest.mark.parametrize("case", CASES["collectives"], ids=lambda case: case["name"])
def test_bytes_that_a_rank_sends_and_their_time_at_the_whole_link(case: dict[str, Any]) -> None:
    transfer = getattr(PLAIN, case["op"])(case["size_bytes"], Group(case["ranks"], 1, case["ranks"]))
    assert transfer.sent_bytes == pytest.approx(case["sent_mb"] * 1e6, rel=1e-3)
    assert transfer.sent_bytes / LINK * 1e3 == pytest.approx(case["ms_at_450_gb_s"], rel=2e-3)
    assert transfer.seconds * 1e3 >= case["ms_at_450_gb_s"]


def test_an_all_reduce_is_one_shot_when_small_and_a_ring_when_large() -> None:
    """One-shot: a latency and p - 1 messages; ring: 2 (p - 1) latencies and 2 (p - 1) / p messages."""
    small, large = 8192, 8192 * 8192 * 2
    of_two, of_eight = (PLAIN.all_reduce(small, Group(ranks, 1, ranks)).seconds for ranks in (2, 8))
    assert of_eight < 1.2 * of_two < 12e-6
    of_two, of_eight = (PLAIN.all_reduce(large, Group(ranks, 1, ranks)).seconds for ranks in (2, 8))
    assert of_eight / of_two == pytest.approx(1.75, rel=0.03)


def test_a_reduce_scatter_and_an_all_gather_send_what_an_all_reduce_does() -> None:
    """arXiv 2205.05198: so norms split along the sequence cost no bytes."""
    size, group = 8192 * 8192 * 2, Group(16, 2, 8)
    assert 2 * PLAIN.all_gather(size, group).sent_bytes == pytest.approx(PLAIN.all_reduce(size, group).sent_bytes)


def test_70b_prefill_of_8192_tokens_at_tp8_sends_for_83_5_ms_beside_152_9_ms_of_arithmetic(llama: LoadedLayout) -> None:
    load = TokenLoad(1, 8192, 0)
    passed = list(operations(llama, "prefill", load))
    counts = {op: sum(count for operation, count in passed if operation.op == op) for op in ("AllReduce", "AllGather")}
    # Two in each layer, one for the embedding; the logits are gathered.
    assert counts == {"AllReduce": 161, "AllGather": 1}
    in_layers = sum(
        operation.sent_bytes * count for operation, count in passed if operation.owner in ("attention", "ffn")
    )
    assert in_layers / LINK == pytest.approx(83.5e-3, rel=2e-3)
    assert sum(operation.flops * count for operation, count in passed) / PEAK == pytest.approx(152.9e-3, rel=2e-3)
    # By default the sums are exposed: nothing hides them.
    latency = estimate_layout(llama, ()).latency
    assert latency.prefill.communication_ms > 0.2 * latency.prefill.compute_ms


def test_70b_decode_at_batch_32_pays_latency_not_bandwidth_for_its_all_reduces(llama: LoadedLayout) -> None:
    """160 of 512 KiB: 2 us each over the whole link, 8 to 10 us as kernels run them."""
    load = TokenLoad(32, 1, 8192)
    sent = named(llama, "decode", load, "ffn.close").sent_bytes
    assert sent / LINK == pytest.approx(2.0e-6, rel=0.05)
    assert total(llama, "decode", load, "AllReduce", "seconds") == pytest.approx(1.45e-3, rel=0.35)


@pytest.mark.parametrize(
    ("batch", "bytes_ms", "flops_ms"), [(32, 8.39, 0.65), (1, 5.29, 0.0203)], ids=["batch 32", "batch 1"]
)
def test_70b_decode_step_at_8k_is_its_weights_and_cache_over_the_bandwidth(
    batch: int, bytes_ms: float, flops_ms: float, llama: LoadedLayout
) -> None:
    load = TokenLoad(batch, 1, 8192)
    moved = sum(total(llama, "decode", load, op, "moved_bytes") for op in ("Linear", "Attention"))
    flops = sum(total(llama, "decode", load, op, "flops") for op in ("Linear", "Attention"))
    # Inputs and outputs of the matmuls come on top.
    assert bytes_ms <= moved / MEMORY * 1e3 * 1.001 <= bytes_ms * 1.015
    assert flops / PEAK * 1e3 == pytest.approx(flops_ms, rel=0.01)
    step_s = sum(operation.seconds * count for operation, count in operations(llama, "decode", load))
    # Between the ideal and what 60% of the bandwidth and the all-reduces leave.
    assert bytes_ms < step_s * 1e3 < bytes_ms / 0.6 + 1.6 * 1.35


def test_the_cache_term_equals_the_weights_at_424k_tokens(llama: LoadedLayout) -> None:
    def read(sequences: int, context: int, op: str) -> float:
        return total(llama, "decode", TokenLoad(sequences, 1, context), op, "moved_bytes")

    weights = read(1, 8192, "Linear")
    assert weights == pytest.approx(17.38e9, rel=1e-3)
    assert read(53, 424_000 // 53 - 1, "Attention") == pytest.approx(weights, rel=2e-3)


@pytest.mark.parametrize("case", CASES["bubbles"], ids=lambda case: f"pp{case['pp']}, {case['chunks']} chunks")
def test_prefill_waits_for_fill_and_drain(case: dict[str, Any], layout_of: LayoutOf) -> None:
    """(pp - 1) / (m + pp - 1) of the time for m equal microbatches: chunks of one prompt are microbatches."""
    degrees = {"tp": 4, "tp_ffn": 4, "pp": case["pp"]}
    layout = layout_of(
        "Llama-3.1-405B", degrees, nodes=2, input_tokens=1024 * case["chunks"], serving={"prefill_chunk_tokens": 1024}
    )
    latency = estimate_layout(layout, ()).latency
    assert latency.prefill.bubble_ms / latency.prefill_ms == pytest.approx(case["bubble"], abs=0.025)


@pytest.mark.parametrize("microbatches", [1, 2, 3, 4, 8])
def test_decode_uses_m_of_pp_stages_and_a_token_passes_all_of_them(microbatches: int, layout_of: LayoutOf) -> None:
    layout = layout_of("Llama-3.1-405B", {"tp": 4, "tp_ffn": 4, "pp": 4}, nodes=2)
    timer = PhaseTimer(layout.setting, layout.phase("decode"))
    load = TokenLoad(4, 1, 4096)
    single, step = timer.decode(load, 1), timer.decode(load, microbatches)
    used = sum(step.kinds.values()) / step.seconds
    assert used == pytest.approx(min(1.0, microbatches / 4), abs=0.04)
    # Up to as many as there are stages they cost a token nothing; beyond, each waits for its turn.
    assert step.seconds == pytest.approx(max(1.0, microbatches / 4) * single.seconds, rel=0.04)


def test_the_hidden_states_of_8k_tokens_cross_stages_in_16_8_mb_slices_in_0_34_ms(layout_of: LayoutOf) -> None:
    layout = layout_of("Llama-3.1-70B", TP8 | {"pp": 2}, nodes=2, input_tokens=8192)
    timer = PhaseTimer(layout.setting, layout.phase("prefill"))
    first, second = timer.stages
    (send, gather) = first.send(TokenLoad(1, 8192, 0), second).operations
    assert send.sent_bytes == pytest.approx(16.8e6, rel=2e-3)
    assert send.sent_bytes / NIC == pytest.approx(0.34e-3, rel=0.02)
    assert 0.335e-3 < send.seconds < 0.5e-3
    assert gather.sent_bytes == pytest.approx(7 * send.sent_bytes)


def test_a_million_tokens_over_16_nodes_exchange_480_mb_a_layer_under_half_a_second_of_scores(
    layout_of: LayoutOf,
) -> None:
    """arXiv 2411.01783: Llama-3-405B, TP8 inside each of 16 nodes, the sequence over them; 4.94e18 FLOP, 84% scores."""
    degrees = TP8 | {"sp": 16}
    layout = layout_of("Llama-3.1-405B", degrees, decode={"tp": 128, "tp_ffn": 128}, nodes=16, input_tokens=100_000)
    load = TokenLoad(1, 1_000_000, 0)
    exchange = named(layout, "prefill", load, "attention.exchange")
    assert exchange.sent_bytes == pytest.approx(480e6, rel=1e-3)
    assert exchange.sent_bytes / NIC == pytest.approx(9.6e-3, rel=1e-3)
    core = named(layout, "prefill", load, "attention.core")
    assert core.flops / (0.5 * PEAK) == pytest.approx(516e-3, rel=0.01)
    scores, dense = 128 * total(layout, "prefill", load, "Attention", "flops"), 2 * 1_000_000 * 405.8e9
    assert scores + dense == pytest.approx(4.94e18, rel=0.01)
    assert scores / (scores + dense) == pytest.approx(0.84, abs=0.005)


def test_ulysses_sends_queries_keys_and_values_out_and_the_result_back(layout_of: LayoutOf) -> None:
    degrees = {"sp": 4, "tp": 2, "tp_ffn": 8, "sp_kind": "ulysses"}
    layout = layout_of("Llama-3.1-70B", degrees, decode=TP8, input_tokens=8192)
    load = TokenLoad(1, 8192, 0)
    there, back = (named(layout, "prefill", load, f"attention.{name}") for name in ("exchange", "return"))
    expected = 3 / 4 * (8192 / 4) * (2 * 64 + 2 * 8) * 128 * 2 / 2
    assert there.sent_bytes + back.sent_bytes == pytest.approx(expected)


@pytest.mark.parametrize(
    ("places", "reached"), [(1, 1.0), (4, 3.6), (8, 5.25), (18, 6.6), (32, 7.18), (72, 7.62), (144, 7.81), (320, 7.91)]
)
def test_distinct_destinations_of_a_token_with_eight_experts(places: int, reached: float) -> None:
    assert distinct_destinations(places, 8) == pytest.approx(reached, abs=0.01 if places > 18 else 0.05)


def test_a_token_costs_59_1_kb_out_and_114_7_kb_back_with_eight_copies(deepseek: LoadedLayout) -> None:
    """fp8 with 224 bytes of scales out, bf16 back: a combine is 1.94 dispatches."""
    load = TokenLoad(128, 1, 2048, 8)
    dispatch, combine = (named(deepseek, "decode", load, f"moe.{name}") for name in ("dispatch", "combine"))
    copies = 128 * distinct_destinations(8, 8) * 7 / 8
    assert 8 * dispatch.sent_bytes / copies == pytest.approx(59.1e3, rel=1e-3)
    assert 8 * combine.sent_bytes / copies == pytest.approx(114.7e3, rel=1e-3)
    assert combine.sent_bytes / dispatch.sent_bytes == pytest.approx(1.94, abs=0.005)


@pytest.mark.parametrize("case", CASES["exchanges"], ids=lambda case: case["name"])
def test_experts_are_reached_in_the_times_that_deepep_publishes_for_h800(
    case: dict[str, Any], deepseek: LoadedLayout
) -> None:
    # As kernels run alone: what an engine's results ask for on top is left out.
    engine = deepseek.setting.engine
    constants = engine.entry.constants.model_copy(update={"communication_scale": 1.0})
    plain = engine.model_copy(update={"entry": engine.entry.model_copy(update={"constants": constants})})
    links = Links(deepseek.setting.hardware, deepseek.setting.with_profile(plain).clock)
    routes = ExpertRoutes(Group(case["ranks"], case["ranks"] // 8, 8), 8, most_domains=4)
    copy_bytes = {"dispatch": 7392.0, "combine": 14_336.0}[case["phase"]]
    transfer = links.expert_exchange(case["phase"], case["tokens"], copy_bytes, routes)
    assert transfer.seconds * 1e6 == pytest.approx(case["us"], rel=case["tolerance"])


def test_routing_that_is_held_to_few_nodes_is_faster_over_many(deepseek: LoadedLayout) -> None:
    """arXiv 2412.19437 section 2.1.2: at most 4 nodes for each token."""
    links, group = Links(deepseek.setting.hardware, deepseek.setting.clock), Group(144, 18, 8)
    free, limited = (links.expert_exchange("dispatch", 4096, 7392.0, ExpertRoutes(group, 8, most)) for most in (0, 4))
    # 6.6 other nodes without the limit.
    assert limited.seconds / free.seconds == pytest.approx(4 / 6.6, rel=0.1)


def test_the_expert_phase_is_that_of_the_hottest_rank(layout_of: LayoutOf) -> None:
    def hottest(tokens: int, **stated: float) -> float:
        layout = layout_of("DeepSeek-V3", {"attention_dp": 32, "ep": 32}, nodes=4, **WIDE_EP, **stated)
        work = named(layout, "decode", TokenLoad(tokens, 1, 2048, 32), "moe.expert")
        return work.flops / (2 * tokens * 8 * 44_040_192)

    # Measured at EP32 (SGLang, 2025-05-05): balanced experts prefill 1.49 times as fast.
    assert hottest(64) == pytest.approx(1.49, abs=0.03)
    # The expected maximum of 32 near-normal loads of mean 16.
    assert hottest(2) == pytest.approx(1.66, abs=0.03)
    assert hottest(64, expert_imbalance=1.2) == pytest.approx(1.2)


def test_experts_under_tp_all_read_every_touched_expert_at_a_part_of_its_width(layout_of: LayoutOf) -> None:
    layout = layout_of("Mixtral-8x7B", {"tp": 8, "ep": 1, "tp_expert": 8}, relaxations=("tp_in_expert",))
    load = TokenLoad(64, 1, 1024)
    expert = named(layout, "decode", load, "moe.expert")
    weights = 8 * 3 * 4096 * 14_336 * 2 / 8
    assert weights <= expert.moved_bytes <= 1.02 * weights
    # No imbalance: every rank has the same part of every copy.
    assert expert.flops == pytest.approx(2 * 64 * 2 * 3 * 4096 * 14_336 / 8)


def test_attention_data_parallel_has_no_collective_of_its_own(deepseek: LoadedLayout) -> None:
    decode = operations(deepseek, "decode", TokenLoad(128, 1, 2048, 8))
    assert {operation.op for operation, _ in decode if operation.kind == "communication"} == {"AllToAll"}


def test_a_prompt_in_chunks_takes_as_many_steps_and_reads_its_prefix_again(layout_of: LayoutOf) -> None:
    whole, cut = (
        layout_of("Llama-3.1-70B", TP8, input_tokens=8192, serving={"prefill_chunk_tokens": chunk})
        for chunk in (8192, 2048)
    )
    timer = PhaseTimer(cut.setting, cut.phase("prefill"))
    read = [
        total(cut, "prefill", TokenLoad(1, 2048, start), "Attention", "moved_bytes") for start in range(0, 8192, 2048)
    ]
    again = sum(read) - total(whole, "prefill", TokenLoad(1, 8192, 0), "Attention", "moved_bytes")
    # 2048 + 4096 + 6144 tokens of the prefix, at 40,960 bytes on each device.
    assert again == pytest.approx((2048 + 4096 + 6144) * 40_960, rel=1e-6)
    passes = timer.prefill([TokenLoad(1, 2048, start) for start in range(0, 8192, 2048)])
    latency = estimate_layout(cut, ()).latency
    assert len(passes.cells) == 4 and latency.prefill_ms == pytest.approx(passes.seconds * 1e3)
