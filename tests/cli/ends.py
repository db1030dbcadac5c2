"""Odd ends of a process: real commands with standard streams, files or surroundings that do not work.

Tables of calls (`CALLS`) and troubles (`TROUBLES`), of options that write a file (`WRITERS`) and places for it
(`PLACES`). `fault` and `misplaced` judge the end of each pair: a message must be one line, the status the right one,
and no traceback shown.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

import shardwright
from shardwright.agent.fix_api import fixed
from shardwright.tools.autofix.autofix import Chosen, read_text_anyhow
from shardwright.tools.autofix.result import certificate

from ..sweep.samples import TINY

PROGRAM = Path(sys.executable).parent / "shardwright"
REPOSITORY = Path(__file__).parents[2]
REQUEST = "Serve Llama-3.1-8B on 2 H100, 1k in, 64 out, one user, lowest latency"
TINY_MODEL = "Qwen3-0.6B on 1 H100, 1k in, 64 out"
# Nobody listens on this port.
NO_ENDPOINT = ("--proposer", "llm", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m", "--max-seconds", "5")
PATIENCE_S = 300
MARKS = ("Traceback", "Exception ignored", "Fatal Python", "Error in sys", "BrokenPipeError", "OSError")


class Call(Struct, frozen=True):
    """A call of the program with arguments, in a folder made by `prepared`; `said` is its standard input."""

    name: str
    arguments: tuple[str, ...]
    said: str | None = None


class Ended(Struct, frozen=True):
    """How a call ended; `left` names the half-written files that it left."""

    status: int
    out: bytes
    err: str
    left: tuple[str, ...] = ()

    @property
    def lines(self) -> int:
        """Lines on standard error."""
        return len(self.err.splitlines())

    @property
    def is_clean(self) -> bool:
        """Whether it showed no traceback and left nothing."""
        return not self.left and not any(mark in self.err for mark in MARKS)


class Trouble(Struct, frozen=True):
    """A trouble, set up by `before` in the child; `refused` tells whether a call must then end with status 2.

    Otherwise the call ends as without the trouble, or (`may_refuse`) is refused in one line.
    """

    name: str
    before: Callable[[], None] = lambda: None
    environment: dict[str, str | None] = field(default_factory=dict)
    refused: Callable[[Call], bool] = lambda call: False
    may_refuse: bool = False
    shows_errors: bool = True
    same_output: bool = False


def call(name: str, *arguments: str, said: str | None = None) -> Call:
    """The call with a name and arguments."""
    return Call(name, arguments, said)


CALLS = (
    call("plan", "plan", REQUEST),
    call("plan -o", "plan", REQUEST, "-o", "new.json"),
    call("plan -o -", "plan", REQUEST, "-o", "-"),
    call("plan --format json", "plan", REQUEST, "--format", "json"),
    call("plan -", "plan", "-", said=REQUEST),
    call("plan --brief -", "plan", "--brief", "-", said=REQUEST),
    call("plan --mix", "plan", TINY_MODEL, "--mix", "mix.yaml"),
    call("chat", "chat", "--session", "./new.sqlite", TINY_MODEL, said="why?\n"),
    call("chat --list", "chat", "--list"),
    call("search", "search", TINY_MODEL),
    call("validate", "validate", "plan.json"),
    call("validate -", "validate", "-", said="{}"),
    call("validate --format sarif", "validate", "plan.json", "--format", "sarif"),
    call("fix", "fix", "plan.json"),
    call("fix -", "fix", "-", said="TP8"),
    call("verify", "verify", "certificate.json"),
    call("estimate", "estimate", "plan.json"),
    call("expand", "expand", "plan.json", "--fold"),
    call("expand -o", "expand", "plan.json", "--fold", "-o", "new.json"),
    call("show", "show", "plan.json"),
    call("show --html", "show", "plan.json", "--html"),
    call("show --timeline", "show", "plan.json", "--timeline"),
    call("export", "export", "plan.json", "--to", "vllm"),
    call("compare", "compare", "plan.json", "TP1"),
    call("sweep", "sweep", "sweep.json", "--jobs", "1"),
    call("sweep --jobs 2 -o", "sweep", "sweep.json", "--jobs", "2", "-o", "new.csv"),
    call("eval", "eval", "cases.jsonl", "--jobs", "1"),
    call("eval -", "eval", "-", "--jobs", "1", said='{"request": "Fly me to the moon", "answer": "refused"}'),
    call("eval --jobs 2 --journal", "eval", "cases.jsonl", "--jobs", "2", "--journal", "new.journal"),
    call("fidelity", "fidelity", "measured.csv"),
    call("measure", "measure", "--quick"),
    call("calibrate", "calibrate", "measured.csv"),
    call("models", "models"),
    call("models NAME", "models", "llama-3.1-8b"),
    call("models -", "models", "-", said="{}"),
    call("hardware", "hardware"),
    call("rules", "rules"),
    call("explain", "explain", "TP005"),
    call("explain -", "explain", "-", said="why TP?"),
    call("schema", "schema"),
    call("replay", "replay", "transcript.json"),
    call("doctor", "doctor", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "m", "--seconds", "1"),
    call("completion", "completion", "bash"),
    call("an unknown option", "plan", "--modle", "x"),
    call("a missing file", "validate", "nowhere.json"),
    call("--version", "--version"),
    call("nothing"),
)
COMMANDS = tuple(dict.fromkeys(row.arguments[0] for row in CALLS if row.arguments and row.arguments[0][0] != "-"))
HELPS = (call("--help", "--help"), *(call(f"{name} --help", name, "--help") for name in COMMANDS))


def _onto(number: int, path: str, flags: int) -> Callable[[], None]:
    def put() -> None:
        handle = os.open(path, flags)
        os.dup2(handle, number)
        os.close(handle)

    return put


def _reader_gone(number: int) -> Callable[[], None]:
    def put() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, number)
        os.close(writer)

    return put


def _in_no_folder() -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()


def _writes_to_full_file() -> None:
    _onto(1, "out.txt", os.O_WRONLY | os.O_CREAT)()
    limit_files(0)


def limit_files(most_bytes: int) -> None:
    """Let no file of this process grow beyond `most_bytes`, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def prints(tried: Call) -> bool:
    """Whether the call writes to standard output without trouble."""
    return tried.name not in ("an unknown option", "a missing file", "measure", "models -")


def reads(tried: Call) -> bool:
    """Whether the call reads standard input."""
    return tried.said is not None


def always(tried: Call) -> bool:
    """Every call."""
    return True


TROUBLES: tuple[Trouble, ...] = (
    Trouble("stdout closed", lambda: os.close(1), refused=prints),
    Trouble("stdout full", _onto(1, "/dev/full", os.O_WRONLY), refused=prints),
    Trouble("stdout not for writing", _onto(1, "/dev/null", os.O_RDONLY), refused=prints),
    Trouble("stdout without a reader", _reader_gone(1)),
    Trouble("stdout a file on a full disk", _writes_to_full_file, refused=prints, may_refuse=True),
    Trouble("stdin closed", lambda: os.close(0), refused=reads),
    Trouble("stdin not for reading", _onto(0, "/dev/null", os.O_WRONLY), refused=reads),
    Trouble("stderr closed", lambda: os.close(2), shows_errors=False, same_output=True),
    Trouble("stderr full", _onto(2, "/dev/full", os.O_WRONLY), shows_errors=False, same_output=True),
    Trouble("stderr without a reader", _reader_gone(2), shows_errors=False, same_output=True),
    Trouble("all closed", lambda: os.closerange(0, 3), refused=prints, shows_errors=False, may_refuse=True),
    Trouble("no HOME", environment={"HOME": None}, same_output=True),
    Trouble("HOME not writable", environment={"HOME": "/proc/none"}, may_refuse=True),
    Trouble(
        "an ASCII locale",
        environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        same_output=True,
    ),
    Trouble("a folder that was deleted", _in_no_folder, may_refuse=True),
    Trouble("no TMPDIR", environment={"TMPDIR": "/proc/none"}, same_output=True),
)


def prepared(folder: Path) -> Path:
    """Fill `folder` with a file of every kind that the calls read, and return it."""
    cases = (
        {"id": "words", "request": REQUEST, "strategy": "TP2"},
        {"id": "nonsense", "request": "Fly me to the moon", "answer": "refused"},
    )
    (folder / "sweep.json").write_text(json.dumps(TINY))
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    (folder / "mix.yaml").write_text("workloads: [{name: a, weight: 1, input_tokens: 512, output_tokens: 64}]\n")
    (folder / "brief.md").write_text(REQUEST)
    shutil.copy(REPOSITORY / "docs" / "demos" / "dense-careless.json", folder / "transcript.json")
    rows = (REPOSITORY / "tests" / "cases" / "fidelity_rows.csv").read_text().splitlines()
    (folder / "measured.csv").write_text("\n".join(rows[:4]) + "\n")
    plan = shardwright.plan(REQUEST).plan
    assert plan is not None
    text = plan.model_dump_json(indent=2)
    (folder / "plan.json").write_text(text)
    whole = certificate(text, fixed(read_text_anyhow(text), None, Chosen()))
    (folder / "certificate.json").write_text(json.dumps(whole))
    return folder


def environment(changes: dict[str, str | None] | None = None) -> dict[str, str]:
    """The environment of a call: no endpoint, a wide terminal, and `changes`, in which `None` removes a variable."""
    changed = {"COLUMNS": "200", "SHARDWRIGHT_CONFIG": None, **(changes or {})}
    whole = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SHARDWRIGHT_"))}
    return {name: value for name, value in (whole | changed).items() if value is not None}


def ended(tried: Call, folder: Path, trouble: Trouble | None = None) -> Ended:
    """Run the call as a process in `folder`, in trouble if one is given."""
    trouble = trouble or Trouble("none")
    before = trouble.before

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        before()

    process = subprocess.run(
        [PROGRAM, *tried.arguments],
        cwd=folder,
        env=environment(trouble.environment),
        input=(tried.said or "").encode(),
        capture_output=True,
        preexec_fn=begin,
        check=False,
        timeout=PATIENCE_S,
    )
    leftovers = tuple(path.name for path in folder.iterdir() if path.name.endswith(".tmp"))
    return Ended(process.returncode, process.stdout, process.stderr.decode(errors="replace"), leftovers)


def _timeless(out: bytes) -> bytes:
    """The output of a call without the time that it took."""
    return re.sub(rb"(in|failed) +[0-9.,]+\b", rb"\1 -", out)


def fault(tried: Call, usual: Ended, trouble: Trouble, outcome: Ended) -> str | None:
    """What is wrong with the `outcome` of a call in trouble, compared with its `usual` one; `None` if nothing is."""
    # A line printed before the trouble (the name of a chat) is allowed, too.
    is_refusal = outcome.status == 2 and (1 <= outcome.lines <= usual.lines + 1 or not trouble.shows_errors)
    if not outcome.is_clean:
        return "a traceback" if not outcome.left else f"left {outcome.left}"
    if trouble.refused(tried):
        return None if is_refusal else f"status {outcome.status}, {outcome.lines} lines: must be refused in one line"
    if trouble.may_refuse and is_refusal:
        return None
    if outcome.status != usual.status:
        return f"status {outcome.status}, not {usual.status}"
    if outcome.lines > usual.lines:
        return f"{outcome.lines} lines on standard error, not {usual.lines}"
    if trouble.same_output and _timeless(outcome.out) != _timeless(usual.out):
        return "another output"
    return None


# Options that write a file, with a call that takes them and the ending of the file.
WRITERS = (
    (call("plan -o", "plan", TINY_MODEL, "-o"), ""),
    (call("plan --mix -o", "plan", TINY_MODEL, "--mix", "mix.yaml", "-o"), ""),
    (call("plan --transcript", "plan", TINY_MODEL, *NO_ENDPOINT, "--transcript"), ""),
    (call("search --plot", "search", TINY_MODEL, "--plot"), ".svg"),
    (call("fix -o", "fix", "plan.json", "-o"), ""),
    (call("expand -o", "expand", "plan.json", "--fold", "-o"), ""),
    (call("fix --certificate", "fix", "plan.json", "--certificate"), ""),
    (call("sweep -o", "sweep", "sweep.json", "--jobs", "1", "-o"), ".csv"),
    (call("sweep --plot", "sweep", "sweep.json", "--jobs", "1", "--plot"), ".png"),
    (call("eval -o", "eval", "cases.jsonl", "--jobs", "1", "-o"), ""),
    (call("eval --html", "eval", "cases.jsonl", "--jobs", "1", "--html"), ""),
    (call("eval --junit", "eval", "cases.jsonl", "--jobs", "1", "--junit"), ""),
    (call("eval --journal", "eval", "cases.jsonl", "--jobs", "1", "--journal"), ""),
    (call("fidelity -o", "fidelity", "measured.csv", "-o"), ""),
    (call("calibrate -o", "calibrate", "measured.csv", "-o"), ""),
    (call("chat --session", "chat", TINY_MODEL, "--session"), ".sqlite"),
)
# Places made in the folder of the call, and whether a call that writes to them is refused.
PLACES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "an empty place": (lambda place: None, False),
    "a link to a file": (lambda place: place.symlink_to("there"), False),
    "a full device": (lambda place: place.symlink_to("/dev/full"), True),
    "a loop": (lambda place: place.symlink_to(place.name), True),
    "a link to nowhere": (lambda place: place.symlink_to("missing/file"), True),
    "a folder": (lambda place: place.mkdir(), True),
    "a pipe that nobody reads": (os.mkfifo, True),
    "a file system that takes none": (lambda place: place.symlink_to("/proc/none"), True),
    "a full disk": (lambda place: None, True),
}


def written(tried: Call, folder: Path, ending: str, name: str) -> Ended:
    """Run the call as a process in `folder`, writing to the place called `name`."""
    make, _ = PLACES[name]
    make(folder / f"place{ending}")
    limit = Trouble(name, lambda: limit_files(50)) if name == "a full disk" else None
    return ended(Call(tried.name, (*tried.arguments, f"./place{ending}"), tried.said), folder, limit)


def misplaced(usual: Ended, outcome: Ended, *, is_refused: bool) -> str | None:
    """What is wrong with the `outcome` of a call that writes to a place; `None` if nothing is."""
    if not outcome.is_clean:
        return f"left {outcome.left}" if outcome.left else "a traceback"
    if is_refused:
        # A line printed before the trouble (the name of a chat) is allowed, too.
        is_said = outcome.status == 2 and 1 <= outcome.lines <= usual.lines + 1
        return None if is_said else f"status {outcome.status}, {outcome.lines} lines: must be refused in one line"
    return None if outcome.status == usual.status else f"status {outcome.status}, not {usual.status}"
