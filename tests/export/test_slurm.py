"""`export --to slurm` writes a batch script whose steps run the plan's commands on its GPUs, and end together."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shardwright.tools.export.export import export
from shardwright.tools.export.result import Export

from .plans import EXPORTED, devices_of, formed, hostile

_SLEEP = shutil.which("sleep")
# Stand-in for srun: it prints the address of a node; any other step it records, and ends when all have begun.
_SRUN = """#!/bin/bash
if [ "${*: -2}" = "hostname -I" ]; then
  for word; do case $word in --nodelist=*) echo "10.0.0.${word#--nodelist=host} fe80::1" ;; esac; done
else
  printf '%s\\0' "$@" > "$CALLS/.$$" && mv "$CALLS/.$$" "$CALLS/$$"
  while [ "$(ls "$CALLS" | wc -l)" -lt "$STEPS" ]; do sleep 0.01; done
fi
"""


def _run(text: str, folder: Path, *, srun: str = _SRUN, **environment: str) -> tuple[int, str, list[list[str]]]:
    """The script's exit status, its standard error, and the steps that it starts."""
    nodes = next(line for line in text.splitlines() if line.startswith("#SBATCH --nodes="))
    hosts = "\\n".join(f"host{place}" for place in range(int(nodes.partition("=")[2])))
    programs = {
        "srun": srun,
        "scontrol": f"#!/bin/sh\nprintf '{hosts}\\n'\n",
        # The script checks its servers at once.
        "sleep": f"#!/bin/sh\nexec {_SLEEP} 0.02\n",
    }
    for name, program in programs.items():
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    calls = folder / "calls"
    calls.mkdir()
    environment |= {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(calls),
        "STEPS": str(text.count(" &\n")),
        "SLURM_JOB_NODELIST": "host[0-9]",
        "SRUN_OPTIONS": "--container-image=i --container-mounts=/a:/a",
    }
    process = subprocess.run(
        ["bash", "-c", text], env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    steps = [step.read_text(encoding="utf-8").split("\0")[:-1] for step in calls.iterdir()]
    return process.returncode, process.stderr, steps


def _text(result: Export) -> str:
    assert result.text is not None
    return result.text


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "engine"), EXPORTED)
def test_the_steps_run_the_commands_of_the_script_on_each_gpu_of_the_plan(
    name: str, engine: str, tmp_path: Path
) -> None:
    result = formed(name, engine, "slurm")
    nodes = sorted({device.partition(".")[0] for device in devices_of(name)}, key=lambda node: int(node[1:]))
    status, error, steps = _run(_text(result), tmp_path, MODEL="/models/m")
    assert (status, error) == (0, "") and len(steps) == len(result.launches)
    expected, devices = [], []
    for launch in result.launches:
        words = list(launch.arguments)
        if engine == "trtllm":
            words = ["trtllm-llmapi-launch", *words[words.index("trtllm-serve") :]]
        for place, node in enumerate(nodes):
            words = [word.replace(f"${node.upper()}", f"10.0.0.{place}") for word in words]
        expected.append([word.replace("$MODEL", "/models/m") for word in words])
    commands = []
    for step in steps:
        assert step[:3] == ["--overlap", "--cpu-bind=none", "--kill-on-bad-exit=1"]
        assert step[3:5] == ["--container-image=i", "--container-mounts=/a:/a"]
        start = step.index("env")
        options_given = dict(option.partition("=")[::2] for option in step[5:start])
        on = options_given["--nodelist"].split(",")
        (visible,) = [word.partition("=")[2] for word in step if word.startswith("CUDA_VISIBLE_DEVICES=")]
        gpus = visible.split(",")
        assert int(options_given["--nodes"]) == len(on)
        assert int(options_given["--ntasks"]) == (len(on) * len(gpus) if engine == "trtllm" else 1)
        assert options_given.get("--mpi") == ("pmix" if engine == "trtllm" else None)
        devices += [f"{nodes[int(host[4:])]}.g{gpu}" for host in on for gpu in gpus]
        command = step[start + 1 :]
        while "=" in command[0]:
            del command[0]
        commands.append(command)
    assert sorted(commands) == sorted(expected)
    assert len(devices) == len(set(devices)) and set(devices) == devices_of(name)
    assert all((tmp_path / file.name).read_text(encoding="utf-8") == file.text for file in result.files)


def test_the_job_has_the_nodes_and_the_gpus_that_the_plan_counts_by() -> None:
    lines = _text(formed("part of a node", "vllm", "slurm")).splitlines()
    assert {"#SBATCH --nodes=1", "#SBATCH --gpus-per-node=8", "#SBATCH --exclusive"} <= set(lines[1:6])


def test_the_first_server_that_ends_ends_all_with_its_status(tmp_path: Path) -> None:
    srun = f'#!/bin/bash\ncase " $* " in *CUDA_VISIBLE_DEVICES=2,3*) exit 3 ;; esac\nexec {_SLEEP} 300\n'
    status, _, _ = _run(_text(formed("replicas on a node", "vllm", "slurm")), tmp_path, srun=srun)
    assert status == 3


@pytest.mark.parametrize(
    "name", ["x'; touch pwned; '", "$(touch pwned)", "a\n#SBATCH --mem=1\ntouch pwned\n#", "`touch pwned`"]
)
def test_a_models_name_is_never_run(name: str, tmp_path: Path) -> None:
    text = _text(export(hostile(name), "slurm"))
    status, error, steps = _run(text, tmp_path)
    assert (status, error) == (0, "") and any(name in step for step in steps)
    assert not (tmp_path / "pwned").exists()
    # Slurm reads options up to the first command.
    assert "#SBATCH --mem=1" not in text[: text.index("\nset -euo pipefail\n")].splitlines()
