"""Property tests look for faults, not for seconds: no example fails for being slow on a busy machine.

`HYPOTHESIS_PROFILE=nightly` draws four times as many examples as a run without it.

No test finds a model in the cache of the machine that it runs on, or asks a network for one.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A push draws a quarter of the examples, in CI the same each time; a night draws all, and others than the night before.
settings.register_profile("push", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("push"), max_examples=100, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "push"))
os.environ["HF_HUB_CACHE"] = os.devnull
os.environ.pop("SHARDWRIGHT_ONLINE", None)
