"""Memory per device: worked numbers, the union of two phases' slices, and what always holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.performance.budget import communication_buffer_bytes
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.memory import device_memory, fits, max_concurrency, shortfall_bytes
from shardwright.tools.performance.request_memory import all_layers, bytes_per_token, request_bytes
from shardwright.tools.performance.weights import covered_share, kv_slice, loaded_bytes

from ..examples import examples

CASES = json.loads((Path(__file__).parents[1] / "cases" / "weights_per_device.json").read_text())["rows"]
TP8 = {"tp": 8, "tp_ffn": 8}


def fullest(layout: LoadedLayout) -> int:
    return max(device.weights_bytes for device in device_memory(layout).per_device)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_weights_of_the_fullest_device_are_the_worked_number(case: dict[str, Any], layout_of: Any) -> None:
    layout = layout_of(case["model"], case["degrees"], **case.get("options", {}))
    assert fullest(layout) / 1e9 == pytest.approx(case["expected_gb"], abs=case["tolerance_gb"])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Llama-3.1-70B", 327_680),
        ("DeepSeek-V3", 70_272),
        ("Llama-2-7B", 524_288),
        ("falcon-7b", 8_192),
        ("Qwen3-235B-A22B", 192_512),
    ],
)
def test_kv_bytes_per_token_of_each_attention_kind(model: str, expected: int, layout_of: Any) -> None:
    setting = layout_of(model, input_tokens=1024, output_tokens=64).setting
    assert bytes_per_token(setting) == expected


def test_gpt_oss_grows_by_its_full_layers_alone_beyond_the_window(layout_of: Any) -> None:
    setting = layout_of("gpt-oss-120b", input_tokens=8192).setting
    assert bytes_per_token(setting) == 36_864
    growth = request_bytes(setting, all_layers(setting), 8001) - request_bytes(setting, all_layers(setting), 8000)
    assert growth == 36_864
    window_part = request_bytes(setting, all_layers(setting), 8000) - 8000 * 36_864
    assert window_part == pytest.approx(4.7e6, rel=0.01)


def test_70b_at_tp8_keeps_40960_bytes_per_token_on_each_gpu(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-70B", TP8, input_tokens=7168, output_tokens=1024, concurrency=3)
    assert {device.kv_cache_bytes for device in device_memory(layout).per_device} == {3 * 8192 * 40_960}


def test_heads_repeat_beyond_the_kv_heads_and_mla_is_never_cut(layout_of: Any) -> None:
    qwen = layout_of("Qwen3-235B-A22B", {"tp": 8, "ep": 8}).setting
    layers = all_layers(qwen)
    assert request_bytes(qwen, layers, 1000, tp=8) == request_bytes(qwen, layers, 1000, tp=4)
    assert request_bytes(qwen, layers, 1000, tp=4) * 4 == request_bytes(qwen, layers, 1000)
    deepseek = layout_of("DeepSeek-V3", {"tp": 8, "tp_ffn": 8, "ep": 8}).setting
    layers = all_layers(deepseek)
    assert request_bytes(deepseek, layers, 1000, tp=8) == request_bytes(deepseek, layers, 1000)


def test_linear_layers_hold_a_constant_state(layout_of: Any) -> None:
    setting = layout_of("Qwen3-Next-80B-A3B").setting
    linear = next(i for i, layer in enumerate(setting.architecture.layers) if layer.attention.kind == "linear")
    assert request_bytes(setting, (linear, linear), 100) == request_bytes(setting, (linear, linear), 100_000) > 0


def test_attention_dp_keeps_only_the_groups_own_requests(layout_of: Any) -> None:
    options = {"weights": "fp8", "accelerator": "h200-sxm", "concurrency": 64}
    together = layout_of("DeepSeek-V3", {"tp": 8, "tp_ffn": 8, "ep": 8}, **options)
    apart = layout_of("DeepSeek-V3", {"attention_dp": 8, "ep": 8}, relaxations=("attention_dp",), **options)
    assert device_memory(together).per_device[0].kv_cache_bytes == 8 * device_memory(apart).per_device[0].kv_cache_bytes


def test_kv_split_over_decode_ranks_divides_the_tokens(layout_of: Any) -> None:
    whole = layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 8}, decode={"tp": 4, "tp_ffn": 8}, concurrency=8)
    split = layout_of(
        "Llama-3.1-70B",
        {"tp": 8, "tp_ffn": 8},
        decode={"tp": 4, "kv_sp": 2, "tp_ffn": 8},
        concurrency=8,
        relaxations=("kv_sequence_decode",),
    )
    assert device_memory(split).per_device[0].kv_cache_bytes * 2 == device_memory(whole).per_device[0].kv_cache_bytes


def test_a_pipeline_stage_caches_its_own_layers_only(layout_of: Any) -> None:
    whole = layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4}, gpus_per_node=4)
    staged = layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2})
    assert device_memory(staged).per_device[0].kv_cache_bytes * 2 == device_memory(whole).per_device[0].kv_cache_bytes


def test_a_tied_table_lies_on_both_ends_and_once_on_one_stage(layout_of: Any) -> None:
    single, staged = layout_of("Llama-3.2-1B", {}), layout_of("Llama-3.2-1B", {"pp": 2})
    table = 128_256 * 2048 * 2
    per_device = device_memory(staged).per_device
    whole = device_memory(single).per_device[0].weights_bytes
    assert per_device[0].weights_bytes + per_device[1].weights_bytes == pytest.approx(whole + table, abs=4)


def test_equal_phases_hold_their_weights_once(layout_of: Any) -> None:
    both = layout_of("Llama-3.1-70B", TP8)
    apart = layout_of("Llama-3.1-70B", TP8 | {"replicas": 1}, decode=TP8 | {"replicas": 1}, nodes=2, dp=2)
    assert {device.weights_bytes for device in device_memory(both).per_device} == {
        device.weights_bytes for device in device_memory(apart).per_device
    }


def test_other_degrees_of_decode_hold_the_union_of_both_slices(layout_of: Any) -> None:
    prefill = {"tp": 2, "sp": 4, "tp_ffn": 8}
    mixed = device_memory(layout_of("Llama-3.1-70B", prefill, decode=TP8)).per_device
    only = device_memory(layout_of("Llama-3.1-70B", prefill, decode=prefill)).per_device
    # Rank 0 of 8 lies inside rank 0 of 2; rank 7 of 8 lies inside rank 1 of 2: nothing is added there.
    assert mixed[0].weights_bytes == only[0].weights_bytes
    assert mixed[7].weights_bytes == only[7].weights_bytes
    # Device 2 has tensor rank 0 of 2 in prefill ([0, 1/2)) and rank 2 of 8 in decode ([1/4, 3/8)): inside as well;
    # device 1 has rank 1 of 2 and rank 1 of 8: beside it, so one eighth of attention comes on top.
    assert mixed[2].weights_bytes == only[2].weights_bytes
    attention = 80 * 150_994_944 * 2 / 8
    assert mixed[1].weights_bytes - only[1].weights_bytes == pytest.approx(attention, rel=1e-3)


@given(
    st.lists(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))), min_size=1, max_size=4)
)
def test_a_union_of_slices_is_between_the_largest_and_the_sum(slices: list[tuple[int, int]]) -> None:
    covered = covered_share(slices)
    assert covered >= max(1 / parts for _, parts in slices) - 1e-12
    assert covered <= min(1.0, sum(1 / parts for _, parts in set(slices))) + 1e-12


def test_kv_projections_repeat_whole_heads() -> None:
    assert kv_slice((3, 4), 8) == (3, 4)
    assert [kv_slice((rank, 8), 4) for rank in range(8)] == [(rank // 2, 4) for rank in range(8)]


def test_one_device_needs_no_communication_buffers() -> None:
    assert communication_buffer_bytes(1) == 0
    assert 0 < communication_buffer_bytes(2) < communication_buffer_bytes(8)


def test_a_prefill_only_replica_holds_the_prompts_in_flight(layout_of: Any) -> None:
    layout = layout_of(
        "Llama-3.1-70B", TP8 | {"replicas": 1}, decode=TP8 | {"replicas": 1}, nodes=2, dp=2, concurrency=64
    )
    per_device = {device.device: device for device in device_memory(layout).per_device}
    assert per_device["n1.g0"].kv_cache_bytes == 64 * (2048 + 256) * 40_960
    # One prompt in its only stage, one on its way.
    assert per_device["n0.g0"].kv_cache_bytes == 2 * 2048 * 40_960


@pytest.mark.parametrize(
    ("model", "degrees", "options"),
    [
        ("Llama-3.1-70B", TP8, {}),
        ("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2}, {"decode": TP8}),
        ("Llama-3.1-8B", {}, {"dp": 4}),
        ("DeepSeek-V3", {"attention_dp": 8, "ep": 8}, {"weights": "fp8", "accelerator": "h200-sxm"}),
        ("Qwen3-Next-80B-A3B", {"tp": 2, "tp_ffn": 2, "ep": 4}, {}),
        ("Llama-3.1-405B", TP8, {}),
    ],
)
def test_the_most_requests_that_fit_fit_and_one_more_per_replica_does_not(
    model: str, degrees: dict[str, Any], options: dict[str, Any], layout_of: Any
) -> None:
    layout = layout_of(model, degrees, **options)
    most = max_concurrency(layout)
    if most == 0:
        assert not fits(layout, 1)
        return
    assert fits(layout, most)
    assert not fits(layout, most + 1)


def test_405b_bf16_does_not_fit_eight_80_gb_gpus_and_the_shortfall_is_stated(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-405B", TP8)
    device = device_memory(layout).per_device[0]
    assert shortfall_bytes(layout) == device.total_bytes - device.usable_bytes > 20e9


def test_the_four_terms_add_up(layout_of: Any) -> None:
    for device in device_memory(layout_of("DeepSeek-V3", {"tp": 8, "tp_ffn": 8, "ep": 8}, weights="fp8")).per_device:
        assert device.total_bytes == (
            device.weights_bytes + device.kv_cache_bytes + device.activation_bytes + device.communication_bytes
        )


def test_activations_of_an_8k_prefill_are_hidden_states_and_the_wider_projection(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-70B", TP8, input_tokens=8192, relaxations=("vocab_parallel",))
    # 2 x 134 MB of hidden states, gate and up 117 MB, and the logits of one position.
    assert device_memory(layout).per_device[0].activation_bytes == pytest.approx(2 * 134.2e6 + 117.4e6, rel=0.01)


@examples(40)
@given(
    model=st.sampled_from(["Llama-3.1-70B", "Mixtral-8x7B", "DeepSeek-V3", "gpt-oss-120b", "Llama-3.2-1B"]),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 4]),
)
def test_weights_per_device_never_grow_with_tp_or_pp(model: str, tp: int, pp: int, layout_of: Any) -> None:
    def weight_bytes(tp: int, pp: int) -> int:
        layout = layout_of(model, {"tp": tp, "tp_ffn": tp, "pp": pp, "ep": tp}, nodes=8)
        return fullest(layout)

    narrow = weight_bytes(tp, pp)
    assert weight_bytes(2 * tp, pp) <= narrow
    assert weight_bytes(tp, 2 * pp) <= narrow


@examples(30)
@given(concurrency=st.integers(1, 500), more=st.integers(1, 500), dp=st.sampled_from([1, 2, 4]))
def test_more_requests_never_need_less_memory(concurrency: int, more: int, dp: int, layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2}, dp=dp)
    assert shortfall_bytes(layout, concurrency) <= shortfall_bytes(layout, concurrency + more)


@pytest.mark.parametrize(
    ("model", "options", "gb"),
    [
        ("Llama-3.1-8B", {"weights": "bf16"}, 16.06),
        ("Llama-3.1-8B", {"weights": "fp8"}, 16.06),
        ("Llama-3.1-8B", {"weights": "fp8", "serving": {"engine": "tensorrt-llm"}}, 9.08),
        ("DeepSeek-V3", {"weights": "fp8"}, 671 + 2),
    ],
    ids=["as it is", "vLLM makes fp8 of 16 bits", "an fp8 checkpoint is wanted", "published in fp8"],
)
def test_a_replica_loads_what_is_stored(model: str, options: dict[str, Any], gb: float, layout_of: Any) -> None:
    assert loaded_bytes(layout_of(model, **options).setting) / 1e9 == pytest.approx(gb, rel=0.01)
