"""An attention operator with its norm, whatever its kind: tensors, cache, heads, attended pairs, and the names that
configs use.

Each kind is a subclass in a file of its own, registered in `kinds.py`. It overrides what differs from plain causal
attention and states how configs name it and how it is read; no code outside this package asks for a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from msgspec import Struct

from ..config_fields import ConfigFields, Profile
from ..dtypes import WeightTensor, vector


class Attended(NamedTuple):
    """What the new tokens of one sequence attend to.

    `pairs` of a query and a key, `read_tokens` that are read from the cache, and pairs that a sparse indexer scores.
    """

    pairs: float
    read_tokens: float
    scored_pairs: float = 0.0


class SplitSize(Struct, frozen=True):
    """Heads that tensor parallelism deals out; with `may_repeat` a multiple of them holds copies."""

    what: str
    size: int
    may_repeat: bool = False


class LatentWidths(Struct, frozen=True):
    """MLA: widths of the latent, of the keys' rotary part and the rest, and of the query's low rank (`None`: none)."""

    latent: int
    rope: int
    nope: int
    query_rank: int | None


class AttentionSpec(Struct, frozen=True, kw_only=True):
    """One attention operator: shapes, tensors and what it caches.

    `cache_elements_per_token` is over all KV heads and before any parallelism; `cache_shards` is the greatest number
    of parts that tensor parallelism can cut the cache into (KV heads; 1 for MLA and MQA). `window_tokens` caps the
    cached tokens of a sequence. `state_elements` is what a sequence keeps however long it is (`state_shards` parts at
    most): all of a recurrent layer's cache, and of a compressed one the window that it keeps uncompressed.
    """

    query_heads: int
    kv_heads: int
    qk_head_dim: int
    v_head_dim: int
    tensors: tuple[WeightTensor, ...]
    cache_elements_per_token: int
    cache_shards: int
    window_tokens: int | None = None
    state_elements: int = 0
    state_shards: int = 1
    latent: LatentWidths | None = None
    # Sparse attention: each query attends to at most `index_topk` cached entries; a layer without index heads of its
    # own reuses the choice of the one before it.
    index_topk: int | None = None
    index_heads: int | None = None
    index_head_dim: int | None = None

    kind: ClassVar[str]
    # The words of a config's layer types → the layer type that `reads` is asked for.
    layer_types: ClassVar[Mapping[str, str]] = {}
    # What people write for the kind in a plan.
    also_called: ClassVar[frozenset[str]] = frozenset()
    # Each token updates a constant state in place of attending to a cache.
    is_recurrent: ClassVar[bool] = False
    # A measured kernel times the kind: one over all cached tokens, or over a window. A kind that attends to other
    # pairs has none; the roofline times what `attends` counts.
    has_kernel: ClassVar[bool] = True

    @classmethod
    def reads(cls, context: AttentionContext, layer_type: str) -> bool:
        """Whether layers of `layer_type` in this config are of this kind."""
        return layer_type in cls.layer_types.values()

    @classmethod
    def read(cls, context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
        """The operator of such a layer; `has_indexer`: it selects tokens itself, where the model has an indexer."""
        raise NotImplementedError

    def attends(self, new_tokens: int, context: int) -> Attended:
        """What `new_tokens` of a sequence attend to behind `context` cached ones."""
        return Attended(causal_pairs(new_tokens, context), float(context + new_tokens))

    def cached_tokens(self, tokens: int) -> int:
        """Tokens that a sequence of `tokens` keeps in the cache."""
        return tokens if self.window_tokens is None else min(tokens, self.window_tokens)

    def state_element_bytes(self, kv_element_bytes: float) -> float:
        """Bytes of one element of the constant state, where the cache has `kv_element_bytes`."""
        return kv_element_bytes

    def split_sizes(self) -> tuple[SplitSize, ...]:
        """Head counts that a degree of tensor parallelism has to divide."""
        return SplitSize("query heads", self.query_heads), SplitSize("KV heads", self.kv_heads, may_repeat=True)

    @property
    def has_sinks(self) -> bool:
        """Whether each head has a sink: a logit that takes a part of the attention and belongs to no token."""
        return any(tensor.name == "sinks" for tensor in self.tensors)

    @property
    def copied_heads(self) -> int | None:
        """The heads that further ranks hold copies of; `None` where tensor parallelism copies none."""
        return next((size.size for size in self.split_sizes() if size.may_repeat), None)

    @property
    def output_heads(self) -> int:
        """Heads of `v_head_dim` that the operator hands to its output projection."""
        return self.query_heads


def causal_pairs(new_tokens: int, context: int) -> float:
    """Pairs of query and visible key: each new token sees the context, those before it, and itself."""
    return new_tokens * context + new_tokens * (new_tokens + 1) / 2


def window_pairs(new_tokens: int, context: int, window: int) -> float:
    """Pairs where a token sees at most `window` tokens, itself included."""
    growing = max(0, min(new_tokens, window - context))
    return causal_pairs(growing, context) + (new_tokens - growing) * window


def chunk_pairs(new_tokens: int, context: int, chunk: int) -> float:
    """Pairs where a token sees only its own aligned chunk (Llama 4)."""

    def up_to(tokens: int) -> float:
        chunks, remainder = divmod(tokens, chunk)
        return chunks * chunk * (chunk + 1) / 2 + remainder * (remainder + 1) / 2

    return up_to(context + new_tokens) - up_to(context)


class OperatorContext(Struct, frozen=True):
    """What the readers of operators need: the fields, the profile of the type, and H."""

    fields: ConfigFields
    profile: Profile
    hidden_size: int

    def flag(self, field: str, default: bool = False) -> bool:
        """A switch as the config states it, else as the type has it, else `default`."""
        return self.fields.flag(field, bool(self.profile.traits.get(field, default)))

    @property
    def has_bias_everywhere(self) -> bool:
        """Whether one switch gives every matrix a bias."""
        return bool(self.profile.traits.get("use_bias_everywhere")) and self.fields.flag("use_bias")


class AttentionContext(OperatorContext, frozen=True):
    """What every attention reader needs."""

    query_heads: int

    @property
    def norms(self) -> WeightTensor:
        """The norms around the operator: one vector of H each, twice that with a bias."""
        return norm_tensor(self.profile, self.hidden_size, "attention_norms")

    @property
    def head_dim(self) -> int:
        """`head_dim`, or H / a where the config leaves it out (noted)."""
        fields, width, heads = self.fields, self.hidden_size, self.query_heads
        stated = fields.optional_size("head_dim")
        if stated is not None:
            return stated
        if width % heads:
            raise fields.missing("head_dim", f"hidden_size {width} is no multiple of {heads} attention heads")
        fields.assume(f"head_dim = hidden_size / num_attention_heads = {width // heads}: not stated")
        return width // heads


def norm_tensor(profile: Profile, hidden_size: int, trait: str) -> WeightTensor:
    """The norms that `trait` counts (1 where the type does not say), as one replicated tensor."""
    vectors = profile.traits.get(trait, 1) * (2 if profile.traits.get("norm_bias") else 1)
    return vector(trait.replace("_norms", "_norm"), vectors * hidden_size)
