"""How a model's config differs from the catalogue's checkpoint of the same name.

The document's config counts, since it is what is planned for; but an engine given the name serves the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from .architecture import Architecture
from .attention.spec import AttentionSpec
from .entry import ModelEntry
from .models import all_models


def _of_attention(get: Callable[[AttentionSpec], int]) -> Callable[[Architecture], int]:
    return lambda model: max(
        (get(kind.attention) for kind in model.layer_kinds if kind.attention is not None), default=0
    )


# The dimensions that decide how a model splits and what it costs; the greatest where layers differ.
_FIGURES: Mapping[str, Callable[[Architecture], int]] = {
    "layers": lambda model: model.num_layers,
    "hidden size": lambda model: model.hidden_size,
    "vocabulary": lambda model: model.vocab_size,
    "query heads": _of_attention(lambda spec: spec.query_heads),
    "KV heads": _of_attention(lambda spec: spec.kv_heads),
    "head dimension": _of_attention(lambda spec: spec.qk_head_dim),
    "FFN width": lambda model: max((kind.ffn.width for kind in model.layer_kinds if kind.ffn is not None), default=0),
    "experts": lambda model: model.num_experts,
    "experts of a token": lambda model: max((kind.moe.top_k for kind in model.layer_kinds if kind.moe), default=0),
    "expert width": lambda model: max((kind.moe.width for kind in model.layer_kinds if kind.moe), default=0),
}


@cache
def _entries() -> Mapping[str, ModelEntry]:
    by_name = ((name, entry) for entry in all_models() for name in (entry.name, *entry.aliases) if "/" in name)
    return {name.lower(): entry for name, entry in by_name}


def unlike_name(model: Mapping[str, object], actual: Architecture | None) -> tuple[str, ...]:
    """How a document's `model`, of architecture `actual`, differs from the catalogue's checkpoint of that very name."""
    name = model.get("name")
    entry = _entries().get(name.lower()) if isinstance(name, str) else None
    if actual is None or entry is None or entry.config == model.get("config"):
        return ()
    known = entry.architecture()
    differ = [
        f"{title} {get(actual):,} instead of {get(known):,}"
        for title, get in _FIGURES.items()
        if get(actual) != get(known)
    ]
    if not differ:
        return ()
    return (f"{name} has other dimensions in the catalogue than in this config, which counts: {', '.join(differ)}",)
