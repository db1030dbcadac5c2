"""Property tests look for faults, not for seconds: no example fails for being slow on a busy machine.

No test finds a model in the cache of the machine that it runs on, or asks a network for one.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
os.environ["HF_HUB_CACHE"] = os.devnull
os.environ.pop("SHARDWRIGHT_ONLINE", None)
