"""Calls are timed on operands that no cache holds, and what cannot be timed is left out by name.

These tests time plain Python calls on the host, without PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from shardwright.tools.calibration.measure.machine import FULL, QUICK, Call, Machine, Subject, time_calls, timed_row
from shardwright.tools.calibration.measure.run import measure
from shardwright.tools.calibration.measure.table import KernelRow, Skipped
from shardwright.tools.errors import InputError

HOST = Machine(torch=None, kind="cpu", device_name="host", gpu="cpu", count=1)
CARD = Machine(torch=None, kind="cuda", device_name="one card", gpu="h100-sxm", count=1)
SHAPE = {"dtype": "bf16", "m": "1", "n": "512", "k": "512"}
NAP_S = 0.004


def refuse() -> object:
    """A kernel that fails for lack of memory."""
    raise RuntimeError("CUDA out of memory.\nTried to allocate 40.00 GiB")


def test_a_call_is_timed_by_what_it_takes() -> None:
    timed = time_calls(HOST, [lambda: time.sleep(NAP_S), lambda: time.sleep(NAP_S)], QUICK)
    assert timed.mode == "host"
    assert timed.us >= NAP_S * 1e6


def test_a_short_call_is_repeated_and_every_operand_takes_its_turn() -> None:
    turns: list[int] = []
    calls: list[Call] = [lambda: turns.append(0), lambda: turns.append(1), lambda: turns.append(2)]
    timed = time_calls(HOST, calls, QUICK)
    assert timed.us > 0.0
    # Three calls to warm up, then all in turn, over and over.
    measured = turns[3:]
    assert len(measured) > 3 * QUICK.replays
    assert measured == [0, 1, 2] * (len(measured) // 3)


def test_operands_together_are_more_than_twice_the_cache() -> None:
    for operand_bytes in (1e3, 1e5, 3e6):
        assert HOST.copies(operand_bytes) * operand_bytes >= min(2.0 * HOST.cache_bytes, 4096 * operand_bytes)
    assert HOST.copies(1e9) == 1


@pytest.mark.parametrize(
    ("operand_bytes", "call", "says"),
    [(1e3, refuse, "CUDA out of memory."), (1e13, time.monotonic, "operands that do not fit into memory")],
)
def test_what_cannot_be_timed_is_left_out_by_name(operand_bytes: float, call: Call, says: str) -> None:
    def calls(copies: int) -> Sequence[Call]:
        return [call] * copies

    assert timed_row(HOST, QUICK, Subject("gemm", SHAPE, operand_bytes), calls) == Skipped("gemm", says)


def test_what_can_be_timed_is_a_row_of_the_machine() -> None:
    named = Machine(torch=_Named, kind="cpu", device_name="host", gpu="cpu", count=1)
    row = timed_row(named, QUICK, Subject("gemm", SHAPE, 1e6), lambda copies: [time.monotonic] * copies)
    assert isinstance(row, KernelRow)
    assert (row.gpu, row.src, row.mode, row.shape) == ("cpu", "torch-2.13.0", "host", SHAPE)


def test_one_accelerator_has_no_collectives() -> None:
    with pytest.raises(InputError, match="nothing could be measured: collectives: there is one accelerator"):
        measure(CARD, ("collectives",), FULL)


class _Named:
    """A library that has nothing but a version."""

    __version__ = "2.13.0"
