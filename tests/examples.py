"""How many examples a property test draws: a share of its number, which the profile says (see `conftest.py`)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

# Below this a share says little of a property, and saves little.
FEW = 5


def examples(number: int, **more: Any) -> settings:
    """Settings for `number` examples where all are drawn, as each night, and for the profile's share elsewhere."""
    share = number * settings.default.max_examples // 100
    return settings(max_examples=max(share, min(number, FEW)), **more)
