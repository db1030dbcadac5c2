"""Rewrites a plan document for another engine, as exports and comparisons need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .elements import as_mapping


def on_engine(document: Mapping[str, Any], engine: str, version: str | None = None) -> dict[str, Any]:
    """`document` with `engine` of `version` (`None`: any) in place of its own; settings are kept, flags are not.

    Claimed figures were those of the other engine, and are left out.
    """
    # Flags only fit the engine that they were kept for.
    left_out = ("engine_version", "flags")
    settings = {name: value for name, value in as_mapping(document.get("serving")).items() if name not in left_out}
    named = {"engine": engine} if version is None else {"engine": engine, "engine_version": version}
    remaining = {name: value for name, value in document.items() if name != "performance"}
    return {**remaining, "serving": {**settings, **named}}
