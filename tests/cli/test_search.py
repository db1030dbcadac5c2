"""`search`: the ranking as a report or as JSON, the picture of the front, and a clear no."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.search_api import search

pytestmark = pytest.mark.thorough

WORDS = "Llama-3.1-8B on 2 H100, 2k in / 256 out, best throughput, TPOT under 20 ms"
IMPOSSIBLE = ["--model", "llama-3.1-8b", "--hardware", "1x2:h100-sxm", "--tpot-ms", "0.5"]


def searched(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> dict[str, Any]:
    """The JSON of a search without the time that it took."""
    assert run(["search", *arguments, "--format", "json"]) == status
    out, err = capsys.readouterr()
    assert err == ""
    data = json.loads(out)
    assert data.pop("seconds") > 0
    return data


def test_the_json_is_what_the_function_returns(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, called in (
        ([], {}),
        (["--top", "2"], {"top": 2}),
        (["--input-tokens", "4k", "--precision", "fp8"], {"input_tokens": 4096, "precision": "fp8"}),
    ):
        data = searched([WORDS, *arguments], capsys)
        wanted = search(WORDS, **called).model_dump(mode="json", exclude={"seconds"})
        # A flag is quoted as written; arguments of a program have no words.
        for read in (data, wanted):
            read["words"] = {name: text for name, text in read["words"].items() if not text.startswith("--")}
        assert data == wanted


def test_memory_that_is_kept_free_is_said_beside_the_share_that_may_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", f"{WORDS}. Leave 6 GB free on each GPU for another service.", "--top", "1"]) == 0
    assert "90% of memory may be used, and 6 GB of each GPU stay free" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("flag", "formats"), [("any", "bf16, fp8"), ("fp8,int4", "fp8, int4 A-bf16")])
def test_a_precision_that_is_left_open_is_a_column_of_the_tables(
    flag: str, formats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["search", WORDS, "--precision", flag, "--top", "3"]) == 0
    report = capsys.readouterr().out
    header = next(line for line in report.splitlines() if line.split()[:2] == ["#", "strategy"])
    assert header.split()[2] == "format"
    assert f"(the best of {formats})" in report
    data = searched([WORDS, "--precision", flag], capsys)
    assert data["candidates"][0]["precision"] == data["request"]["precision"]


def test_one_precision_is_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", WORDS, "--precision", "fp8", "--top", "3"]) == 0
    assert " format " not in capsys.readouterr().out


def test_a_precision_that_there_is_not_is_refused_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["search", WORDS, "--precision", "fp8,fp9"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1
    assert "'fp9'" in err and "bf16" in err and "any" in err


def test_options_alone_are_a_request_and_all_of_plan_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    flags = (
        "--model llama-3.1-8b --hardware 1x2:h100 --input-tokens 4k --output-tokens 1,000 --concurrency 8 "
        "--ttft-ms 2000 --tpot-ms 50 --objective throughput --precision fp8 --kv-precision fp8 "
        "--activation-precision bf16 --relax vocab_parallel --usd-per-gpu-hour 2"
    )
    request = searched(flags.split(), capsys)["request"]
    assert request["workload"]["concurrency"] == 8
    assert request["workload"]["ttft_ms_max"] == 2000
    assert request["precision"] == {"weights": "fp8", "kv_cache": "fp8", "activations": "bf16"}
    assert request["policy"]["relaxations"] == ["vocab_parallel"]


def test_the_report_has_the_best_the_ranking_the_front_the_losers_and_the_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["search", WORDS, "--top", "3"]) == 0
    text = capsys.readouterr().out
    answer = search(WORDS)
    assert answer.best is not None
    assert text.startswith(f"Best for throughput: {answer.best.summary}")
    for heading in (
        f"Ranked strategies (3 of {answer.listed} listed)",
        "Pareto front",
        "Why the other families lost",
        "Not among the strategies",
        f"{answer.timed} were simulated",
        "What was read, and what was assumed",
    ):
        assert heading in text
    assert "What flips the answer" not in text
    for lost in answer.families:
        assert lost.reason in " ".join(text.split())


def test_sensitivity_is_told_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", WORDS, "--sensitivity"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "What flips the answer" in text
    assert "TPOT limit 20% tighter (16 ms)" in text


def test_nothing_that_holds_is_the_answer_no_with_what_binds_and_what_would_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = searched(IMPOSSIBLE, capsys, status=1)
    assert data["feasible"] is False
    assert data["infeasible"]["rule"] == "PE010"
    assert data["pareto"] == []
    assert run(["search", *IMPOSSIBLE]) == 1
    text = capsys.readouterr().out
    assert text.startswith("Nothing will do for meta-llama/Llama-3.1-8B")
    assert "What binds: rule PE010" in text
    assert "Least hardware that would do" in text
    assert "Closest strategies" in text


@pytest.mark.parametrize("width", ["60", "100", "140"])
def test_the_report_keeps_to_the_width_of_the_terminal(
    width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert run(["search", WORDS]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= int(width)


def test_the_picture_is_written_whole_names_layouts_and_limits_and_is_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "one.svg", tmp_path / "two.svg"
    assert run(["search", WORDS, "--plot", str(first)]) == 0
    assert str(first) in capsys.readouterr().out
    assert run(["search", WORDS, "--plot", str(second), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    picture = first.read_text(encoding="utf-8")
    assert picture == second.read_text(encoding="utf-8")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["one.svg", "two.svg"]
    for words in ("TPOT limit", "Pareto front", "output tokens/s per GPU", "best for throughput"):
        assert words in picture
    assert data["candidates"][data["pareto"][0]]["summary"] in picture


def test_a_png_is_a_png_and_also_drawn_where_nothing_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "front.png"
    assert run(["search", *IMPOSSIBLE, "--plot", str(path)]) == 1
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_where_nothing_fits_there_is_a_report_and_no_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "front.svg"
    assert run(["search", "Llama-3.1-70B on 1 H100", "--plot", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "What binds: rule ME001" in out
    assert str(path) not in out
    assert "nothing to draw" in err and err.count("\n") == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to search for"),
        ([WORDS, "--top", "0"], "--top"),
        ([WORDS, "--plot", "front.pdf"], ".svg or .png"),
        ([WORDS, "--plot", "-"], ".svg or .png"),
        ([WORDS, "--plot", "no-such-folder/front.svg"], "does not exist"),
        (["--model", "llama-99"], "llama-99"),
        (["what a nice day"], "model"),
    ],
    ids=str,
)
def test_a_wrong_call_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_without_matplotlib_one_line_says_how_to_install_it_before_anything_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "front.svg"
    # With None in sys.modules, Python cannot import the module.
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv = ['shardwright', 'search', *sys.argv[1:]]\n"
        "from shardwright.agent.cli import main; status = main()\n"
        "assert 'shardwright.tools.search.search' not in sys.modules; sys.exit(status)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, WORDS, "--plot", str(path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert process.returncode == 2
    assert process.stderr == "shardwright: --plot needs matplotlib: pip install 'shardwright[plot]'\n"
    assert not path.exists()


def test_matplotlib_is_loaded_only_to_draw() -> None:
    code = (
        "import sys; from shardwright.agent.cli.app import run; run(['search', sys.argv[1]]);"
        "sys.exit('matplotlib' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code, WORDS], capture_output=True, check=False, timeout=300)
    assert process.returncode == 0
