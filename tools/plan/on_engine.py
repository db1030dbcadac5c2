"""A plan document as one that names another engine: as what exports and comparisons judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .elements import as_mapping


def on_engine(document: Mapping[str, Any], engine: str, version: str | None = None) -> dict[str, Any]:
    """`document` with `engine` of `version` (`None`: any) in the place of its own; settings are kept, flags are not.

    What it claims was of another engine, and is left out.
    """
    # Flags are those of the engine that they were kept for.
    left_out = ("engine_version", "flags")
    settings = {name: value for name, value in as_mapping(document.get("serving")).items() if name not in left_out}
    named = {"engine": engine} if version is None else {"engine": engine, "engine_version": version}
    kept = {name: value for name, value in document.items() if name != "performance"}
    return {**kept, "serving": {**settings, **named}}
