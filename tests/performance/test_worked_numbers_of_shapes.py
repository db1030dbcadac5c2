"""Figures of shapes that anybody can work out by hand: weights, cache, experts touched, ridges, forms of attention.

Counts are exact but for the rounding of the published figure. Shapes are those of the models' own config.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.attention.spec import causal_pairs
from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.programs.attention_core import absorbed_flops, latent_attention, naive_flops
from shardwright.tools.performance.programs.expert_delivery import active_experts
from shardwright.tools.performance.request_memory import bytes_per_token

LayoutOf = Callable[..., LoadedLayout]
CASES = json.loads((Path(__file__).parents[1] / "cases" / "worked_numbers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["touched_experts"], ids=lambda case: f"{case['tokens']} tokens")
def test_distinct_experts_that_a_batch_touches_in_deepseek(case: dict[str, int]) -> None:
    assert round(active_experts(256, 8, case["tokens"])) == case["experts"]


def test_all_experts_of_a_layer_weigh_11_3_gb_in_fp8(layout_of: LayoutOf) -> None:
    deepseek = layout_of("DeepSeek-V3", {"attention_dp": 8, "ep": 8}, weights="fp8", relaxations=("attention_dp",))
    moe = next(layer.moe for layer in deepseek.setting.architecture.layers if layer.moe is not None)
    assert moe.experts * deepseek.setting.tensor_bytes(moe.expert_tensors).total == pytest.approx(11.3e9, rel=5e-3)


def test_latent_attention_expands_its_prefix_from_170_new_tokens_on() -> None:
    shape = LatentAttention(1, 1, 0, 128, latent=512, rope=64, nope=128, value=128, kv="bf16")
    assert (naive_flops(shape, 1.0, 0.0), absorbed_flops(shape, 1.0)) == (81_920, 278_528)
    assert naive_flops(shape, 0.0, 1.0) == pytest.approx(33.6e6, rel=2e-3)
    expands = [
        new for new in range(1, 400)
        if latent_attention(shape, causal_pairs(new, 50_000), 50_000, 0.0, 0.0).flops
        < absorbed_flops(shape, causal_pairs(new, 50_000))
    ]  # fmt: skip
    assert expands == list(range(expands[0], 400))
    assert expands[0] == pytest.approx(170, abs=5)


@pytest.mark.parametrize("case", CASES["ridges"], ids=lambda case: f"{case['accelerator']} {case['dtype']}")
def test_flops_per_byte_of_an_accelerator(case: dict[str, Any]) -> None:
    facts = hardware_facts(case["accelerator"], 1, 1)
    assert facts.peak_flops(case["dtype"]) / facts.memory_bandwidth_bytes_s == pytest.approx(
        case["flop_per_byte"], abs=0.6
    )


@pytest.mark.parametrize("case", CASES["layer_weights"], ids=lambda case: case["name"])
def test_weights_of_the_parts_of_a_layer(case: dict[str, Any], layout_of: LayoutOf) -> None:
    layer = layout_of(case["model"], {}).setting.architecture.layers[-1]
    tensors = {
        "attention": layer.attention and layer.attention.tensors,
        "ffn": layer.ffn and layer.ffn.tensors,
        "expert": layer.moe and layer.moe.expert_tensors,
    }[case["part"]]
    assert tensors
    assert sum(tensor.elements for tensor in tensors if tensor.tensor_class != "norm") == case["elements"]


@pytest.mark.parametrize("case", CASES["cache"], ids=lambda case: case["name"])
def test_cache_bytes_of_one_more_token(case: dict[str, Any], layout_of: LayoutOf) -> None:
    layout = layout_of(case["model"], {}, kv_cache=case.get("kv_cache", "bf16"), input_tokens=1024, output_tokens=512)
    assert bytes_per_token(layout.setting) == case["bytes_per_token"]
