"""`show`: each form on standard output or in a file by its ending, a list without a form, and refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from shardwright.agent.cli.app import run
from shardwright.tools.rules.examples import base_plan

BEGINS: dict[str, tuple[str, bytes]] = {
    "svg": ("p.svg", b"<svg "), "html": ("p.html", b"<!DOCTYPE html>"), "mermaid": ("p.mmd", b"flowchart TB\n"),
    "dot": ("p.dot", b"digraph plan {\n"), "timeline": ("p.json", b'{"displayTimeUnit":"ms","traceEvents":['),
}  # fmt: skip


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(base_plan("moe-ep4")))
    return path


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", BEGINS)
def test_a_form_by_name_and_by_ending_is_the_same(
    form: str, plan: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name, begin = BEGINS[form]
    assert run(["show", str(plan), f"--{form}"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(begin) and err == b""
    assert run(["show", str(plan), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes() == out and capfdbinary.readouterr().out == b""


def test_a_picture_in_dots_has_twice_the_size_of_the_drawing(plan: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    assert run(["show", str(plan), "-o", str(tmp_path / "p.png")]) == 0
    assert run(["show", str(plan), "-o", str(tmp_path / "p.svg")]) == 0
    header = (tmp_path / "p.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n")
    drawing = ET.parse(tmp_path / "p.svg").getroot()
    assert int.from_bytes(header[16:20]) == 2 * int(drawing.get("width", "0"))


def test_without_the_extra_a_line_names_it(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert run(["show", str(plan), "--png"]) == 2
    assert "pip install 'shardwright[plot]'" in capsys.readouterr().err


def test_without_a_form_it_is_a_list_or_the_data_of_the_page(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(plan)]) == 0
    assert "├─ Prefill" in capsys.readouterr().out
    assert run(["show", str(plan), "--format", "json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert data["format"] == "shardwright/page" and data["valid"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--svg", "--html"], "one form at a time: --svg or --html"),
        (["-o", "picture.gif"], "end it in one of .svg, .png, .html"),
        (["--svg", "--format", "json"], "leave one of them out"),
    ],
)
def test_what_is_not_clear_is_refused(
    arguments: list[str], says: str, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["show", str(plan), *arguments]) == 2
    assert says in capsys.readouterr().err and [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_broken_plan_is_drawn_and_a_timeline_of_it_refused(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan.write_text('{"nodes": [{"id": "a", "type": "MoENode", "parent": "b"}]}')
    assert run(["show", str(plan), "--svg"]) == 0
    capsys.readouterr()
    assert run(["show", str(plan), "--timeline"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
