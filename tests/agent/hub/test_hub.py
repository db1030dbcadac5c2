"""A model by its Hugging Face id comes from the local cache, or from the Hub if that is allowed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.hub import fetch
from shardwright.agent.pipeline import plan
from shardwright.tools.catalog.models import find_model
from shardwright.tools.errors import InputError

from .hub_server import COMMIT, Hub, hub_running

# The config as published, without the catalogue's formats.
CONFIG = {name: value for name, value in find_model("Qwen3-8B").config.items() if name != "native_weight_dtype"}
CONFIG["num_hidden_layers"] = 20
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
TOKEN = "hf_never_shown_1234567890"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, without a token or a Hub of this machine."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "SHARDWRIGHT_ONLINE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return tmp_path / "hub"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_running() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        running.put("acme/Plain-7B", "config.json", CONFIG)
        running.put("acme/Slow-7B", "config.json", CONFIG)
        yield running


def keep(cache: Path, repository: str, files: dict[str, Any], *, is_main: bool = True) -> None:
    """Store files as the Hub's tools do: blobs, a snapshot of links to them, and the commit of `main`."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (folder / "blobs").mkdir()
    (folder / "refs").mkdir()
    for number, (name, value) in enumerate(files.items()):
        blob = folder / "blobs" / f"{number:040x}"
        blob.write_text(json.dumps(value))
        (snapshot / name).symlink_to(Path("../../blobs") / blob.name)
    if is_main:
        (folder / "refs" / "main").write_text(COMMIT)


def refused(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit status and the one line of a refused call; asserts that neither stream has the token."""
    capfd.readouterr()
    status = run(arguments)
    out, err = capfd.readouterr()
    assert TOKEN not in out + err
    assert err.count("\n") == 1, err
    return status, err


@pytest.mark.parametrize("is_main", [True, False])
def test_a_model_in_the_local_cache_is_planned_for_without_a_network(cache: Path, is_main: bool) -> None:
    keep(cache, "acme/odd-one", {"config.json": CONFIG}, is_main=is_main)
    planned = plan("Serve acme/odd-one on 1 H100, 1k in, 128 out").plan
    assert planned is not None and planned.model.name == "acme/odd-one"
    assert planned.model.config["num_hidden_layers"] == 20


@pytest.mark.parametrize("home", ["HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_found_where_the_tools_of_the_hub_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv(home, str(tmp_path))
    keep(tmp_path / ("hub" if home == "HF_HOME" else "huggingface/hub"), "acme/odd-one", {"config.json": CONFIG})
    assert find_model("acme/odd-one").architecture().num_layers == 20


def test_a_quantised_config_in_the_cache_says_the_format(cache: Path) -> None:
    keep(cache, "Qwen/Qwen2.5-7B-Instruct-AWQ", {"config.json": {**CONFIG, "quantization_config": AWQ}})
    assert find_model("Qwen/Qwen2.5-7B-Instruct-AWQ").architecture().native_precision == "int4"
    planned = plan("Serve Qwen/Qwen2.5-7B-Instruct-AWQ on 1 H100").plan
    assert planned is not None and planned.model.name == "Qwen/Qwen2.5-7B-Instruct-AWQ"
    assert planned.precision.weights == "int4" and planned.model.config["num_hidden_layers"] == 20


@pytest.mark.parametrize(
    ("file", "stated", "expected"),
    [
        ("hf_quant_config.json", {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, "fp8"),
        ("quantize_config.json", {"bits": 8, "group_size": 128, "desc_act": False}, "int8"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 128, "zero_point": True}, "int4"),
    ],
)
def test_how_a_checkpoint_is_quantised_may_stand_in_a_file_of_its_own(
    cache: Path, file: str, stated: dict[str, Any], expected: str
) -> None:
    keep(cache, "acme/odd-one", {"config.json": CONFIG, file: stated})
    assert find_model("acme/odd-one").architecture().native_precision == expected


def test_what_the_catalogue_knows_needs_neither_cache_nor_network(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_ONLINE", "1")
    planned = plan("Serve Qwen/Qwen3-8B on 1 H100").plan
    assert planned is not None and planned.model.name == "Qwen/Qwen3-8B"
    assert not hub.asked


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "Serve acme/Plain-7B on 1 H100"),
        ("plan", "--model", "acme/Plain-7B", "--hardware", "1x1:h100"),
        ("search", "--model", "acme/Plain-7B", "--hardware", "1x1:h100"),
        ("models", "acme/Plain-7B"),
    ],
)
def test_offline_one_line_says_how(hub: Hub, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, line = refused(capfd, *arguments)
    assert status == 2 and not hub.asked
    assert (
        "acme/Plain-7B is not in the catalogue nor in the local Hugging Face cache; --online fetches its config.json, "
        "or give --model path/to/config.json"
    ) in line


@pytest.mark.parametrize("name", ["acme/Plain-7B", "acme/Moved-7B"])
def test_a_model_is_fetched_once_and_then_kept_for_the_tools_of_the_hub(
    hub: Hub, cache: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["plan", "--online", f"Serve {name} on 1 H100"]) == 0
    count = len(hub.asked)
    assert run(["plan", f"Serve {name} on 1 H100"]) == 0
    out, err = capfd.readouterr()
    assert name in out and TOKEN not in out + err
    assert len(hub.asked) == count and hub.asked[0][:2] == ("GET", f"/{name}/resolve/main/config.json")
    assert hub.asked[0][2] == f"Bearer {TOKEN}"
    assert TOKEN not in "".join(path.read_text() for path in cache.rglob("*") if path.is_file())
    from huggingface_hub import try_to_load_from_cache

    assert isinstance(try_to_load_from_cache(name, "config.json", cache_dir=cache), str)


def test_how_a_fetched_checkpoint_is_quantised_is_fetched_too(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.put("acme/Plain-7B-GPTQ", "config.json", CONFIG)
    hub.put("acme/Plain-7B-GPTQ", "quantize_config.json", {"bits": 4, "group_size": 128})
    monkeypatch.setenv("SHARDWRIGHT_ONLINE", "1")
    planned = plan("Serve acme/Plain-7B-GPTQ on 1 H100").plan
    assert planned is not None and planned.precision.weights == "int4"


def test_a_brief_and_a_proposal_may_name_a_model_of_the_hub(
    hub: Hub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    brief, proposal = tmp_path / "brief.yaml", tmp_path / "proposal.json"
    brief.write_text("model: acme/Plain-7B\nhardware: 1 H100\n")
    proposal.write_text('{"model": "acme/Other-7B", "gpus": "2xH100", "parallel": "TP2", "isl": 512, "osl": 64}')
    hub.put("acme/Other-7B", "config.json", CONFIG)
    assert run(["plan", "--online", "--brief", str(brief)]) == 0
    assert run(["fix", "--online", str(proposal)]) == 0
    out = capfd.readouterr().out
    assert "acme/Plain-7B" in out and "acme/Other-7B" in out


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("acme/Gated-7B", 2, "acme/Gated-7B is gated on the Hugging Face Hub: accept its terms there and set HF_TOKEN"),
        ("acme/Terms-7B", 2, "acme/Terms-7B is gated on the Hugging Face Hub"),
        ("acme/Private-7B", 2, "is not on the Hugging Face Hub, or is private and HF_TOKEN does not open it"),
        ("acme/Nowhere-7B", 2, "acme/Nowhere-7B is not on the Hugging Face Hub, or is private"),
        ("acme/Weights-7B", 2, "acme/Weights-7B on the Hugging Face Hub has no config.json"),
        ("acme/Large-7B", 2, "config.json of acme/Large-7B is larger than 1 MB"),
        ("acme/Text-7B", 2, "config.json of acme/Text-7B on the Hugging Face Hub line 1: not JSON"),
        ("acme/Broken-7B", 3, "the Hugging Face Hub answered 503 for config.json of acme/Broken-7B"),
    ],
)
def test_what_the_hub_does_not_give_is_one_line(
    hub: Hub, capfd: pytest.CaptureFixture[str], name: str, status: int, expected: str
) -> None:
    hub.put("acme/Weights-7B", "model.gguf", "")
    hub.files["acme/Large-7B/config.json"] = b" " * 1_000_001
    hub.files["acme/Text-7B/config.json"] = b"<html>"
    exit_status, line = refused(capfd, "plan", "--online", "--model", name, "--hardware", "1x1:h100")
    assert expected in line
    assert exit_status == status


def test_a_slow_hub_is_given_up(hub: Hub, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MAX_SECONDS", 0.5)
    began = time.monotonic()
    status, line = refused(capfd, "models", "--online", "acme/Slow-7B")
    assert status == 3 and time.monotonic() - began < 8
    assert "the Hugging Face Hub did not send the config of acme/Slow-7B within 0.5 s" in line


def test_a_hub_out_of_reach_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    status, line = refused(capfd, "models", "--online", "acme/Plain-7B")
    assert status == 3 and "the Hugging Face Hub cannot be reached for acme/Plain-7B" in line


def test_without_the_extra_one_line_names_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, line = refused(capfd, "models", "--online", "acme/Plain-7B")
    assert status == 2 and "pip install 'shardwright[hub]'" in line


def test_a_slash_in_a_sentence_makes_no_model(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWRIGHT_ONLINE", "1")
    planned = plan("Serve Qwen3-8B on 1 H100/H100-80GB, 2k/256 tokens in/out, prefill/decode together").plan
    assert planned is not None and planned.model.name == "Qwen/Qwen3-8B"
    assert not hub.asked


@pytest.mark.parametrize("name", ["../etc/passwd", "acme/..", "a--b/c", "acme/x.json", "acme/model name", "/acme/x"])
def test_what_is_no_id_of_the_hub_is_looked_for_nowhere(hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("SHARDWRIGHT_ONLINE", "1")
    with pytest.raises(InputError):
        plan(model=name, hardware="1x1:h100")
    assert not hub.asked
