"""Models of the catalogue: the shapes that decide how they can be split."""

from __future__ import annotations

from ...tools.catalog.architecture import Architecture
from ...tools.catalog.models import ModelEntry, find_model
from ..reader import KnowledgeError
from .markdown import table

_HEADS = ("model", "layers", "hidden", "query heads", "KV heads", "attention", "experts (per token)", "params B")


def generate(*names: str) -> str:
    """The table of the models `names`.

    Raises:
        KnowledgeError: none is named.
        UnknownNameError: the catalogue does not have one of them.
    """
    if not names:
        raise KnowledgeError("name the models")
    return "\n".join(table(_HEADS, [_row(find_model(name)) for name in names]))


def _row(entry: ModelEntry) -> tuple[str, ...]:
    architecture = entry.architecture()
    moe = next((layer.moe for layer in architecture.layers if layer.moe is not None), None)
    return (
        entry.short_name,
        str(architecture.num_layers),
        f"{architecture.hidden_size:,}",
        _each(architecture, "query_heads"),
        _each(architecture, "kv_heads"),
        "+".join(dict.fromkeys(layer.attention.kind for layer in architecture.layers if layer.attention is not None)),
        f"{moe.experts} ({moe.top_k})" if moe is not None else "—",
        f"{architecture.total_params / 1e9:,.1f}",
    )


def _each(architecture: Architecture, field: str) -> str:
    """A figure of the attention operators: one, or each different one."""
    values = [getattr(layer.attention, field) for layer in architecture.layers if layer.attention is not None]
    return "/".join(str(value) for value in dict.fromkeys(values))
