"""A long process stays small: what calls leave behind is bounded in bytes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shardwright.tools.caches import SharedCache

pytestmark = pytest.mark.thorough

# Every call has its own load, links and names, so that no cached result serves twice.
CALLS = """
import resource
from pathlib import Path
import shardwright
from shardwright.tools.rules.examples import base_plan

def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

def call(number):
    plan = base_plan(("moe-ep2", "dense-tp2")[number % 2])
    plan["workload"] |= {"input_tokens": 100 + number, "concurrency": 1 + number % 30}
    plan["hardware"]["intra_node_bw_gb_s"] = 50 + number
    shardwright.estimate(plan)
    shardwright.explain(f"why PP003 with {number} GPUs?")
    lost = plan["nodes"].pop(1 + number % (len(plan["nodes"]) - 1))
    plan["nodes"].append({"id": "y" * 100_000 + str(number), "type": "ShardNode", "parent": "z" * 100_000 + str(number),
                          "rank": {}, "devices": ["x" * 100_000 + str(number)]})
    shardwright.validate(plan)
    if number % 5 == 0:
        shardwright.autofix(plan)

held = []
for number in range(80):
    call(number)
    if number % 40 == 39:
        held.append(resident_mib())
print(*held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat_over_many_calls() -> None:
    process = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=False, timeout=300)
    assert process.returncode == 0, process.stderr[-500:]
    half, whole = map(float, process.stdout.split())
    assert whole < 400
    assert whole - half < 25


def test_what_is_kept_never_exceeds_its_bytes() -> None:
    cache = SharedCache[int, bytes](1000, lambda _, value: len(value))
    for number in range(100):
        value = bytes(number * 20)
        assert cache.keep(number, value) is value
        assert cache.held_bytes <= 1000
        assert (cache.get(number) == value) == (len(value) <= 1000)
