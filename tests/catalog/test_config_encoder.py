"""Vision encoders of composite checkpoints take memory beside the decoder."""

import pytest

from shardwright.tools.catalog.models import find_model, load_model
from shardwright.tools.errors import InputError

ENCODER = {"hidden_size": 1152, "num_hidden_layers": 27, "intermediate_size": 4304}


@pytest.mark.parametrize(
    ("kind", "sizes", "published"),
    [
        # SigLIP-So400m/14 (HF card: 428 million with its head); the encoders of Gemma 4 31B (569,550,384), of Mistral
        # Large 3 (2.5 billion by its model card) and of Qwen2.5-VL-7B (0.67 billion with its merger).
        ("siglip_vision_model", ENCODER, 428e6),
        ("gemma4_vision", ENCODER, 569_550_384),
        ("pixtral", {"hidden_size": 1664, "num_hidden_layers": 48, "intermediate_size": 8192}, 2.5e9),
        ("qwen2_5_vl", {"hidden_size": 1280, "depth": 32, "intermediate_size": 3420}, 0.67e9),
    ],
)
def test_an_encoders_layers_are_nearly_all_of_its_published_size(
    kind: str, sizes: dict[str, int], published: float
) -> None:
    config = {**find_model("Qwen3-8B").config, "vision_config": {"model_type": kind, **sizes}}
    assert 0.93 < load_model(config).architecture().encoder_params / published < 1.0


def test_an_encoder_is_no_part_of_the_decoder() -> None:
    plain = dict(find_model("Qwen3-8B").config)
    seeing = load_model({**plain, "vision_config": {"model_type": "siglip_vision_model", **ENCODER}}).architecture()
    assert seeing.total_params == load_model(plain).architecture().total_params
    assert load_model(plain).architecture().encoder_params == 0


@pytest.mark.parametrize("part", ["siglip", [], {"model_type": "siglip_vision_model", "hidden_size": -1}])
def test_a_broken_encoder_is_refused_by_its_name(part: object) -> None:
    with pytest.raises(InputError, match="vision_config"):
        load_model({**find_model("Qwen3-8B").config, "vision_config": part}).architecture()
