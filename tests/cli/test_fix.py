"""`fix` and `verify`: a proposal is made valid, written only if it is, with a certificate that anybody can replay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

import shardwright
from shardwright.agent.cli.app import run
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.verify import certificate_sha256

ANSWER = """Sure, here is the plan:

```json
{"model": "Llama-3.1-8B", "parallelism": "TP2", // both phases
 "gpus": ["gpu0", "gpu1"],}
```
Let me know if you need anything else."""
ASKED = "8B on 2 H100, 2k in / 128 out, 4 concurrent"


def broken() -> dict[str, Any]:
    """A plan with an operator whose output nothing sums, and a GPU count that differs from the graph's."""
    document = base_plan("dense-tp2")
    document["nodes"] = [node for node in document["nodes"] if node["id"] != "r0.prefill.s0.b0.attn.ar"]
    document["edges"] = [
        edge for edge in document["edges"] if "r0.prefill.s0.b0.attn.ar" not in (edge["source"], edge["target"])
    ]
    document["strategy"]["gpu_count"] = 3
    return document


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    """The broken plan as a file."""
    path = tmp_path / "draft.json"
    path.write_text(json.dumps(broken()), encoding="utf-8")
    return path


def test_the_plan_is_written_and_each_fix_listed_with_its_rule_and_patch(
    draft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "plan.json"
    assert run(["fix", str(draft), "-o", str(target)]) == 0
    report = capsys.readouterr().out
    assert "TP003" in report and "GP001" in report and "replace /strategy/gpu_count 2" in report
    assert shardwright.validate(target).valid


def test_the_json_is_that_of_the_function_and_its_patches_lead_from_read_to_plan(
    draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fix", str(draft), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == shardwright.autofix(draft).model_dump(mode="json")
    document = printed["read"]
    for fix in printed["fixes"]:
        document = jsonpatch.apply_patch(document, fix["patch"])
    assert document == printed["plan"]


def test_the_diff_shows_lines_that_went_and_came(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fix", str(draft), "--diff"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "-strategy.gpu_count: 3" in lines and "+strategy.gpu_count: 2" in lines
    assert any(line.startswith('+nodes: {"id": "r0.prefill.s0.b0.attn.ar"') for line in lines) or any(
        line.startswith("+nodes:") and "AllReduceNode" in line for line in lines
    )


def test_only_the_named_rule_is_mended(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fix", str(draft), "--rule", "GP001", "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [fix["rule"] for fix in printed["fixes"]] == ["GP001"]
    assert {finding["rule"] for finding in printed["remaining"]} == {"TP003"}


def test_nothing_is_written_that_is_not_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft, target = tmp_path / "draft.json", tmp_path / "plan.json"
    draft.write_text('{"strategy": {"dp": 1, "gpu_count": 2}}', encoding="utf-8")
    assert run(["fix", str(draft), "-o", str(target)]) == 1
    assert "model" in capsys.readouterr().out
    assert not target.exists()


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe\x00"], ids=["empty", "blank", "binary"])
def test_a_file_in_which_there_is_nothing_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nothing.json"
    path.write_bytes(content)
    for command in ("fix", "validate"):
        assert run([command, str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("I like it.\nLet us talk tomorrow.", "looked for JSON, YAML"),
        ("Llama-3.1-8B on 2 H100 it is.\n", "not stated, and nowhere to be read: strategy"),
        ('{"model": "Llama-3.1-8B", "tp": "quite some", "hardware": "2 H100"}', "given, but not understood: strategy"),
        ('{"model": "Llama-3.1-8B", "tp": 2, "hardware": "2 H1000"}', "but not understood: hardware.accelerator"),
        ('{"model": "Llama-3.1-8B", "tp": 2, "input_tokens": "some"}', "not understood: workload.input_tokens: 'some'"),
        (
            '{"format": "shardwright/plan", "strategy": {"prefill": {"tp": "8x"}}, "model": {"name": "Llama-3.1-8B"}}',
            "given, but not understood: strategy",
        ),
    ],
)
def test_what_is_missing_and_what_was_not_understood_are_told_apart(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(text, encoding="utf-8")
    assert run(["fix", str(path)]) == 1
    assert says in " ".join(capsys.readouterr().out.split())


def test_the_result_holds_a_plan_as_planning_gives_one() -> None:
    fixed = shardwright.autofix(broken())
    assert isinstance(fixed.plan, shardwright.Plan) and fixed.plan.model_dump(mode="json") == fixed.document
    assert fixed.model_dump(mode="json")["plan"] == fixed.document
    assert shardwright.autofix({"nodes": 1}).plan is None


def test_an_answer_in_prose_is_read_and_completed_by_the_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, target = tmp_path / "answer.txt", tmp_path / "plan.json"
    answer.write_text(ANSWER, encoding="utf-8")
    assert run(["fix", str(answer), "--request", ASKED.replace("8B", "Llama-3.1-8B"), "-o", str(target)]) == 0
    assert "the model is" in capsys.readouterr().out
    plan = json.loads(target.read_text(encoding="utf-8"))
    assert plan["strategy"]["prefill"]["tp"] == plan["strategy"]["decode"]["tp"] == 2
    assert plan["workload"]["input_tokens"] == 2048 and plan["hardware"]["accelerator"] == "h100-sxm"
    assert shardwright.validate(target).valid


def test_a_request_without_a_model_takes_that_of_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_text(ANSWER, encoding="utf-8")
    assert run(["fix", str(answer), "--request", "2 H100, 2k in / 128 out", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["model"]["name"].endswith("8B")


def certified(draft: Path, folder: Path) -> dict[str, Any]:
    """The certificate of repairing `draft`."""
    path = folder / "certificate.json"
    run(["fix", str(draft), "--certificate", str(path)])
    return json.loads(path.read_text(encoding="utf-8"))


def verified(certificate: dict[str, Any], folder: Path) -> int:
    """The exit status of `verify` in a new process."""
    path = folder / "changed.json"
    path.write_text(json.dumps(certificate), encoding="utf-8")
    program = Path(sys.executable).parent / "shardwright"
    return subprocess.run([str(program), "verify", str(path)], capture_output=True, check=False).returncode


@pytest.mark.thorough
def test_a_certificate_is_confirmed_by_a_process_of_its_own(draft: Path, tmp_path: Path) -> None:
    certificate = certified(draft, tmp_path)
    assert verified(certificate, tmp_path) == 0
    assert [fix["safety"] for fix in certificate["fixes"]] and certificate["reading"] == "as it stands"


@pytest.mark.parametrize(
    "part", ["proposal", "read", "patch", "before", "report", "plan_sha256", "rule", "safety", "reading"]
)
def test_a_certificate_that_was_tampered_with_is_not_confirmed(
    part: str, draft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = certified(draft, tmp_path)
    if part == "proposal":
        certificate["proposal"] = certificate["proposal"].replace("512", "513", 1)
    elif part == "read":
        certificate["read"]["workload"]["output_tokens"] += 1
    elif part == "patch":
        certificate["fixes"][0]["patch"][-1]["value"] = 1
    elif part == "before":
        certificate["fixes"][-1]["before"] = "0" * 64
    elif part == "rule":
        certificate["fixes"][0]["rule"] = "XX999"
    elif part == "safety":
        certificate["fixes"][0]["safety"] = "strategy"
    elif part == "reading":
        certificate["reading"] = "by magic"
    elif part == "report":
        certificate["report"]["warnings"] += 1
    else:
        certificate["plan_sha256"] = "0" * 64
    # The hash of the whole is recomputed, so that the check of each part has to notice.
    certificate["certificate_sha256"] = certificate_sha256(certificate)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(certificate), encoding="utf-8")
    capsys.readouterr()
    assert run(["verify", str(path), "--format", "json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert not verdict["confirmed"] and any(not check["holds"] for check in verdict["checks"])


@pytest.mark.parametrize("text", ["", "[]", "{}", "{" * 5000, '{"format": "shardwright/certificate", "version": "1"}'])
def test_what_is_no_certificate_is_refused_or_not_confirmed(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(text, encoding="utf-8")
    assert run(["verify", str(path)]) in (1, 2)
    assert capsys.readouterr().err.count("\n") <= 1


def test_a_plan_is_tied_to_its_certificate_however_its_file_is_laid_out(
    draft: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate, mended = tmp_path / "certificate.json", tmp_path / "mended.json"
    assert run(["fix", str(draft), "-o", str(mended), "--certificate", str(certificate)]) == 0
    plan = json.loads(mended.read_text(encoding="utf-8"))
    for text in (mended.read_text(encoding="utf-8"), json.dumps(plan, sort_keys=True)):
        mended.write_text(text, encoding="utf-8")
        assert run(["verify", str(certificate), str(mended)]) == 0
    for other in ("{}", "no JSON", json.dumps({**plan, "more": 1})):
        mended.write_text(other, encoding="utf-8")
        capsys.readouterr()
        assert run(["verify", str(certificate), str(mended)]) == 1
        assert "the plan beside the certificate: it is another document" in capsys.readouterr().out
    assert run(["verify", str(certificate), str(tmp_path / "none.json")]) == 2
    capsys.readouterr()
    assert run(["verify", str(certificate)]) == 0
    assert "that a file holds this plan" in capsys.readouterr().out


def test_what_a_replay_cannot_show_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, certificate = tmp_path / "answer.txt", tmp_path / "certificate.json"
    answer.write_text(ANSWER, encoding="utf-8")
    options = ["--request", "Llama-3.1-8B on 2 H100, 2k in / 128 out"]
    assert run(["fix", str(answer), *options, "--certificate", str(certificate)]) == 0
    capsys.readouterr()
    assert run(["verify", str(certificate)]) == 0
    assert "understood as it was meant" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["--diff", "--format", "json"], ["-o", "one.json", "--certificate", "one.json"], ["--rule", "XX999"]]
)
def test_calls_that_contradict_themselves_are_refused(
    arguments: list[str], draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fix", str(draft), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1


def test_a_request_that_says_otherwise_than_the_document_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(base_plan("dense-tp2")), encoding="utf-8")
    assert run(["fix", str(path), "--request", "Qwen3-32B on 5 H200, 8k in / 1k out, lowest TPOT"]) == 0
    report = " ".join(capsys.readouterr().out.split())
    for statement in ("input tokens 8192", "GPUs 5", "accelerator h200-sxm", "model Qwen/Qwen3-32B"):
        assert f"not used: the request says {statement}" in report


@pytest.mark.parametrize("request_text", ["serve it well", "for a chat bot", "as fast as it can be"])
def test_a_request_is_told_to_say_only_what_its_words_say(
    request_text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, document = tmp_path / "plan.json", base_plan("dense-tp2")
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run(["fix", str(path), "--request", request_text]) == 0
    assert "the request says" not in capsys.readouterr().out
    del document["workload"]["output_tokens"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run(["fix", str(path), "--request", request_text]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "workload.output_tokens is 256 (assumed: no length was named: a chat-like request)" in report


def test_a_text_that_breaks_off_is_mended_by_fixes_that_say_what_they_do(tmp_path: Path) -> None:
    text = json.dumps(base_plan("dense-tp2"))
    for share in range(5, 10):
        result = shardwright.autofix(text[: len(text) * share // 10])
        assert result.valid and all(fix.description for fix in result.fixes)


def test_the_function_takes_words_texts_paths_and_a_request_in_words(tmp_path: Path) -> None:
    assert shardwright.autofix("Use TP2 for it", request="Llama-3.1-8B on 2 H100, 1k in / 128 out").valid
    assert shardwright.autofix({"tp": 2}, request="Llama-3.1-8B on 2 H100, 1k in / 128 out").valid
    assert not shardwright.autofix("").valid
    for alone in ("TP2", "tp=2", "张量并行2"):
        assert (
            shardwright.autofix(alone, request="Llama-3.1-8B on 2 H100, 1k in / 128 out").plan.strategy.decode.tp == 2
        )
    for gone in ("tp2.json", "plans/tp2", "nowhere"):
        with pytest.raises(shardwright.InputError, match="cannot be read"):
            shardwright.autofix(gone)
    for nothing in (None, b"{}", 3):
        with pytest.raises(shardwright.InputError):
            shardwright.autofix(nothing)  # type: ignore[arg-type] - what a careless caller does
    with pytest.raises(shardwright.InputError):
        shardwright.autofix(tmp_path / "nowhere.json")


QWEN = "For Qwen3-235B-A22B on 8 H200 with 2k in and 256 out I would use TP4 attention and EP8."
COSTS = [
    (QWEN, "attention leaves 4 of 8 devices idle"),
    ("Serve Mixtral-8x7B on 8 H100, 2k in / 256 out: TP 2 for attention, expert parallel 8, no DP.", "6 of 8 devices"),
    ("Serve Llama-3.1-70B on 8 H100, 2k in / 256 out. I suggest TP 4, one replica.", "uses 4 of 8 GPUs"),
    ("Serve Llama-3.1-70B on 8 H100, 2k in / 256 out. I suggest TP 8.", ""),
]


@pytest.mark.parametrize(("proposal", "cost"), COSTS)
def test_what_a_mended_plan_leaves_unused_stands_in_its_first_line(
    proposal: str, cost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "answer.txt").write_text(proposal, encoding="utf-8")
    assert run(["fix", str(tmp_path / "answer.txt")]) == 0
    first = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    unused = first.partition(", but ")[2]
    assert cost in unused and bool(unused) == bool(cost)


@pytest.mark.parametrize(
    ("sound", "damaged", "says"),
    [
        ('"bf16",\n', '"bf16"\n', "not JSON: Expecting ',' delimiter"),
        ("}\n]", "},\n]", "not JSON: "),
        ('"objective"', "'objective'", "not JSON: "),
    ],
)
@pytest.mark.parametrize("before", ["", "The plan that I mean:\n\n```json\n"])
def test_a_text_that_is_no_json_is_said_to_be_mended_and_where(
    sound: str, damaged: str, says: str, before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(base_plan("dense-tp2"), indent=0)
    assert sound in text
    path, mended = tmp_path / "draft.json", tmp_path / "plan.json"
    path.write_text(f"{before}{text.replace(sound, damaged, 1)}\n", encoding="utf-8")
    assert run(["fix", str(path), "-o", str(mended)]) == 0
    head = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    line = before.count("\n") + text[: text.index(sound)].count("\n") + 1
    assert head.startswith(f"Mended: {path} is valid so: {says}") and "needs no fix" not in head
    assert any(f"(line {line + more})" in head for more in (0, 1))
    assert run(["fix", str(mended)]) == 0
    assert "needs no fix" in capsys.readouterr().out
