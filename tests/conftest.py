"""Property tests look for faults, not for seconds: no example fails for being slow on a busy machine.

Tests that try every place of a plan try the first and the last of each kind (`examples.py`); a night tries all.

`HYPOTHESIS_PROFILE=nightly` draws four times as many examples as a run without it.

No test finds a model in the cache of the machine that it runs on, or asks a network for one.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A push draws a quarter of the examples, in CI the same each time; a night draws all, and others than the night before.
settings.register_profile("push", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
