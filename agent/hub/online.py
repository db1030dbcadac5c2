"""Whether models may be fetched: `--online`, or SHARDWRIGHT_ONLINE=1. Unasked, nothing here touches a network."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

VARIABLE = "SHARDWRIGHT_ONLINE"


@contextmanager
def online(is_allowed: bool | None = None) -> Generator[None]:
    """Inside, a model that is neither in the catalogue nor in the local Hugging Face cache is fetched.

    Only if that is allowed; the environment says so where the caller does not.
    """
    asked = os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")
    if not (asked if is_allowed is None else is_allowed):
        yield
        return
    from ...tools.catalog.hub_cache import fetching
    from .fetch import fetch_config

    with fetching(fetch_config):
        yield
