"""Property tests look for faults, not for seconds: no example fails for being slow on a busy machine.

Tests that try every place of a plan try the first and the last of each kind (`examples.py`); a night tries all.

`HYPOTHESIS_PROFILE=nightly` draws ten times as many examples as a run without it.

Of a test marked `one_in(n)` a plain run tries one case in n, and each such test others; the rest are `thorough`.

No test finds a model in the cache of the machine that it runs on, or asks a network for one.
"""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

# A plain run draws a tenth of the examples, the thorough step a quarter, in CI the same each time; a night draws all,
# and others than the night before.
settings.register_profile("push", max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("push"), max_examples=25)
settings.register_profile("nightly", settings.get_profile("push"), max_examples=100, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "push"))
os.environ["HF_HUB_CACHE"] = os.devnull
os.environ.pop("SHARDWRIGHT_ONLINE", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look through what was collected again: it lives to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases that a plain run leaves out; where a test begins to count follows from its name."""
    sampled: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("one_in"):
            sampled[item.nodeid.partition("[")[0]].append(item)
    for name, cases in sampled.items():
        (share,) = cases[0].get_closest_marker("one_in").args
        first = crc32(name.encode()) % min(share, len(cases))
        for place, case in enumerate(cases):
            if place % share != first:
                case.add_marker(pytest.mark.thorough)
