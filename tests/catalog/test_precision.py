"""Which tensors a named precision covers, and the weight and cache bytes that published figures give."""

from typing import Any

import pytest

from shardwright.tools.catalog.architecture import Architecture, WeightDTypes
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.dtypes import DType, WeightTensor, weight_bytes_per_element
from shardwright.tools.catalog.models import find_model
from shardwright.tools.catalog.precision import weight_dtypes

from ..plan.tiny import DENSE


def architecture(name: str) -> Architecture:
    return find_model(name).architecture()


def tensors(model: Architecture) -> list[tuple[int, WeightTensor]]:
    """(copies, tensor) for every weight tensor of the model."""
    counted = [(1, t) for t in (*model.embedding_tensors, *model.lm_head_tensors, *model.final_norm_tensors)]
    for layer in model.layers:
        if layer.attention is not None:
            counted += [(1, t) for t in layer.attention.tensors]
        if layer.ffn is not None:
            counted += [(1, t) for t in layer.ffn.tensors]
        if layer.moe is not None:
            counted += [(layer.moe.experts, t) for t in layer.moe.expert_tensors]
            counted += [(1, t) for t in layer.moe.router_tensors]
            counted += [(1, t) for t in (layer.moe.shared.tensors if layer.moe.shared else ())]
    return counted


def weight_gb(name: str, weights: DType) -> float:
    model = architecture(name)
    formats = weight_dtypes(model, weights)
    return sum(n * t.elements * weight_bytes_per_element(formats.of(t.tensor_class)) for n, t in tensors(model)) / 1e9


def cache_bytes_per_token(name: str) -> int:
    return 2 * sum(layer.attention.cache_elements_per_token for layer in architecture(name).layers if layer.attention)


def test_llama_3_1_70b_takes_141_gb_in_bf16() -> None:
    assert weight_gb("Llama-3.1-70B", "bf16") == pytest.approx(141.1, abs=0.05)


def test_llama_3_1_405b_in_fp8_keeps_its_vocabulary_in_bf16() -> None:
    formats = weight_dtypes(architecture("Llama-3.1-405B"), "fp8")
    assert formats == WeightDTypes("fp8", "fp8", "fp8", vocabulary="bf16", router="bf16", norm="bf16")
    # 401.65e9 matmul weights at 1.00024 bytes and 4.2e9 vocabulary weights at 2 (TP8: 51.3 GB a GPU).
    assert weight_gb("Llama-3.1-405B", "fp8") / 8 == pytest.approx(51.3, abs=0.05)


def test_one_expert_of_deepseek_v3_has_44_million_weights() -> None:
    moe = architecture("DeepSeek-V3").layers[3].moe
    assert moe is not None and sum(t.elements for t in moe.expert_tensors) == 44_040_192


def test_deepseek_v3_attention_has_187_million_weights_of_which_15_are_replicated() -> None:
    attention = architecture("DeepSeek-V3").layers[0].attention
    assert attention is not None
    matrices = [t for t in attention.tensors if t.tensor_class == "attention"]
    assert sum(t.elements for t in matrices) == 187_105_280
    assert sum(t.elements for t in matrices if t.split == "replicated") == pytest.approx(15.14e6, rel=1e-3)


def test_gpt_oss_120b_experts_take_61_gb_in_mxfp4() -> None:
    assert weight_dtypes(architecture("gpt-oss-120b"), "mxfp4").expert == "mxfp4"
    assert weight_gb("gpt-oss-120b", "mxfp4") == pytest.approx(60.9 + 4.3, abs=0.3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama-3.1-70B", 327_680),
        ("DeepSeek-V3", 70_272),
        ("Llama-2-7b-hf", 524_288),
        ("falcon-7b", 8_192),
        ("Qwen3-235B-A22B", 192_512),
        ("DeepSeek-V3.2", 70_272 + 61 * 128 * 2),
        ("GLM-5", 2 * (44_928 + 78 * 128)),
    ],
)
def test_cache_bytes_per_token_in_bf16_are_the_published_ones(name: str, expected: int) -> None:
    assert cache_bytes_per_token(name) == expected


def test_the_full_layers_of_gpt_oss_120b_cache_36864_bytes_per_token() -> None:
    specs = [layer.attention for layer in architecture("gpt-oss-120b").layers]
    full = [spec for spec in specs if spec is not None and spec.kind == "full"]
    assert len(full) == 18 and 2 * sum(spec.cache_elements_per_token for spec in full) == 36_864
    windows = [spec for spec in specs if spec is not None and spec.kind == "sliding"]
    assert 2 * sum(spec.cache_elements_per_token * (spec.window_tokens or 0) for spec in windows) == 4_718_592


def test_mimo_caches_keys_and_values_of_different_widths() -> None:
    attention = architecture("MiMo-V2-Flash").layers[0].attention
    assert attention is not None and attention.cache_elements_per_token == 4 * (192 + 128)


@pytest.mark.parametrize(
    ("name", "weights", "linear", "expert", "rest"),
    [
        ("gpt-oss-120b", "mxfp4", "bf16", "mxfp4", "bf16"),
        ("gpt-oss-120b", "fp4", "bf16", "mxfp4", "bf16"),
        ("gpt-oss-120b", "bf16", "bf16", "bf16", "bf16"),
        ("Kimi-K2.5", "int4", "bf16", "int4", "bf16"),
        ("DeepSeek-V4-Pro", "fp4", "fp8", "fp4", "bf16"),
        ("DeepSeek-V3", "fp8", "fp8", "fp8", "bf16"),
        ("DeepSeek-V3", "nvfp4", "fp8", "nvfp4", "bf16"),
        ("Qwen3-235B-A22B", "int4", "bf16", "int4", "bf16"),
        ("Llama-3.1-70B", "int4", "int4", "int4", "bf16"),
        ("Llama-3.1-70B", "int8", "int8", "int8", "bf16"),
        ("Llama-2-70b-hf", "int4", "int4", "int4", "fp16"),
        ("Llama-2-70b-hf", "fp16", "fp16", "fp16", "fp16"),
    ],
)
def test_a_precision_covers_what_it_says(name: str, weights: DType, linear: str, expert: str, rest: str) -> None:
    formats = weight_dtypes(architecture(name), weights)
    assert (formats.linear, formats.expert) == (linear, expert)
    assert {formats.vocabulary, formats.router, formats.norm} == {rest}


_MLP_ALONE = ["lm_head", "model.layers.*.self_attn*"]
_NORMS_ALONE = ["lm_head", "model.layers.*.self_attn.q_norm"]
_QUANTISED: list[tuple[dict[str, Any], DType]] = [
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}, "nvfp4"),
    ({"quant_method": "fbgemm_fp8"}, "fp8"),
]
_EVERY_LAYER = [f"model.layers.{layer}.self_attn.q_proj" for layer in range(2)]


@pytest.mark.parametrize(
    ("ignored", "is_left"),
    [
        (_MLP_ALONE, True),
        (_EVERY_LAYER, True),
        (_EVERY_LAYER[:1], False),
        (["lm_head"], False),
        (_NORMS_ALONE, False),
    ],
)
@pytest.mark.parametrize(("quantised", "name"), _QUANTISED)
def test_attention_that_a_checkpoint_leaves_alone_stays_wide(
    quantised: dict[str, Any], name: DType, ignored: list[str], is_left: bool
) -> None:
    left_alone = {"fp8": "modules_to_not_convert"}.get(name, "ignore")
    config = {**DENSE, "num_hidden_layers": 2, "quantization_config": {**quantised, left_alone: ignored}}
    model = read_architecture(config)
    formats = weight_dtypes(model, model.native_precision)
    assert (formats.attention, formats.linear) == ("bf16" if is_left else name, name)
    # A precision other than the checkpoint's covers all matmuls.
    assert {weight_dtypes(model, "int8").attention, weight_dtypes(model, "int8").linear} == {"int8"}


def test_nvidia_s_gemma_4_takes_what_is_published_of_it() -> None:
    """31 GiB with a vision tower of some 1.1 (its GGUF maker's table); with attention quantised it would be 18.5."""
    model = architecture("nvidia/Gemma-4-31B-IT-NVFP4")
    formats = weight_dtypes(model, "nvfp4")
    total = sum(n * t.elements * weight_bytes_per_element(formats.of(t.tensor_class)) for n, t in tensors(model))
    assert total / 2**30 == pytest.approx(31 - 1.1, rel=0.04)
