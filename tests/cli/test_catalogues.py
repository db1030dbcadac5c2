"""`models`, `hardware`, `rules`: lists, one entry in full, the same as JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.catalog.hardware import all_accelerators
from shardwright.tools.catalog.models import all_models
from shardwright.tools.rules.registry import all_rules

from ..plan.tiny import DENSE, MLA


def output(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The standard output of a call that must succeed."""
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_every_model_is_listed_in_text_and_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    text = output(["models"], capsys)
    listed = json.loads(output(["models", "--format", "json"], capsys))["models"]
    assert [model["name"] for model in listed] == [entry.name for entry in all_models()]
    assert all(model["name"] in text for model in listed)


def test_one_model_is_shown_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(["models", "deepseek v3"], capsys)
    assert "671,026,419,200" in text
    assert "70,272 bytes per token" in text
    facts = json.loads(output(["models", "llama 3.1 70b", "--format", "json"], capsys))
    assert facts["kv_cache_bytes_per_token_bf16"] == 327_680
    assert facts["config"]["num_hidden_layers"] == 80


@pytest.mark.parametrize("way", ["path", "inline", "stdin"])
def test_a_config_of_one_s_own_is_shown_however_it_comes(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.dumps(MLA)
    path = tmp_path / "config.json"
    path.write_text(config)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(config.encode())))
    name = {"path": str(path), "inline": config, "stdin": "-"}[way]
    facts = json.loads(output(["models", name, "--format", "json"], capsys))
    assert facts["layers"] == 8
    assert facts["experts"] == 16
    assert facts["attention"][0]["kind"] == "mla"


def test_a_config_that_lacks_a_field_is_refused_by_the_field_s_name(capsys: pytest.CaptureFixture[str]) -> None:
    config = {key: value for key, value in DENSE.items() if key != "hidden_size"}
    assert run(["models", json.dumps(config)]) == 2
    assert "hidden_size" in capsys.readouterr().err


def test_every_accelerator_is_listed_in_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(["hardware"], capsys)
    listed = json.loads(output(["hardware", "--format", "json"], capsys))["accelerators"]
    assert [item["id"] for item in listed] == [item.id for item in all_accelerators()]
    assert all(item["id"] in text for item in listed)


def test_one_accelerator_is_shown_with_the_names_that_a_document_uses(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(["hardware", "H100"], capsys)
    assert "memory_bandwidth_gb_s" in text
    assert "3350" in text
    assert json.loads(output(["hardware", "H100", "--format", "json"], capsys))["id"] == "h100-sxm"


def test_every_rule_is_listed_in_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(["rules"], capsys)
    listed = json.loads(output(["rules", "--format", "json"], capsys))["rules"]
    assert [rule["id"] for rule in listed] == [rule.id for rule in all_rules()]
    assert all(rule["id"] in text for rule in listed)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("rule_id", [rule.id for rule in all_rules()])
def test_a_rule_is_explained_with_what_validation_finds_in_its_bad_example(
    rule_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(["rules", rule_id.lower()], capsys)
    bad, good = text.index("An example that breaks it"), text.index("An example that passes")
    assert f"{rule_id} " in text[bad:good]
    assert "Validation finds nothing." in text[good:]
    assert text.startswith(rule_id)
