"""Quantised checkpoints of the catalogue's models: what the suffix of a published name says of its weights.

"Qwen3-4B-FP8" is more than Qwen3-4B in another format: its scales belong to blocks that no device may hold a part
of. The rules are data with their sources; for a suffix without a rule the result says that its scales are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from ..input.files import shipped
from .architecture import Architecture
from .dtypes import WIDE
from .entry import ModelEntry
from .names import format_tokens, named_format
from .precision import is_native

_WIDENED = "the model's own weights, widened"
# Fields of a config that state how the base model is stored.
_STORED = ("quantization_config", "native_weight_dtype", "expert_dtype", "torch_dtype", "dtype")


class Checkpoint(Struct, frozen=True):
    """A quantised checkpoint: its name, its config, and the config's source. `config` is `None` if unknown."""

    name: str
    config: Mapping[str, Any] | None
    source: str


@cache
def _rules() -> list[dict[str, Any]]:
    return shipped(__name__, "checkpoints.json")["checkpoints"]


def checkpoint_of(written: str, entry: ModelEntry, architecture: Architecture) -> Checkpoint | None:
    """The checkpoint of `entry`, which has this `architecture`, that the name `written` means.

    `None` where the name states no number format, or the one that the model is published in.
    """
    stated, tokens = named_format(written), format_tokens(written)
    if stated is None or is_native(architecture.native_precision, stated):
        return None
    publisher, short, config = entry.name.split("/")[0], entry.short_name, entry.config
    if "/" in written.strip():
        publisher = written.strip().rsplit("/", 1)[0].rsplit("/", 1)[-1]
    if stated in WIDE:
        return Checkpoint(f"{publisher}/{short}-{stated.upper()}", _stored(config, {"torch_dtype": stated}), _WIDENED)
    for rule in _rules():
        if _covers(rule, tokens, publisher, entry.base or entry.name, is_moe=architecture.is_moe):
            changed = {"torch_dtype": "bfloat16", **rule.get("config", {})}
            if architecture.native_dtypes.norm == "fp16":
                changed["torch_dtype"] = "float16"
            changed["quantization_config"] = rule["quantization_config"]
            return Checkpoint(f"{publisher}/{short}-{rule['suffix']}", _stored(config, changed), rule["source"])
    prefix = f"{publisher}/" if "/" in written else ""
    return Checkpoint(f"{prefix}{short}-{stated.upper()}", None, "")


def _stored(config: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _STORED} | dict(changed)


def _covers(rule: Mapping[str, Any], tokens: frozenset[str], publisher: str, entry: str, *, is_moe: bool) -> bool:
    publishers, models = rule["publishers"], rule["models"]
    return (
        tokens.issuperset(rule["tokens"])
        and (publishers is None or publisher.lower() in (name.lower() for name in publishers))
        and (models is None or (models == "dense" and not is_moe) or (models != "dense" and entry in models))
    )
