"""config.json (Hugging Face spellings, or the catalogue's) → `Architecture`, layer by layer.

It reads a JSON object and nothing else: no file, no network, no code of the model. An unknown `model_type` is refused;
an object without one that states its dimensions is read as a plain decoder, which is noted among the assumptions.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import Any, cast

from ..caches import SharedCache
from ..errors import InputError, UnreadableFieldError
from .architecture import Architecture, LayerSpec
from .attention.kinds import read_attention
from .attention.spec import AttentionContext
from .config_blocks import block_layers
from .config_families import plain_fields
from .config_ffn import FFNContext, dense_ffn, encoder_params, mixture
from .config_fields import MAX_POSITIONS, PLAIN, ConfigFields, Profile, find_profile
from .config_formats import native_formats
from .config_layers import LayerKind, layer_kinds
from .dtypes import WeightTensor

# Fields that change shapes in ways that this reader does not know: refused if set (Gemma 3n and E models).
_UNREADABLE = ("num_kv_shared_layers", "hidden_size_per_layer_input")
_SPARSE_NAMES = ("minimax_m3_sparse", "sparse_attention")
# Where composite (vision, audio) checkpoints keep the text decoder.
TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")


def with_positions(config: Mapping[str, Any], positions: int) -> dict[str, Any]:
    """`config` of a model, or of one with a text decoder, whose longest sequence has so many `positions`."""
    for name in TEXT_PARTS:
        if isinstance(part := config.get(name), Mapping):
            return {**config, name: with_positions(cast("Mapping[str, Any]", part), positions)}
    return {**config, "max_position_embeddings": positions}


def read_architecture(config: Mapping[str, Any], *, where: str = "config") -> Architecture:
    """Read a model's config.

    Args:
        config: a `config.json` object, or one in the spellings of this package's catalogue.
        where: what to call it in errors.

    Raises:
        UnknownNameError: its `model_type` is not known.
        MissingFieldError: a field that the arithmetic needs is absent and has no documented default.
        InputError: a value is of the wrong type, out of bounds, or contradicts another.
    """
    try:
        # Unlike JSON, marshal tells a list from a tuple, which is refused.
        content = marshal.dumps(dict(config), _WITHOUT_REFERENCES)
    except ValueError:
        return _read(config, where)
    return _ARCHITECTURES.get(content) or _ARCHITECTURES.keep(content, _read(config, where))


# Sizes of what a model has. Other fields say which operators and heads it has: no structure is known without those.
SIZES = frozenset({
    "vocab_size", "hidden_size", "head_dim", "v_head_dim", "intermediate_size", "moe_intermediate_size",
    "num_experts_per_tok", "qk_nope_head_dim", "qk_rope_head_dim",
})  # fmt: skip


def read_structure(config: Mapping[str, Any]) -> Architecture | None:
    """The layers of a model some of whose sizes cannot be read; `None` if more is unknown than sizes.

    An unknown size is 0: what degrees divide can be judged, memory and time cannot.
    """
    unknown: set[str] = set()
    while True:
        try:
            return _read(config, "config", frozenset(unknown))
        except UnreadableFieldError as error:
            if error.field not in SIZES - unknown:
                return None
            unknown.add(error.field)
        except InputError:
            return None


# Without references the bytes of equal values are equal, whatever objects share parts of them.
_WITHOUT_REFERENCES = 2
# Bytes of one kind of layer with its tensors.
_KIND_BYTES = 10_000


def _size_bytes(content: bytes, architecture: Architecture) -> int:
    return len(content) + 8 * architecture.num_layers + _KIND_BYTES * len(architecture.layer_kinds)


# An equal config returns the same object, so that results cached for one plan of a model serve the next.
_ARCHITECTURES = SharedCache[bytes, Architecture](16_000_000, _size_bytes)


def _read(config: Mapping[str, Any], where: str, unknown: frozenset[str] = frozenset()) -> Architecture:
    fields, profile = _open(config, where)
    fields.unknown = unknown
    width = fields.size("hidden_size", "every tensor has this width")
    vocabulary = fields.size("vocab_size", "the embedding and the LM head have this many rows")
    layers = _layers(fields, profile, width)
    tied = fields.value("tie_word_embeddings")
    if tied is None:
        fields.assume("tie_word_embeddings = False: not stated")
    formats = native_formats(fields, is_moe=any(layer.moe is not None for layer in layers))
    positions = _positions(fields)
    return Architecture(
        model_type=profile.model_type or "decoder",
        hidden_size=width,
        vocab_size=vocabulary,
        tied_embeddings=fields.flag("tie_word_embeddings"),
        max_position_embeddings=positions,
        layers=layers,
        embedding_tensors=_embedding(fields, profile, width, vocabulary, positions),
        lm_head_tensors=_lm_head(fields, profile, width, vocabulary),
        final_norm_tensors=_final_norm(fields, profile, width),
        native_dtypes=formats.dtypes,
        native_precision=formats.precision,
        scale_block=formats.scale_block,
        encoder_params=encoder_params(config, where),
        assumptions=tuple(fields.assumptions),
    )


def _open(config: Mapping[str, Any], where: str) -> tuple[ConfigFields, Profile]:
    """The fields of the text decoder and its profile."""
    values, nested = _text_part(config, where)
    model_type = values.get("model_type", config.get("model_type") if nested else None)
    if model_type is not None and not isinstance(model_type, str):
        raise InputError(f"{where}: field 'model_type' must be a string")
    profile = PLAIN if model_type is None else find_profile(model_type)
    values, profile = plain_fields(values, profile, where)
    defaults = {**profile.sizes, **profile.defaults} if nested else profile.defaults
    fields = ConfigFields(values, defaults, profile.model_type, where)
    for name in _UNREADABLE:
        if fields.optional_size(name) is not None:
            raise fields.refuse(f"models with {name} above 0 cannot be read")
    if model_type is None:
        fields.assume("model_type: not stated, read as a plain pre-norm decoder with gated FFN")
    return fields, profile


def _text_part(config: Mapping[str, Any], where: str) -> tuple[Mapping[str, Any], bool]:
    """The text decoder's own object with what only the outer object states, and whether it was nested."""
    for name in TEXT_PARTS:
        part: Any = config.get(name)
        if isinstance(part, Mapping):
            inner = cast("Mapping[str, Any]", part)
            outer = {
                key: config[key]
                for key in ("torch_dtype", "dtype", "quantization_config", "vocab_size")
                if config.get(key) is not None and inner.get(key) is None
            }
            if "dtype" in inner or "torch_dtype" in inner:
                outer.pop("dtype", None)
                outer.pop("torch_dtype", None)
            values, _ = _text_part(inner, where) if name == "thinker_config" else (inner, True)
            part_fields = {**outer, **values}
            if config.get("tie_word_embeddings") is not None:
                # The composite model owns the LM head, so its statement on tying decides.
                part_fields["tie_word_embeddings"] = config["tie_word_embeddings"]
            return part_fields, True
        if part is not None:
            raise InputError(f"{where}: field {name!r} must be an object")
    return config, False


def _positions(fields: ConfigFields) -> int:
    positions = fields.count("max_position_embeddings", MAX_POSITIONS)
    if positions == 0:
        raise fields.refuse("field 'max_position_embeddings' must be at least 1, not 0: nothing could be served")
    if positions is None:
        fields.assume("max_position_embeddings: not stated, no limit on the context is assumed")
        return MAX_POSITIONS
    return positions


def _layers(fields: ConfigFields, profile: Profile, width: int) -> tuple[LayerSpec, ...]:
    """One `LayerSpec` per layer; equal layers are the same object."""
    if fields.stated("block_configs") is not None:
        return block_layers(fields, profile, width)
    kinds = layer_kinds(fields, profile)
    heads = 1
    if any(kind.mixer is not None for kind in kinds):
        heads = fields.size("num_attention_heads", "tensor parallelism splits attention by heads")
    attention, ffn = AttentionContext(fields, profile, width, heads), FFNContext(fields, profile, width)
    indexed = _indexed_layers(attention, kinds)
    layer_by_kind: dict[tuple[LayerKind, bool], LayerSpec] = {}
    layers: list[LayerSpec] = []
    for kind, has_indexer in zip(kinds, indexed, strict=True):
        key = (kind, has_indexer)
        if key not in layer_by_kind:
            layer_by_kind[key] = LayerSpec(
                attention=None
                if kind.mixer is None
                else read_attention(attention, kind.mixer, has_indexer=has_indexer),
                ffn=dense_ffn(ffn) if kind.ffn == "dense" else None,
                moe=mixture(ffn) if kind.ffn == "moe" else None,
            )
        layers.append(layer_by_kind[key])
    return tuple(layers)


def _indexed_layers(attention: AttentionContext, kinds: tuple[LayerKind, ...]) -> list[bool]:
    """Which layers have a sparse indexer of their own.

    The others reuse the last selection (GLM-5.2) or are not sparse (the leading dense layers of MiniMax-M3).
    """
    fields, count = attention.fields, len(kinds)
    if attention.profile.traits.get("block_sparse_index"):
        listed = fields.items("layer_types")
        return [kind.ffn == "moe" for kind in kinds] if listed is None else [name in _SPARSE_NAMES for name in listed]
    names = fields.items("indexer_types")
    if names is not None:
        if len(names) != count:
            raise fields.refuse(f"indexer_types has {len(names)} items for {count} layers")
        return [name == "full" for name in names]
    step = fields.optional_size("index_topk_freq") or 1
    if step == 1:
        return [True] * count
    offset = fields.count("index_skip_topk_offset")
    offset = 2 if offset is None else offset
    return [max(index - offset + 1, 0) % step == 0 for index in range(count)]


def _embedding(
    fields: ConfigFields, profile: Profile, width: int, vocabulary: int, positions: int
) -> tuple[WeightTensor, ...]:
    tensors = [WeightTensor("embedding", vocabulary * width, "sharded", "vocabulary")]
    if profile.traits.get("learned_positions"):
        rows = positions + profile.traits.get("position_offset", 0)
        tensors.append(WeightTensor("positions", rows * width, "replicated", "vocabulary"))
    if profile.traits.get("embedding_norm"):
        vectors = 2 if profile.traits.get("norm_bias") else 1
        tensors.append(WeightTensor("embedding_norm", vectors * width, "replicated", "norm"))
    return tuple(tensors)


def _lm_head(fields: ConfigFields, profile: Profile, width: int, vocabulary: int) -> tuple[WeightTensor, ...]:
    tensors: list[WeightTensor] = []
    if not fields.flag("tie_word_embeddings"):
        tensors.append(WeightTensor("lm_head", vocabulary * width, "sharded", "vocabulary"))
    if fields.flag("lm_head_bias", bool(profile.traits.get("lm_head_bias"))):
        tensors.append(WeightTensor("lm_head_bias", vocabulary, "sharded", "norm"))
    return tuple(tensors)


def _final_norm(fields: ConfigFields, profile: Profile, width: int) -> tuple[WeightTensor, ...]:
    vectors = profile.traits.get("final_norms", 1) * (2 if profile.traits.get("norm_bias") else 1)
    tensors = [WeightTensor("final_norm", vectors * width, "replicated", "norm")]
    if profile.traits.get("residual_streams"):
        streams = fields.size("hc_mult", "the model keeps this many residual streams")
        tensors.append(WeightTensor("hyper_head", streams * streams * width + streams + 1, "replicated", "norm"))
    return tuple(tensors)
