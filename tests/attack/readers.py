"""Every entrance of the command line with randomly damaged honest files, in forks of a warm process.

The promises are those of `entrances`; a fork takes milliseconds, a new process most of a second.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pkgutil
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from functools import cache
from pathlib import Path

import shardwright
from shardwright.agent import cli

from .damage import damaged
from .entrances import ENTRANCES, MOST_BYTES, Ended, call_of, environment_of, judge
from .honest_files import base
from .probe import Case, Probe
from .seeds import seed_names, seed_text
from .watched import memory_bytes

# A plan for the fewest GPUs that meet a percentile simulates many sizes, within its time limit of a minute.
_SECONDS = 70
# Wall-clock seconds after which a command hangs; a busy machine may make any wait.
_MOST_S = 300.0
_CASES = Path(__file__).parents[1] / "cases"
_NAMES = tuple(ENTRANCES)


@cache
def _seeds(name: str) -> tuple[bytes, ...]:
    """The honest contents `name`: a single one, or as many as the test cases hold."""
    folders = {"words": "foreign/*.*", "prose": "briefs/*/*.md"}
    if name in folders:
        return tuple(path.read_bytes() for path in sorted(_CASES.glob(folders[name])))
    if name == "plan":
        return tuple(seed_text(plan_name).encode() for plan_name in seed_names())
    if name == "config":
        configs = json.loads((_CASES / "hf_configs.json").read_text("utf-8"))["configs"]
        return tuple(json.dumps(row["config"]).encode() for row in configs)
    if name == "command":
        return tuple(
            row["text"].replace("'$MODEL_PATH'", row["model"]).encode()
            for row in json.loads((_CASES / "public_launches.json").read_text("utf-8"))
            if "model" in row
        )
    content = base(name)
    return (content.encode() if isinstance(content, str) else content,)


def warm() -> None:
    """Import all of the package, so that forks need not."""
    for module in pkgutil.walk_packages(shardwright.__path__, "shardwright."):
        if module.name.startswith(("shardwright.agent", "shardwright.tools")):
            importlib.import_module(module.name)
    for name in _NAMES:
        _seeds(ENTRANCES[name].base)


def reader_case(seed: int, number: int, contents: str | None = None) -> Case:
    """The damaged file that `seed` and `number` determine; the entrances (of files with `contents`) take turns."""
    names = [name for name in _NAMES if contents in (None, ENTRANCES[name].base)]
    name = names[number % len(names)]
    rng = random.Random(f"readers:{seed}:{number}")
    content = damaged(rng.choice(_seeds(ENTRANCES[name].base)), rng)
    return Case("readers", json.dumps([name, content.decode("latin-1"), rng.random() < 0.5]), name)


def check_reader(case: Case, probe: Probe) -> None:
    """Run the command of `case` in a fork and judge how it ended."""
    name, content, as_json = json.loads(case.text)
    entrance = ENTRANCES[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "in" / entrance.file
        file.parent.mkdir()
        file.write_bytes(content.encode("latin-1"))
        call = call_of(entrance, file, Path(folder))
        if call is None:
            return
        arguments, environment, stdin = call
        as_json = as_json and not {"--dot", "--diff", "sarif"} & set(arguments)
        ended = _run((*arguments, "--format", "json") if as_json else arguments, environment, stdin, Path(folder))
        judge(name, entrance, ended, probe, as_json=as_json)


def _run(arguments: tuple[str, ...], environment: dict[str, str], stdin: Path | None, folder: Path) -> Ended:
    out, err = folder / "stdout", folder / "stderr"
    child = os.fork()
    if child == 0:
        _be_command(arguments, environment, (stdin or Path(os.devnull), out, err), folder)
    since = time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return Ended(os.waitstatus_to_exitcode(status), out.read_bytes(), err.read_text("utf-8", "replace"))
        if time.monotonic() - since > _MOST_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Ended(None, out.read_bytes(), err.read_text("utf-8", "replace"))
        time.sleep(0.002)


def _be_command(
    arguments: tuple[str, ...], environment: dict[str, str], streams: tuple[Path, Path, Path], folder: Path
) -> None:
    """Become the command, and end as it does; this process is the fork."""
    status = 1
    try:
        for number, path in enumerate(streams):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY), number)
        os.chdir(folder)
        variables = environment_of(environment, folder)
        os.environ.clear()
        os.environ.update(variables)
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
        most_bytes = memory_bytes(0) + MOST_BYTES  # beyond the memory of the forked process
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
        sys.argv = ["shardwright", *arguments]
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8", errors="surrogateescape")
        status = cli.main()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - what escapes is what is looked for
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(status)
