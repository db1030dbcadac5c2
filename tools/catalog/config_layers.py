"""Which operators each layer has, from the many ways in which configs state it.

A layer is a pair: its mixer (attention or recurrence) and its FFN, either of which may be absent. Nothing here knows
shapes. Every list must cover exactly the layers that the model has.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Literal, cast

from msgspec import Struct

from .attention.kinds import LAYER_TYPES
from .config_ffn import num_experts
from .config_fields import MAX_LAYERS, ConfigFields, Profile

FeedForward = Literal["dense", "moe"]

_ONE_OPERATOR_FFN: dict[str, FeedForward] = {"moe": "moe", "mlp": "dense", "ffn": "dense", "dense": "dense"}
_LAYER_TYPES: dict[str, str | None] = {**LAYER_TYPES, **dict.fromkeys(_ONE_OPERATOR_FFN)}
_FEED_FORWARDS: dict[str, FeedForward] = {
    "dense": "dense",
    "mlp": "dense",
    "sparse": "moe",
    "moe": "moe",
    "hash_moe": "moe",
}
_HYBRID_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


class LayerKind(Struct, frozen=True):
    """The operators of one layer; the mixer is a layer type of `LAYER_TYPES`."""

    mixer: str | None
    ffn: FeedForward | None


def layer_kinds(fields: ConfigFields, profile: Profile) -> tuple[LayerKind, ...]:
    """The kind of every layer.

    Raises MissingFieldError: nothing says how many layers there are, or experts where the type always has some;
    InputError: a list covers another number of layers, or names an unknown kind.
    """
    names = _named_kinds(fields)
    stated = fields.count("num_hidden_layers", MAX_LAYERS)
    if names is None:
        count = fields.size("num_hidden_layers", "a model has this many layers", MAX_LAYERS)
        mixers: list[str | None] = _implied_mixers(fields, profile, count)
    else:
        if stated is not None and stated != len(names):
            raise fields.refuse(f"num_hidden_layers is {stated} but the layer types cover {len(names)} layers")
        mixers = [_mixer(fields, name) for name in names]
    if profile.traits.get("one_operator_layers"):
        if names is None:
            raise fields.missing("layer_types", "each layer of this model has one operator, and nothing says which")
        return tuple(LayerKind(m, None if m else _ONE_OPERATOR_FFN[n]) for m, n in zip(mixers, names, strict=True))
    ffns = _feed_forwards(fields, profile, len(mixers))
    kinds: list[LayerKind] = []
    for index, (mixer, ffn) in enumerate(zip(mixers, ffns, strict=True)):
        if mixer is None and names is not None:
            kinds.append(LayerKind(None, _ONE_OPERATOR_FFN[names[index]]))
        else:
            kinds.append(LayerKind(mixer, ffn))
    _check_count(fields, kinds)
    return tuple(kinds)


def _check_count(fields: ConfigFields, kinds: list[LayerKind]) -> None:
    """`moe_layers` as a number (catalogue spelling) only checks what the other fields state."""
    stated = fields.values.get("moe_layers")
    moe_layers = sum(kind.ffn == "moe" for kind in kinds)
    if isinstance(stated, int) and not isinstance(stated, bool) and stated != moe_layers:
        raise fields.refuse(f"moe_layers is {stated} but the other fields make {moe_layers} layers MoE")


def _mixer(fields: ConfigFields, name: str) -> str | None:
    if name not in _LAYER_TYPES:
        raise fields.refuse(f"layer type {name[:40]!r} is not known; known are {', '.join(sorted(_LAYER_TYPES))}")
    return _LAYER_TYPES[name]


def _names(fields: ConfigFields, field: str) -> list[str] | None:
    items = fields.items(field)
    if items is None:
        return None
    if not all(isinstance(item, str) for item in items):
        raise fields.refuse(f"field {field!r} must list strings")
    return cast("list[str]", items)


def _named_kinds(fields: ConfigFields) -> list[str] | None:
    """One name per layer where the config gives them in any spelling, else `None`."""
    listed = _names(fields, "layer_types")
    if listed is not None:
        return listed
    pattern = _names(fields, "layer_types_pattern")
    if pattern is not None:
        repeats = fields.count("layer_types_pattern_repeats", MAX_LAYERS)
        tail = _names(fields, "layer_types_tail") or []
        if repeats is None:
            raise fields.missing("layer_types_pattern_repeats", "layer_types_pattern is repeated this often")
        if len(pattern) * repeats + len(tail) > MAX_LAYERS:
            raise fields.refuse(f"the layer types cover more than {MAX_LAYERS} layers")
        return pattern * repeats + tail
    runs = _run_lengths(fields, "layer_types_run_length")
    if runs is not None:
        return runs
    letters = fields.text("hybrid_override_pattern")
    if letters is not None:
        unknown = set(letters) - set(_HYBRID_LETTERS)
        if unknown or len(letters) > MAX_LAYERS:
            raise fields.refuse(f"hybrid_override_pattern may hold {' '.join(_HYBRID_LETTERS)} only")
        return [_HYBRID_LETTERS[letter] for letter in letters]
    return _numbered_kinds(fields)


def _numbered_kinds(fields: ConfigFields) -> list[str] | None:
    """Layer kinds written as 0 and 1: MiniMax (1 is full attention), MiMo-V2 (1 is sliding)."""
    for field, names in (
        ("attn_type_list", ("linear_attention", "full_attention")),
        ("hybrid_layer_pattern", ("full_attention", "sliding_attention")),
    ):
        items = fields.items(field)
        if items is not None:
            return [names[_bit(fields, field, item)] for item in items]
    return None


def _bit(fields: ConfigFields, field: str, item: Any) -> int:
    if isinstance(item, int | bool) and int(item) in (0, 1):
        return int(item)
    raise fields.refuse(f"field {field!r} must list zeros and ones")


def _run_lengths(fields: ConfigFields, field: str) -> list[str] | None:
    items = fields.items(field)
    if items is None:
        return None
    names: list[str] = []
    for item in items:
        pair = cast("list[Any]", item) if isinstance(item, list | tuple) else []
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], int) or isinstance(pair[1], bool):
            raise fields.refuse(f"field {field!r} must list [name, count] pairs")
        if not 0 <= pair[1] <= MAX_LAYERS - len(names):
            raise fields.refuse(f"field {field!r} covers no sensible number of layers (at most {MAX_LAYERS})")
        names += [pair[0]] * pair[1]
    return names


def _implied_mixers(fields: ConfigFields, profile: Profile, count: int) -> list[str | None]:
    """Mixers where no list names them: intervals, NoPE lists, the type's documented pattern, one window for all."""
    local = "chunked" if fields.optional_size("attention_chunk_size") else "sliding"
    interval = fields.optional_size("full_attention_interval", MAX_LAYERS)
    if interval is not None:
        return ["full" if (index + 1) % interval == 0 else "linear" for index in range(count)]
    rope = fields.items("no_rope_layers") if profile.traits.get("local_where_rope") else None
    if rope:
        bits = [_bit(fields, "no_rope_layers", item) for item in rope]
        if len(bits) != count:
            raise fields.refuse(f"no_rope_layers has {len(bits)} items for {count} layers")
        return [local if bit else "full" for bit in bits]
    stated_period = fields.stated("sliding_window_pattern")
    if isinstance(stated_period, int) and not isinstance(stated_period, bool):
        period = fields.optional_size("sliding_window_pattern", MAX_LAYERS) or 1
        return ["full" if (index + 1) % period == 0 else local for index in range(count)]
    pattern = profile.traits.get("layer_pattern")
    if pattern is not None:
        runs = ", ".join(f"{len(list(run))} {name}" for name, run in groupby(pattern))
        fields.assume(f"layer_types: not stated, {profile.model_type} repeats {runs}")
        return [_LAYER_TYPES[pattern[index % len(pattern)]] for index in range(count)]
    return _windowed(fields, profile, count)


def _windowed(fields: ConfigFields, profile: Profile, count: int) -> list[str | None]:
    window = fields.optional_size("sliding_window")
    mode = profile.traits.get("window", "all_layers" if profile.model_type is None else None)
    if window is None or mode is None:
        return ["full"] * count
    if mode == "all_layers":
        return ["sliding"] * count
    if not fields.flag("use_sliding_window"):
        return ["full"] * count
    first = fields.count("max_window_layers", MAX_LAYERS) or 0
    return ["full" if index < first else "sliding" for index in range(count)]


def _feed_forwards(fields: ConfigFields, profile: Profile, count: int) -> list[FeedForward | None]:
    if num_experts(fields, profile) == 0:
        return ["dense"] * count
    names = _names(fields, "mlp_layer_types") or _run_lengths(fields, "mlp_layer_types_run_length")
    if names is not None:
        unknown = [name for name in names if name not in _FEED_FORWARDS]
        if unknown or len(names) != count:
            raise fields.refuse(f"mlp_layer_types must name {count} layers as dense or sparse")
        return [_FEED_FORWARDS[name] for name in names]
    listed = _listed_moe_layers(fields, count)
    if listed is not None:
        return listed
    return [_implied_ffn(fields, profile, index, count) for index in range(count)]


def _listed_moe_layers(fields: ConfigFields, count: int) -> list[FeedForward | None] | None:
    frequency = fields.values.get("moe_layer_freq")
    if isinstance(frequency, list | tuple):
        bits = [_bit(fields, "moe_layer_freq", item) for item in cast("list[Any]", frequency)[: MAX_LAYERS + 1]]
        if len(bits) != count:
            raise fields.refuse(f"moe_layer_freq has {len(bits)} items for {count} layers")
        return ["moe" if bit else "dense" for bit in bits]
    if isinstance(fields.values.get("moe_layers"), list | tuple):
        indices = set(_indices(fields, "moe_layers", count))
        return ["moe" if index in indices else "dense" for index in range(count)]
    return None


def _indices(fields: ConfigFields, field: str, count: int) -> list[int]:
    items = fields.items(field) or []
    if not all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item < count for item in items):
        raise fields.refuse(f"field {field!r} must list layers between 0 and {count - 1}")
    return cast("list[int]", items)


def _implied_ffn(fields: ConfigFields, profile: Profile, index: int, count: int) -> FeedForward:
    first = fields.count("first_k_dense_replace", MAX_LAYERS)
    if first is None:
        first = fields.count("moe_layer_start_index", MAX_LAYERS) or 0
    if index < first:
        return "dense"
    if index in _indices(fields, "mlp_only_layers", count):
        return "dense"
    step = fields.optional_size("decoder_sparse_step", MAX_LAYERS) or fields.optional_size(
        "interleave_moe_layer_step", MAX_LAYERS
    )
    if step is not None and (index + 1) % step:
        return "dense"
    if _is_note(fields.values.get("moe_layer_freq")) and fields.stated("first_k_dense_replace") is not None:
        return "moe"
    frequency = fields.optional_size("moe_layer_freq", MAX_LAYERS) or 1
    return "moe" if index % frequency == 0 else "dense"


def _is_note(frequency: Any) -> bool:
    """Whether `moe_layer_freq` is a catalogue's note that the checkpoint lists bits, which other fields state."""
    return isinstance(frequency, str) and frequency.startswith("list:")
