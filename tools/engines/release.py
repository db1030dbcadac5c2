"""Releases of an engine, as they compare."""

from __future__ import annotations

import re

# Releases compare as tuples do: (0, 12) is before (0, 12, 1), and (0, 12, 0) is not before (0, 12).
Release = tuple[int, ...]

_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
_MAX_READ = 200


def release_of(version: str | None) -> Release | None:
    """The numbers of a version (`v0.5.8.post1`: 0, 5, 8); `None` where it states none."""
    match = _RELEASE.search((version or "")[:_MAX_READ])
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))
