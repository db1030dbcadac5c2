"""Files appear whole or not at all; no text of a document reaches a terminal as a control sequence."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.cli.app import run
from shardwright.agent.cli.streams import read_stdin, write_file
from shardwright.agent.report.safe import one_line
from shardwright.tools.errors import InputError
from shardwright.tools.input.strict_values import check_text

from ..attack.seeds import seed_plan
from ..sweep.samples import TINY


def test_a_written_file_holds_the_text_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_file(tmp_path / "plan.json", "{}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert (tmp_path / "plan.json").read_text() == "{}\n"


def test_an_overwritten_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "plan.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_file(tmp_path / "plan.json", "{}")
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_device_is_written_into_and_not_replaced() -> None:
    write_file(Path(os.devnull), "{}")
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("place", "reason"),
    [("missing/plan.json", "does not exist"), (".", "is a folder"), ("a" * 300, "name too long"), ("a\0b", "null")],
)
def test_a_place_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path, place: str, reason: str) -> None:
    with pytest.raises(InputError) as refusal:
        write_file(tmp_path / place, "{}")
    assert reason in str(refusal.value).lower()
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_text_that_cannot_be_encoded_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_file(target, "\udc80")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def stdin_of(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(monkeypatch, b"x" * 11)
    with pytest.raises(InputError, match="larger than 10 bytes"):
        read_stdin(10)


def test_standard_input_that_is_not_utf8_is_refused_with_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(monkeypatch, b"abc\xff")
    with pytest.raises(InputError, match="byte 3"):
        read_stdin(10)


def test_a_byte_order_mark_is_not_part_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin_of(monkeypatch, b"\xef\xbb\xbf{}")
    assert read_stdin(10) == "{}"


def test_an_argument_with_stray_bytes_is_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        check_text("\udcff", "the request")


@given(st.text())
def test_a_message_is_always_one_line_without_control_characters(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in line)


def reading(pipe: Path) -> Future[bytes]:
    """The content of `pipe`, which a thread reads to its end."""
    content: Future[bytes] = Future()
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # opened before anything is written
    os.set_blocking(handle, True)

    def read() -> None:
        with os.fdopen(handle, "rb") as stream:
            content.set_result(stream.read())

    Thread(target=read, daemon=True).start()
    return content


def test_a_pipe_stays_a_pipe_and_one_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="nobody reads this pipe"):
        write_file(pipe, "{}")
    # More than a pipe holds, so that the writer waits for the reader. Held open, so that no reader sees an early end.
    kept_open = os.open(pipe, os.O_RDWR)
    content = reading(pipe)
    write_file(pipe, "x" * 300_000)
    os.close(kept_open)
    assert content.result(timeout=300) == b"x" * 300_000
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


REQUEST = "Qwen3-0.6B on 1 H100, 1k in, 64 out"
FILES = {
    "plan.json": json.dumps(seed_plan("dense-1")),
    "nothing.txt": "no proposal",
    "rows.csv": "id,model,gpu,tp,isl,osl,concurrency_or_batch,metric,value\na,llama-3.1-8b,h100-sxm,1,64,8,1,tpot_ms,7",
    "cases.jsonl": '{"id": "a", "tags": ["t"], "request": "Fly me to the moon", "answer": "refused"}\n',
    "sweep.json": json.dumps(TINY),
}


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")


def ran(line: str, request: str = REQUEST) -> int:
    """The exit status of the command line, with TEXT replaced by the request."""
    return run([request if word == "TEXT" else word for word in line.split()])


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("plan TEXT -o -", '{\n  "format": "shardwright/plan"'),
        ("fix plan.json -o -", '{\n  "format": "shardwright/plan"'),
        ("fix plan.json --certificate -", '{\n "format": "shardwright/certificate"'),
        ("fidelity rows.csv -o -", "id,metric,measured"),
        ("eval cases.jsonl --jobs 1 -o -", '{\n "format": "shardwright/eval"'),
        ("eval cases.jsonl --jobs 1 --junit -", "<?xml"),
    ],
)
def test_a_document_on_standard_output_is_alone_there(
    line: str, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(line) == 0
    out, err = capsys.readouterr()
    assert out.startswith(begin) and not err
    assert not Path("-").exists()


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("line", ["plan TEXT -o -", "fix nothing.txt -o -"])
def test_where_there_is_no_document_for_standard_output_the_report_is_on_standard_error(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(line, "Llama-3.1-405B on 1 RTX 4090") == 1
    out, err = capsys.readouterr()
    assert not out and err


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    "line",
    [
        "fix plan.json -o - --certificate -", "eval cases.jsonl --journal -", "plan TEXT --transcript -",
        "sweep sweep.json -o -", "search TEXT --plot -", "chat TEXT --session -",
    ],
)  # fmt: skip
def test_what_cannot_be_on_standard_output_is_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(line) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not Path("-").exists()


@pytest.mark.usefixtures("_files")
def test_a_file_may_be_called_as_standard_input_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("-").write_text(FILES["plan.json"])
    assert ran("validate ./-") == 0
    assert ran("compare plan.json ./-") == 0
    assert not capsys.readouterr().err


def test_a_line_that_quotes_a_long_word_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["p" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 3000


@pytest.mark.parametrize("words", [{}, {"COMP_WORDS": "shardwright pl", "COMP_CWORD": "x"}])
def test_a_completion_without_its_words_is_refused(
    words: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_SHARDWRIGHT_COMPLETE": "bash_complete", **words}.items():
        monkeypatch.setenv(name, value)
    assert run([]) == 2
    assert capsys.readouterr().err.count("\n") == 1
