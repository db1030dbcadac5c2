"""Runs of a dataset give the same results in the same order, however they are run, broken off and resumed."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import random
import signal
from pathlib import Path

import pytest

from shardwright.agent.evaluation.dataset import Dataset
from shardwright.agent.evaluation.results import CaseResult, Kept, digest_of
from shardwright.agent.evaluation.run import RunOptions, group_of, run_dataset
from shardwright.tests.evaluation.running import BUILTIN, Failing, broken_plans
from shardwright.tools.errors import InputError

pytestmark = pytest.mark.thorough

SMALL = broken_plans(6)
HERE = RunOptions(jobs=1)


def results(done: tuple[Kept, ...]) -> tuple[CaseResult, ...]:
    return tuple(case.result for case in done)


@pytest.fixture(scope="module")
def whole() -> tuple[CaseResult, ...]:
    return results(run_dataset(SMALL, BUILTIN, HERE))


def test_results_come_in_the_order_of_the_dataset_then_of_epochs(whole: tuple[CaseResult, ...]) -> None:
    heard: list[Kept] = []
    done = run_dataset(SMALL, BUILTIN, RunOptions(jobs=1, epochs=2), heard.append)
    assert [(case.result.id, case.result.epoch) for case in done] == [
        (case.id, epoch) for case in SMALL.cases for epoch in (1, 2)
    ]
    assert sorted(heard, key=lambda case: (case.result.id, case.result.epoch)) == list(done)
    assert all(case.seconds > 0 and case.result.fault is None and case.detail is None for case in done)
    assert digest_of(results(done[::2])) == digest_of(whole)


def test_the_cases_are_answered(whole: tuple[CaseResult, ...]) -> None:
    assert {result.answer for result in whole} == {"plan"}
    assert not any(result.passed("rules", "at_once") for result in whole)
    assert all(result.passed("rules") for result in whole)


def test_a_case_that_kills_its_process_costs_itself_alone(whole: tuple[CaseResult, ...]) -> None:
    two = Dataset("sample", SMALL.cases[:2])
    dead, sound = results(run_dataset(two, Failing(dies=("case-0",)), RunOptions(jobs=2)))
    assert (dead.id, dead.answer, dead.passed("rules")) == ("case-0", "failed", False)
    assert (dead.fault or "").startswith("ProcessDied: ")
    assert sound == whole[1]


def test_a_case_that_broke_is_tried_again_and_no_other(tmp_path: Path) -> None:
    options = RunOptions(jobs=1, journal=tmp_path / "journal")
    done = run_dataset(SMALL, Failing(raises=("case-2",)), options)
    assert done[2].result.fault == "ZeroDivisionError: not foreseen by anybody"
    assert [case.result.fault for case in done].count(None) == len(SMALL.cases) - 1
    times = {case.result.id: case.seconds for case in done}
    heard: list[Kept] = []
    again = run_dataset(SMALL, Failing(raises=("case-2",)), options, heard.append)
    assert results(again) == results(done)
    assert [case.result.id for case in heard][-1] == "case-2"
    # A stored result has its original seconds.
    assert all(case.seconds == times[case.result.id] for case in again if case.result.id != "case-2")


def test_only_what_was_asked_alike_is_kept(tmp_path: Path, whole: tuple[CaseResult, ...]) -> None:
    journal = tmp_path / "journal"
    run_dataset(Dataset("first", SMALL.cases[:4]), BUILTIN, RunOptions(jobs=1, journal=journal))
    lines = journal.read_bytes().count(b"\n")
    assert lines == 5
    done = run_dataset(SMALL, BUILTIN, RunOptions(jobs=1, journal=journal))
    assert results(done) == whole
    # The header of the larger run, and the two cases that were not stored.
    assert journal.read_bytes().count(b"\n") == lines + 3
    run_dataset(Dataset("first", SMALL.cases[:1]), Failing(), RunOptions(jobs=1, journal=journal))
    assert journal.read_bytes().count(b"\n") == lines + 5


def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(InputError, match="no evaluation journal"):
        run_dataset(SMALL, BUILTIN, RunOptions(jobs=1, journal=path))
    assert path.read_text() == "my notes\n"


def test_a_solver_that_cannot_be_sent_answers_here(whole: tuple[CaseResult, ...]) -> None:
    class Local(Failing):
        """A solver that no other process can import."""

    done = run_dataset(SMALL, Local(), RunOptions(jobs=2))
    assert results(done) == whole


def test_cases_that_ask_the_same_are_one_group() -> None:
    groups = [group_of(case) for case in SMALL.cases]
    assert groups[0] == groups[3] != groups[1]


def begun(options: RunOptions) -> multiprocessing.process.BaseProcess:
    """Start a run in a new process."""
    process = multiprocessing.get_context("fork").Process(target=run_dataset, args=(SMALL, BUILTIN, options))
    process.start()
    return process


def kept_in(path: Path) -> int:
    return path.read_bytes().count(b'{"case":') if path.exists() else 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of this kind here")
def test_a_run_that_is_killed_at_any_moment_ends_as_if_it_had_not_been(
    tmp_path: Path, whole: tuple[CaseResult, ...]
) -> None:
    draws, options = random.Random(7), RunOptions(jobs=1, journal=tmp_path / "journal")
    killed = 0
    for _ in range(40):
        before = kept_in(tmp_path / "journal")
        run = begun(options)
        run.join(draws.uniform(0.02, 0.4))
        run.kill()
        run.join()
        assert kept_in(tmp_path / "journal") >= before
        if run.exitcode == 0:
            break
        killed += 1
    assert killed > 0
    heard: list[Kept] = []
    assert results(run_dataset(SMALL, BUILTIN, options, heard.append)) == whole
    assert kept_in(tmp_path / "journal") <= len(SMALL.cases) + killed


def test_an_interrupt_keeps_what_is_finished(tmp_path: Path, whole: tuple[CaseResult, ...]) -> None:
    options = RunOptions(jobs=1, journal=tmp_path / "journal")
    # Tests in the background of a shell ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(_: Kept) -> None:
        if kept_in(tmp_path / "journal") == 3:
            signal.raise_signal(signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            run_dataset(SMALL, BUILTIN, options, interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept_in(tmp_path / "journal") == 3
    assert results(run_dataset(SMALL, BUILTIN, options)) == whole
    assert kept_in(tmp_path / "journal") == len(SMALL.cases)
