"""What a model's config has otherwise than the checkpoint of the catalogue that its name is of.

The config counts: a document says with it what it plans for. Who serves the name serves the checkpoint's, though.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from .architecture import Architecture
from .attention.spec import AttentionSpec
from .entry import ModelEntry
from .models import all_models


def _of_attention(get: Callable[[AttentionSpec], int]) -> Callable[[Architecture], int]:
    return lambda model: max((get(one.attention) for one in model.layer_kinds if one.attention is not None), default=0)


# The dimensions that decide how a model splits and what it takes; the greatest where layers differ.
_FIGURES: Mapping[str, Callable[[Architecture], int]] = {
    "layers": lambda model: model.num_layers,
    "hidden size": lambda model: model.hidden_size,
    "vocabulary": lambda model: model.vocab_size,
    "query heads": _of_attention(lambda spec: spec.query_heads),
    "KV heads": _of_attention(lambda spec: spec.kv_heads),
    "head dimension": _of_attention(lambda spec: spec.qk_head_dim),
    "FFN width": lambda model: max((one.ffn.width for one in model.layer_kinds if one.ffn is not None), default=0),
    "experts": lambda model: model.num_experts,
    "experts of a token": lambda model: max((one.moe.top_k for one in model.layer_kinds if one.moe), default=0),
    "expert width": lambda model: max((one.moe.width for one in model.layer_kinds if one.moe), default=0),
}


@cache
def _entries() -> Mapping[str, ModelEntry]:
    whole = ((name, entry) for entry in all_models() for name in (entry.name, *entry.aliases) if "/" in name)
    return {name.lower(): entry for name, entry in whole}


def unlike_name(model: Mapping[str, object], own: Architecture | None) -> tuple[str, ...]:
    """How a document's `model`, of `own` architecture, differs from the catalogue's checkpoint of that very name."""
    name = model.get("name")
    entry = _entries().get(name.lower()) if isinstance(name, str) else None
    if own is None or entry is None or entry.config == model.get("config"):
        return ()
    known = entry.architecture()
    found = [
        f"{title} {get(own):,} instead of {get(known):,}" for title, get in _FIGURES.items() if get(own) != get(known)
    ]
    if not found:
        return ()
    return (f"{name} has other dimensions in the catalogue than in this config, which counts: {', '.join(found)}",)
