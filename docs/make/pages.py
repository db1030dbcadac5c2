"""Pages whose commands are run: each console block shows what its command prints today.

What stands between `<!-- generated: NAME -->` and `<!-- end generated -->` is made anew (`parts.py`). Then the page is
read from top to bottom, in an empty folder of its own (`docs` and `examples` of the repository are links in it). What
is done with a fenced block goes by its first line:

- console: the command behind `$ ` is run, and what it prints is the rest of the block. A line that ends with a
  backslash goes on in the next.
- any language with title="FILE": the text is written to FILE, where later commands find it.
- python: all of a page are one script, which is run at the end; it must print nothing on standard error.
- bash, and python below a line `<!-- not run: WHY -->`: not run, since it needs what not every machine has (an
  endpoint, an accelerator, a network); its options and its syntax are checked (`not_run.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ...tools.errors import InputError
from .parts import with_parts

ROOT = Path(__file__).resolve().parents[2]
# Folders of the repository that a page's commands may name.
AT_HAND = ("docs", "examples")
# What `replay` prints of a demonstration that is stale; `python benchmarks/demos.py` makes it anew.
CHANGED = "NOT the same as recorded"
NOT_RUN = "<!-- not run: "
_TIME_LIMIT_S = 600

_BLOCK = re.compile(
    r"^(?P<fence>```)(?P<language>\w+)(?: title=\"(?P<file>[\w.-]+)\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n")


class Block(Struct, frozen=True):
    """A fenced block: its language, the file that it is written to, why it is not run, and its text."""

    language: str
    file: str | None
    why_not_run: str | None
    body: str
    line: int


def page_paths() -> list[Path]:
    """README and every page of `docs/` with a block that can be run."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if any(one.language in ("console", "python") for one in blocks(page))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return (_block(text, match) for match in _BLOCK.finditer(text))


def page_today(page: Path) -> str:
    """The page with what its commands print today; raises `InputError` where one of them fails to do what is shown."""
    script: list[str] = []

    def today_of(match: re.Match[str]) -> str:
        block = _block(text, match)
        if block.file is not None:
            (folder / block.file).write_text(block.body, encoding="utf-8")
        elif block.language == "python" and block.why_not_run is None:
            script.append(block.body)
        elif block.language == "console":
            command = _COMMAND.match(block.body)
            if command is None:
                raise InputError(f"line {block.line}: a console block begins with '$ ' and a command")
            shown = f"$ {command['command']}\n{_printed(['bash', '-c', command['command']], folder)}"
            return f"```console\n{shown.rstrip()}\n```"
        return match[0]

    text = with_parts(page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in AT_HAND:
            (folder / part).symlink_to(ROOT / part)
        today = _BLOCK.sub(today_of, text)
        if script:
            _printed([sys.executable, "-c", "\n".join(script)], folder)
    return today


def _block(text: str, match: re.Match[str]) -> Block:
    before = text[: match.start()].rstrip("\n").rsplit("\n", maxsplit=1)[-1]
    why = before.removeprefix(NOT_RUN).removesuffix(" -->") if before.startswith(NOT_RUN) else None
    return Block(match["language"], match["file"], why, match["body"], text.count("\n", 0, match.start()) + 1)


def _printed(command: list[str], folder: Path) -> str:
    """What a command prints in the page's folder, lines as wide as a page; anything on standard error is a failure."""
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}"
    # What a developer has configured, a language model or a calibration, is none of a page's business.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SHARDWRIGHT_"))}
    environment = {**own, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    what = command[-1].strip().split("\n", maxsplit=1)[0]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{what}: it takes longer than {_TIME_LIMIT_S} s") from error
    if done.stderr or CHANGED in done.stdout:
        raise InputError(f"{what}: {done.stderr.strip().rsplit(chr(10), maxsplit=1)[-1] or CHANGED}")
    return done.stdout
