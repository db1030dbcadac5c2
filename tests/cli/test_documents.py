"""`validate`, `estimate` and `expand` of a document: formats, statuses, standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.plan.document import PhaseStrategy
from shardwright.tools.rules.base import Edit, Example
from shardwright.tools.rules.examples import apply, base_plan
from shardwright.tools.rules.registry import find_rule

from ..plan.tiny import DENSE, tiny_plan

VIOLATION_KEYS = {"rule", "severity", "message", "nodes", "edges", "path", "fix", "source"}


@pytest.fixture(scope="module")
def plan_text() -> str:
    """A small valid plan: two stages of two GPUs."""
    return tiny_plan(DENSE, PhaseStrategy(pp=2, tp=2, tp_ffn=2)).model_dump_json()


@pytest.fixture
def plan_file(tmp_path: Path, plan_text: str) -> Path:
    """The small valid plan in a file."""
    path = tmp_path / "plan.json"
    path.write_text(plan_text)
    return path


def broken(plan_text: str) -> dict[str, Any]:
    """The plan with a GPU count that differs from its graph's, and an edge to nowhere."""
    document = json.loads(plan_text)
    document["strategy"]["gpu_count"] = 5
    document["edges"].append({"source": "request", "target": "nowhere", "type": "data"})
    return document


def test_a_valid_plan_has_status_0_and_says_so(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(plan_file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Valid: {plan_file}")
    assert err == ""


def test_violations_have_status_1_and_each_names_rule_place_and_remedy(
    tmp_path: Path, plan_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken(plan_text)))
    assert run(["validate", str(path)]) == 1
    text = capsys.readouterr().out
    assert "NOT valid" in text.split("\n", maxsplit=1)[0]
    assert "GP001" in text
    assert "ST002" in text
    assert "/strategy/gpu_count" in text
    assert "to mend:" in text
    assert "why: shardwright explain" in text


def test_the_json_of_violations_has_the_keys_of_the_contract_and_nothing_else_is_printed(
    tmp_path: Path, plan_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(broken(plan_text)))
    assert run(["validate", str(path), "--format", "json"]) == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["valid"] is False
    assert report["errors"] == len([v for v in report["violations"] if v["severity"] == "error"])
    assert all(set(violation) >= VIOLATION_KEYS for violation in report["violations"])
    assert err == ""


def stdin_of(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_dash_is_standard_input(
    plan_text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin_of(monkeypatch, plan_text.encode())
    assert run(["validate", "-"]) == 0
    assert capsys.readouterr().out.startswith("Valid: standard input")


@pytest.mark.parametrize("command", ["validate", "estimate", "expand"])
@pytest.mark.parametrize(
    "data",
    [b"", b"not json", b"[1, 2]", b"{", b"\xff\xfe", b'{"a": ' + b"[" * 100_000],
    ids=["empty", "prose", "array", "cut off", "not UTF-8", "deep"],
)
def test_what_is_no_json_object_is_one_line_and_status_2(
    command: str, data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin_of(monkeypatch, data)
    assert run([command, "-"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "standard input" in err


@pytest.mark.parametrize("command", ["validate", "estimate", "expand", "show", "export"])
@pytest.mark.parametrize("place", ["argument", "file", "standard input"])
def test_what_starts_an_engine_in_place_of_a_plan_is_one_line_that_points_to_import(
    command: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = "vllm serve Qwen/Qwen3-32B -tp 4"
    (tmp_path / "launch.sh").write_text(launch)
    stdin_of(monkeypatch, launch.encode())
    source = {"argument": launch, "file": str(tmp_path / "launch.sh"), "standard input": "-"}[place]
    assert run([command, source, *(("--to", "sglang") if command == "export" else ())]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "shardwright import " in err


@pytest.mark.parametrize("command", ["estimate", "expand"])
def test_an_object_that_is_no_plan_is_refused_with_its_first_fault(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin_of(monkeypatch, b'{"format": "shardwright/plan", "nodes": 3}')
    assert run([command, "-"]) == 2
    err = capsys.readouterr().err
    assert "not a plan document" in err
    assert err.count("\n") == 1


def test_an_object_that_is_no_plan_is_no_crash_of_validate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin_of(monkeypatch, b'{"nodes": [{"id": "\\u001b[31m", "type": 3}]}')
    assert run(["validate", "-"]) == 1
    out = capsys.readouterr().out
    assert "ST001" in out
    assert "\x1b" not in out


def test_the_estimate_has_the_keys_of_the_contract(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", str(plan_file), "--format", "json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert set(figures) >= {"latency", "throughput", "memory", "critical_path", "calibration"}
    parts = {"compute_ms", "memory_ms", "communication_ms", "bubble_ms"}
    assert set(figures["latency"]["prefill"]) == parts
    assert set(figures["latency"]["decode_step"]) == parts
    assert {device["device"] for device in figures["memory"]["per_device"]} == {f"n0.g{g}" for g in range(4)}


@pytest.mark.parametrize("command", [["estimate"], ["expand", "--fold"]], ids=" ".join)
def test_what_is_told_of_a_plan_that_breaks_rules_has_status_1_and_names_them(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cyclic.json"
    back = {"source": "r0.decode.s0.b0", "target": "r0.decode.s0.emb", "type": "data"}
    path.write_text(json.dumps(apply(Example("dense-1", (Edit("add_edge", value=back),)))))
    assert run([*command, str(path)]) == 1
    out, err = capsys.readouterr()
    assert out and err == f"{path} breaks ST004; see shardwright validate\n"


def test_an_estimate_that_is_refused_says_so_in_one_line(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(plan_file.read_text())
    del document["model"]["config"]["num_attention_heads"]
    plan_file.write_text(json.dumps(document))
    assert run(["estimate", str(plan_file)]) == 2
    assert "num_attention_heads" in capsys.readouterr().err.splitlines()[0]


def test_the_cost_is_at_the_price_that_is_stated(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def cost(price: str) -> dict[str, Any]:
        assert run(["estimate", str(plan_file), "--usd-per-gpu-hour", price, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)["cost"]

    assert cost("2")["unit"] == "usd"
    assert cost("4")["per_million_output_tokens"] == pytest.approx(2 * cost("2")["per_million_output_tokens"])


def test_the_estimate_as_text_says_where_time_and_memory_go(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["estimate", str(plan_file)]) == 0
    text = capsys.readouterr().out
    assert "TTFT" in text
    assert "n0.g0" in text
    assert "90%" in text


def test_the_expansion_names_every_gpu_and_folded_or_not_it_computes_the_same(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def table(*options: str) -> list[str]:
        assert run(["expand", str(plan_file), "--phase", "decode", *options]) == 0
        lines = capsys.readouterr().out.split("\n")
        return [line for line in lines if line.startswith(("  Linear", "  Attention", "  AllReduce"))]

    assert len(table()) >= 5
    assert table() == table("--fold")


def test_the_json_of_an_expansion_is_of_the_format_for_one_phase_or_both(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["expand", str(plan_file), "--format", "json", "--fold"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert [both[phase]["phase"] for phase in ("prefill", "decode")] == ["prefill", "decode"]
    assert run(["expand", str(plan_file), "--format", "json", "--no-fold", "--phase", "decode"]) == 0
    single = json.loads(capsys.readouterr().out)
    assert single["format"] == "shardwright/execution"
    assert len(single["nodes"]) > len(both["decode"]["nodes"])
    assert {"id", "op", "phase", "input_shape", "output_shape", "dtype", "flops", "bytes", "comm_bytes"} <= set(
        single["nodes"][0]
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dag.json", ["--format", "json"]),
        ("dag.dot", ["--dot"]),
        ("dag.gv", ["--dot"]),
        ("dag.svg", ["--svg"]),
        ("dag.txt", []),
    ],
)
def test_an_expansion_in_a_file_is_what_would_be_printed_and_its_ending_says_the_form(
    name: str, options: list[str], plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["expand", str(plan_file), "--fold", *options]) == 0
    printed = capsys.readouterr().out
    for place, stated in (("by-ending", []), ("stated", options)):
        written = tmp_path / place / name
        written.parent.mkdir()
        assert run(["expand", str(plan_file), "--fold", *stated, "-o", str(written)]) == 0
        assert capsys.readouterr().out == ""
        assert written.read_text(encoding="utf-8") == printed


def test_an_ending_of_no_form_is_refused_before_anything_is_written(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "dag.png"
    assert run(["expand", str(plan_file), "-o", str(picture)]) == 2
    assert "end it in one of .json, .dot" in capsys.readouterr().err and not picture.exists()
    assert run(["expand", str(plan_file), "--fold", "--dot", "-o", str(picture)]) == 0
    assert picture.read_text(encoding="utf-8").startswith("digraph")


def test_an_expansion_never_takes_the_place_of_its_plan(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = plan_file.read_bytes()
    assert run(["expand", str(plan_file), "-o", str(plan_file)]) == 2
    assert plan_file.read_bytes() == before
    assert "-o" in capsys.readouterr().err


def test_the_dot_of_an_expansion_has_every_node_and_every_edge(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["expand", str(plan_file), "--format", "json", "--fold"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert run(["expand", str(plan_file), "--dot", "--fold"]) == 0
    dot = capsys.readouterr().out
    assert dot.startswith("digraph")
    assert dot.count(" -> ") == sum(len(both[phase]["edges"]) for phase in both)
    assert all(f'"{node["id"]}" [label=' in dot for phase in both for node in both[phase]["nodes"])
    assert dot.count("{") == dot.count("}")


def test_the_schema_is_the_published_one_and_the_compact_one_allows_repeat(capsys: pytest.CaptureFixture[str]) -> None:
    from jsonschema import Draft202012Validator

    assert run(["schema"]) == 0
    full = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(full)
    assert run(["schema", "--compact"]) == 0
    compact = json.loads(capsys.readouterr().out)
    assert "repeat" in compact["$defs"]["ShardNode"]["properties"]
    assert "repeat" not in full["$defs"]["ShardNode"]["properties"]


@pytest.fixture
def several(tmp_path: Path) -> dict[str, str]:
    """Paths of a plan that keeps every rule, of one that breaks a rule, of one with a warning, and of no plan."""
    broken = base_plan("dense-tp2")
    broken["strategy"]["gpu_count"] = 5
    idle = apply(find_rule("GP005").bad)
    texts = {"good": json.dumps(base_plan("dense-1")), "broken": json.dumps(broken, indent=2), "idle": json.dumps(idle)}
    for name, text in {**texts, "prose": "no plan"}.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    return {name: str(tmp_path / f"{name}.json") for name in (*texts, "prose", "absent")}


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (("good", "idle"), 0),
        (("good", "broken", "idle"), 1),
        (("broken", "absent"), 2),
        (("prose", "good"), 2),
        (("good", "good"), 0),
    ],
)
def test_several_documents_are_checked_each_and_the_worst_is_the_status(
    names: tuple[str, ...], status: int, several: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["validate", *(several[name] for name in names)]) == status
    out, err = capsys.readouterr()
    readable = dict.fromkeys(name for name in names if name not in ("prose", "absent"))
    assert all(out.count(several[name]) == 1 for name in readable)
    assert err.count("\n") == len({*names} - readable.keys())


def test_several_reports_are_a_list_or_one_run_with_the_line_of_each_finding(
    several: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [several["good"], several["broken"]]
    assert run(["validate", *files, "--format", "json"]) == 1
    listed = json.loads(capsys.readouterr().out)
    assert [(entry["file"], entry["valid"]) for entry in listed] == [(files[0], True), (files[1], False)]
    assert run(["validate", *files, "--format", "sarif"]) == 1
    (sarif,) = json.loads(capsys.readouterr().out)["runs"]
    assert [artifact["location"]["uri"] for artifact in sarif["artifacts"]] == [Path(file).as_uri() for file in files]
    (place,) = [result["locations"][0]["physicalLocation"] for result in sarif["results"]]
    line = Path(files[1]).read_text(encoding="utf-8").splitlines()[place["region"]["startLine"] - 1]
    assert place["artifactLocation"]["uri"] == Path(files[1]).as_uri() and '"gpu_count": 5' in line
