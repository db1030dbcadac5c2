"""Versions of engines as they are written: "0.19.0", "v0.7.3+cu124", "1.2.1 (PyTorch backend)"."""

from __future__ import annotations

import re

Release = tuple[int, int]

_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})")
_MAX_READ = 200


def release_of(version: str | None) -> Release | None:
    """The first two numbers of a version; `None` where it states none."""
    match = _RELEASE.search((version or "")[:_MAX_READ])
    return None if match is None else (int(match[1]), int(match[2]))
