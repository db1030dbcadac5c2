"""A name close to a model's is read if possible, and reported; a file named in words is that model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shardwright
from shardwright.agent.report.plan import render_plan
from shardwright.tools.errors import InputError

CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
SMALL = "512 in / 32 out"
TOLD = [
    ("Lama-3.1-8B", "Llama-3.1-8B"),
    ("lama 3.2 1b", "Llama-3.2-1B"),
    ("llama 8b", "Llama-3.1-8B"),
    ("Llama-3-1-8B", "Llama-3.1-8B"),
    ("Qwen25-7B", "Qwen2.5-7B"),
]
OWN_NAMES = ["Llama-3.1-8B", "meta-llama/Llama-3.1-8B", "llama-3.1-8b-instruct", "Qwen3-4B-FP8", "Qwen2.5-7B"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("written", "meant"), TOLD)
def test_a_name_that_was_mended_or_completed_is_said_back_in_the_first_lines(written: str, meant: str) -> None:
    in_words = shardwright.plan(f"Serve {written} on 2 H100, {SMALL}")
    stated = shardwright.plan(model=written, hardware="2xH100", input_tokens=512, output_tokens=32)
    for result in (in_words, stated):
        line = f"Assumed: {written!r} read as {meant}"
        assert line in render_plan(result, width=100).splitlines()[:3]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_models_own_name_is_no_assumption(name: str) -> None:
    result = shardwright.plan(f"Serve {name} on 2 H100, {SMALL}")
    assert result.report is not None
    assert not [fact for fact in result.report.assumptions if fact.field == "model" and fact.value is not None]


@pytest.mark.thorough
def test_a_slip_that_a_key_word_mends_is_told_with_the_name() -> None:
    result = shardwright.plan("Serve Mixtrl 8x7B on 8 H100")
    assert result.report is not None
    (reason,) = [assumption.reason for assumption in result.report.assumptions if assumption.field == "model"]
    assert "'Mixtrl' read as 'mixtral'" in reason


def test_a_stated_model_takes_the_place_of_a_mended_one() -> None:
    result = shardwright.plan(f"Serve Lama-3.1-70B on 2 H100, {SMALL}", model="Llama-3.2-1B")
    assert result.report is not None and result.plan is not None
    assert result.plan.model.name == "meta-llama/Llama-3.2-1B"
    assert not [assumption for assumption in result.report.assumptions if assumption.field == "model"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ours").mkdir()
    for place in (tmp_path, tmp_path / "ours"):
        (place / "config.json").write_text(json.dumps({**CONFIG, "name": f"own-{place.name[:4]}"}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "request_",
    [
        "Serve config.json on 2 H100",
        "Serve ./config.json on 2 H100, 512 in / 32 out.",
        "Plan for the model in ours/config.json on 2 H100",
        "Plan for the model in ./ours on 2 H100",
        "Serve {folder}/ours on 2 H100",
        "用2张H100部署config.json",
    ],
)
def test_a_config_named_in_words_is_the_model(request_: str, folder: Path) -> None:
    result = shardwright.plan(request_.replace("{folder}", str(folder)))
    assert result.plan is not None and result.report is not None
    assert result.plan.model.name.startswith("own-")
    assert result.report.not_acted_on == ()


def test_a_path_wins_over_a_name_inside_it(folder: Path) -> None:
    (folder / "Llama-3.1-70B").mkdir()
    (folder / "Llama-3.1-70B" / "config.json").write_text(json.dumps({**CONFIG, "name": "own"}))
    result = shardwright.plan("Serve ./Llama-3.1-70B on 2 H100")
    assert result.plan is not None and result.plan.model.name == "own"


def test_a_config_in_the_prose_of_a_brief_lies_beside_the_brief(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "ours" / "need.md").write_text("We serve config.json on 2 H100.\n\n512 tokens in, 32 out.\n")
    monkeypatch.chdir("/")
    result = shardwright.plan(brief=folder / "ours" / "need.md")
    assert result.plan is not None and result.plan.model.name == "own-ours"


def test_a_file_beside_a_named_model_is_not_opened_and_told(folder: Path) -> None:
    result = shardwright.plan(f"Serve Llama-3.2-1B on 2 H100, {SMALL}, as in config.json")
    assert result.plan is not None and result.report is not None
    assert result.plan.model.name == "meta-llama/Llama-3.2-1B"
    assert any("config.json" in line for line in result.report.not_acted_on)


@pytest.mark.parametrize("name", ["absent.json", "no/such/config.json", "./gone.json"])
def test_a_file_that_is_not_there_is_named(name: str, folder: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        shardwright.plan(f"Serve {name} on 2 H100")
