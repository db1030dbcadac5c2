"""Two hundred documents are checked and twenty deployments planned at once, and memory does not grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardwright.benchmarks.serve_load import load

from .served import as_process

pytestmark = pytest.mark.thorough

MIB = 1 << 20


def test_many_at_once_are_all_answered_in_steady_memory(tmp_path: Path) -> None:
    with as_process(tmp_path, "--quiet") as server:
        (few,) = load(server.url, validates=20, plans=2, rounds=1)
        (many,) = load(server.url, validates=200, plans=20, rounds=1)
        assert not few.failed + many.failed
        assert many.memory_bytes - few.memory_bytes < 80 * MIB
        assert server.end() == 0
    assert server.errors.read_text().count("\n") == 1
