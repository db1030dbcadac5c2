"""The journal loses no finished work, and touches no other file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import BaseModel

from shardwright.agent.runs.journal import Form, Journal
from shardwright.tools.errors import InputError

from ..examples import examples


class Line(BaseModel):
    """The stored result of a case."""

    text: str
    number: float


SAMPLE = Form("sample", Line, most_line_bytes=1 << 16)


def row(number: int) -> Line:
    """A row with a number, and with characters at which a line must not break."""
    return Line(text="“quoted”\nand 中文", number=0.1 + number / 3)


KEPT = {f"key-{number}": row(number) for number in range(5)}


def written(path: Path, digest: str = "a") -> bytes:
    """A journal with all of `KEPT`."""
    path.unlink(missing_ok=True)
    with Journal(path, SAMPLE, digest) as journal:
        for key, result in KEPT.items():
            journal.keep(key, result)
    return path.read_bytes()


def test_what_was_kept_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    with Journal(path, SAMPLE, "a") as journal:
        assert journal.rows == KEPT
        assert not journal.changed


def test_another_run_is_noticed_and_keeps_the_cases_that_it_shares(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    with Journal(path, SAMPLE, "b") as journal:
        assert journal.changed
        assert journal.rows == KEPT
    with Journal(path, SAMPLE, "b") as journal:
        assert not journal.changed


def test_a_fresh_journal_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    with Journal(path, SAMPLE, "a", fresh=True) as journal:
        assert journal.rows == {}
    assert path.read_bytes().count(b"\n") == 1


def test_rows_of_another_version_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    text = written(path)
    start = text.index(b'"package":"') + len(b'"package":"')
    path.write_bytes(text[:start] + b"9" + text[start:])
    with Journal(path, SAMPLE, "a") as journal:
        assert journal.rows == {}
        journal.keep("key-1", KEPT["key-1"])
    with Journal(path, SAMPLE, "a") as journal:
        assert journal.rows == {"key-1": KEPT["key-1"]}


@examples(60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data())
def test_cut_short_anywhere_it_keeps_every_whole_line_and_goes_on(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "journal"
    whole = written(path)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    lines = max(0, whole[:cut].count(b"\n") - 1)
    with Journal(path, SAMPLE, "a") as journal:
        assert journal.rows == dict(list(KEPT.items())[:lines])
        journal.keep("more", row(9))
    with Journal(path, SAMPLE, "a") as journal:
        assert len(journal.rows) == lines + 1


def test_a_damaged_line_costs_that_case_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = written(path).split(b"\n")
    lines[2] = b"\x00" * len(lines[2])
    path.write_bytes(b"\n".join(lines))
    with Journal(path, SAMPLE, "a") as journal:
        assert set(journal.rows) == set(KEPT) - {"key-1"}


# A whole header of a journal for something else.
OTHER = b'{"format":"shardwright/other-journal","version":"1","package":"1","run":"a"}\n'


@pytest.mark.parametrize("content", [b"my notes\n", b"{}", b'{"format": "other"}\n', b"\n", OTHER])
def test_a_file_of_another_kind_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(content)
    for fresh in (False, True):
        with pytest.raises(InputError, match="is no sample journal"):
            Journal(path, SAMPLE, "a", fresh=fresh)
        assert path.read_bytes() == content


def test_two_runs_never_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, SAMPLE, "a"):
        before = path.read_bytes()
        with pytest.raises(InputError, match="another sample is writing"):
            Journal(path, SAMPLE, "a", fresh=True)
        assert path.read_bytes() == before
    with Journal(path, SAMPLE, "a"):
        pass


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        Journal(tmp_path / "missing" / "journal", SAMPLE, "a")


def test_a_line_longer_than_any_row_is_not_taken_and_ends_no_run(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = written(path)
    path.write_bytes(whole + b"x" * (3 * SAMPLE.most_line_bytes) + b"\n")
    with Journal(path, SAMPLE, "a") as journal:
        assert journal.rows == KEPT
