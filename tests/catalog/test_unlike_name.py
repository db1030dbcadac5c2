"""A model whose config differs from the checkpoint that it is named after: every use of the plan reports it."""

from __future__ import annotations

from typing import Any

import pytest

import shardwright
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.models import find_model
from shardwright.tools.catalog.unlike_name import unlike_name

NAME = "mistralai/Mistral-Small-24B-Instruct-2501"
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a hidden size": (NAME, {"hidden_size": 2560}, "hidden size 2,560 instead of 5,120"),
    "several dimensions": (
        NAME, {"num_key_value_heads": 4, "intermediate_size": 16384},
        "KV heads 4 instead of 8, FFN width 16,384 instead of 32,768",
    ),
    "what decides no split": (NAME, {"rope_theta": 1.0, "max_position_embeddings": 4096, "torch_dtype": "float16"}, ""),
    "a default stated": (NAME, {"attention_bias": False, "_name_or_path": "a/b"}, ""),
    "a name that no catalogue has": ("me/Mistral-Small-24B-Instruct-2501", {"hidden_size": 2560}, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_dimensions_unlike_those_of_the_name_are_told_and_nothing_else(case: str) -> None:
    name, changed, words = CASES[case]
    config = {**find_model(NAME).config, **changed}
    remarks = unlike_name({"name": name, "config": config}, read_architecture(config))
    assert len(remarks) == bool(words) and all(words in remark for remark in remarks)


def test_every_use_of_a_plan_tells_it() -> None:
    plan = shardwright.plan("Llama-3.2-1B on one L4, 512 in / 32 out").plan
    assert plan is not None
    raw = plan.model_dump(mode="json")
    assert not shardwright.validate(raw).remarks
    raw["model"]["config"]["intermediate_size"] //= 2
    report, exported, figures = shardwright.validate(raw), shardwright.export(raw, "vllm"), shardwright.estimate(raw)
    assert report.valid and exported.text is not None
    assert all("FFN width" in remarks[0] for remarks in (report.remarks, exported.remarks, figures.notes))
