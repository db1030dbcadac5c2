"""A wrong call gives one clear line and status 2; help, version and completion need nothing but click."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shardwright.agent.cli.app import cli, run
from shardwright.agent.cli.completion import SHELLS

PROGRAM = Path(sys.executable).parent / "shardwright"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plna"], "Did you mean one of: 'plan'"),
        (["plan"], "say what to plan"),
        (["plan", "--modle", "x"], "--model"),
        (["plan", "--model", "llama-3.1-70b", "--hardware", "8xh100.yaml"], "NODESxGPUS:ACCELERATOR"),
        (["plan", "--model", "llama-3.1-70b", "--hardware", "0x8:h100-sxm"], "NODESxGPUS:ACCELERATOR"),
        (["plan", "--model", "llama-3.1-70b", "--hardware", "1x8:h1000"], "h1000"),
        (["plan", "x", "--input-tokens", "many"], "--input-tokens"),
        (["plan", "x", "--input-tokens", "0"], "--input-tokens"),
        (["plan", "x", "--output-tokens", "1.5"], "--output-tokens"),
        (["plan", "x", "--concurrency", "-3"], "--concurrency"),
        (["plan", "x", "--ttft-ms", "nan"], "--ttft-ms"),
        (["plan", "x", "--tpot-ms", "-1"], "--tpot-ms"),
        (["plan", "x", "--usd-per-gpu-hour", "inf"], "--usd-per-gpu-hour"),
        (["plan", "x", "--precision", "fp7"], "bf16"),
        (["plan", "x", "--relax", "memory"], "attention_dp"),
        (["plan", "x", "--objective", "beauty"], "throughput"),
        (["plan", "--objective latency"], "No such option"),
        (["compare", "a", "b", "--hardware", "1x8:h100-sxm", "--hardware=1x8:l4"], "--hardware is stated 2"),
        (["plan", "x", "--concurrency", "8", "--concurrency", "16"], "--concurrency is stated 2"),
        (["validate", "a.json", "--format", "json", "--format", "text"], "--format is stated 2"),
        (["validate", "- no such file.json"], "no such file.json"),
        (["plan", "--model", "{not json"], "--model"),
        (["plan", "x", "--proposer", "llm"], "OPENAI_BASE_URL"),
        (["plan", "x", "--format", "yaml"], "--format"),
        (["plan", "\udcff"], "UTF-8"),
        (["validate"], "FILE"),
        (["validate", "no-such-file.json"], "no-such-file.json"),
        (["estimate", "no-such-file.json"], "no-such-file.json"),
        (["expand", "no-such-file.json"], "no-such-file.json"),
        (["validate", "."], "."),
        (["models", "no-such-model-9b"], "no-such-model-9b"),
        (["models", "{}"], "config"),
        (["hardware", "h1000"], "h100"),
        (["rules", "XX999"], "XX999"),
        (["completion", "tcsh"], "bash"),
    ],
)
def test_a_wrong_call_is_one_line_that_names_the_place(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("shardwright")
    assert said in err


def test_every_command_has_help_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.commands:
        assert run([name, "--help"]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"Usage: shardwright {name}")
        assert err == ""


def test_a_bare_call_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "plan" in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_the_script_of_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_SHARDWRIGHT_COMPLETE" in capsys.readouterr().out


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the real command as a process."""
    return subprocess.run(
        [str(PROGRAM), *arguments], capture_output=True, text=True, check=False, timeout=300, **options
    )  # type: ignore[call-overload] # options are subprocess.run's own


def test_completion_offers_commands_and_the_names_of_closed_sets() -> None:
    def offered(words: str) -> str:
        position = str(len(words.split(" ")) - 1)
        completion = {"_SHARDWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
        return process(env=os.environ | completion).stdout

    assert "plain,validate" in offered("shardwright val")
    assert "plain,throughput" in offered("shardwright plan --objective th")


def test_help_loads_no_heavy_library() -> None:
    # benchmarks/whole_process.py measures it in seconds.
    assert process("--help").returncode == 0
    code = (
        "import sys; sys.argv = ['shardwright', '--help']; from shardwright.agent.cli import main; main();"
        "print(sorted({'pydantic', 'jsonschema', 'networkx', 'openai', 'rich', 'yaml'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.endswith(
        "[]\n"
    )


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert process("--version").stdout == f"shardwright {version('shardwright')}\n"


def test_a_closed_pipe_is_no_traceback_and_keeps_the_status() -> None:
    shell = f'"{PROGRAM}" schema | head -n 1; echo "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=300)
    assert ended.stderr == ""
    assert ended.stdout == "{\n0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([str(PROGRAM), "schema"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1


def test_an_interrupt_ends_with_130_and_no_traceback() -> None:
    import signal

    # Standard input that stays open keeps the command waiting.
    waiting = subprocess.Popen(
        [str(PROGRAM), "validate", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests in the background of a shell ignore interrupts, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert waiting.stdin is not None
    # More than a pipe holds: once it is written, the command has begun to read.
    waiting.stdin.write("x" * 300_000)
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=300)
    assert waiting.returncode == 130
    assert "Traceback" not in err
