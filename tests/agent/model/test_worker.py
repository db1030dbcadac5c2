"""Work under a deadline: its result, its errors, and that nobody waits for it longer."""

from __future__ import annotations

import threading
import time

import pytest

from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.worker import Line, OverdueError, work_until

PATIENCE_S = 300


def test_pieces_come_in_order_before_the_result() -> None:
    seen: list[str] = []

    def work(line: Line) -> int:
        for piece in ("a", "", "b"):
            line.say(piece)
        return 7

    assert work_until(Deadline.after(PATIENCE_S), work, on_piece=seen.append) == 7
    assert seen == ["a", "b"]


def test_what_the_work_raises_is_raised() -> None:
    def work(line: Line) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        work_until(Deadline.after(PATIENCE_S), work)


@pytest.mark.parametrize("is_talking", [False, True])
def test_at_the_deadline_the_work_is_told_and_left(is_talking: bool) -> None:
    given_up, noticed, dropped = threading.Event(), threading.Event(), threading.Event()

    def work(line: Line) -> None:
        while is_talking and not given_up.is_set():
            line.say("x")
        # It ends only after it was given up; a caller that still waited for it would time out.
        if given_up.wait(PATIENCE_S) and line.is_dropped:
            noticed.set()

    with pytest.raises(OverdueError):
        work_until(Deadline.after(0.1), work, on_drop=dropped.set)
    given_up.set()
    assert dropped.is_set()
    assert noticed.wait(PATIENCE_S)


def test_a_listener_that_fails_ends_the_work() -> None:
    ended = threading.Event()

    def work(line: Line) -> None:
        line.say("x")
        while not line.is_dropped:
            time.sleep(0.005)
        ended.set()

    def refuse(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_until(Deadline.after(PATIENCE_S), work, on_piece=refuse)
    assert ended.wait(PATIENCE_S)
