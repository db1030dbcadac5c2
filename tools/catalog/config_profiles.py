"""What each `model_type` implies: documented defaults of absent fields, and traits that no config states.

The table is data (`data/model_types.json`, taken from the Hugging Face configuration and model classes). An unknown
`model_type` is refused with the nearest known ones; a config without any is read as a plain decoder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from ..errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Profile:
    """One model type. `sizes` hold in a nested `text_config` only: such a part is saved as a difference from them."""

    model_type: str | None
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sizes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    traits: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def needs_experts(self) -> bool:
        """Whether a config of this type always has routed experts."""
        return "num_experts" in self.sizes


PLAIN = Profile(None)
_DATA_PACKAGE = __name__.rpartition(".")[0]


@cache
def _types() -> Mapping[str, Any]:
    text = files(_DATA_PACKAGE).joinpath("data/model_types.json").read_text(encoding="utf-8")
    return json.loads(text)["types"]


@lru_cache(maxsize=256)
def find_profile(model_type: str) -> Profile:
    """The profile of `model_type`; upper case and hyphens for underscores are forgiven.

    Raises:
        UnknownNameError: no such type is known; it carries the nearest known ones.
    """
    types = _types()
    name = model_type if model_type in types else model_type.strip().lower().replace("-", "_")
    entry = types.get(name)
    if entry is None:
        nearest = tuple(get_close_matches(name[:100], list(types), n=3, cutoff=0.5))
        raise UnknownNameError("model_type", model_type[:100], nearest)
    base = types[entry.get("same_as", name)]
    return Profile(name, base.get("defaults", {}), base.get("sizes", {}), base.get("traits", {}))
