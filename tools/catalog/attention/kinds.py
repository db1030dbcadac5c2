"""Every kind of attention; a new kind is a file of its own and an entry here."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from .chunked import ChunkedAttention
from .compressed import CompressedAttention
from .full import FullAttention
from .linear import LinearAttention
from .mla import MultiHeadLatentAttention
from .sliding import SlidingAttention
from .spec import AttentionContext, AttentionSpec

# The first kind that reads a layer takes it: one that reads layers called full stands before `FullAttention`.
KINDS: tuple[type[AttentionSpec], ...] = (
    LinearAttention,
    CompressedAttention,
    MultiHeadLatentAttention,
    FullAttention,
    SlidingAttention,
    ChunkedAttention,
)

# Words of a config's layer types → the layer type that a kind is read from.
LAYER_TYPES: Mapping[str, str] = {word: name for kind in KINDS for word, name in kind.layer_types.items()}
_NAMED = {word: kind for kind in KINDS for word in (*kind.also_called, kind.kind)}


def read_attention(context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
    """The attention of a layer of `layer_type`, one of the values of `LAYER_TYPES`.

    Its matrices get the tensor class of attention: some checkpoints keep them in 16 bits or more.
    """
    kind = next(kind for kind in KINDS if kind.reads(context, layer_type))
    spec = kind.read(context, layer_type, has_indexer=has_indexer)
    tensors = (replace(w, tensor_class="attention") if w.tensor_class == "linear" else w for w in spec.tensors)
    return replace(spec, tensors=tuple(tensors))


def kind_named(written: str) -> type[AttentionSpec] | None:
    """The kind that people call `written`; `None` where no kind is called so."""
    return _NAMED.get(word_of(written))


def word_of(written: str) -> str:
    """`written` as `also_called` spells it: lower case, joined by underscores, without the word attention."""
    return written.strip().lower().replace("-", "_").replace(" ", "_").removesuffix("_attention")
