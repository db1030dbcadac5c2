"""The fields of one model config: read from hostile values, typed and bounded, with spellings, refusals and
each type's documented defaults.

It knows how fields are spelled and what absent ones default to, not what they mean. Values are hostile: a wrong
type, a sign or a size that no model has is an `InputError` that names the field.

The table is data (`data/model_types.json`, taken from the Hugging Face configuration and model classes). An unknown
`model_type` is refused with the nearest known ones; a config without any is read as a plain decoder.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, cast

from msgspec import Struct, field

from ..errors import InputError, MissingFieldError, UnknownNameError, UnreadableFieldError
from ..input.files import shipped

MAX_LAYERS = 10_000
MAX_EXPERTS = 100_000
MAX_SIZE = 10**9
# A context longer than any model's: means "no limit stated".
MAX_POSITIONS = 10**12

# Other spellings of a field, by the name that this package uses. The first one that is present counts; two that are
# present must agree.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "depth"),
    "num_attention_heads": ("n_head", "n_heads"),
    "num_key_value_heads": ("num_kv_heads", "kv_n_heads", "num_attention_groups", "multi_query_group_num"),
    "intermediate_size": ("ffn_hidden_size", "ffn_dim", "n_inner"),
    "max_position_embeddings": ("n_positions", "max_seq_len", "model_max_length", "seq_length"),
    "head_dim": ("attention_head_dim", "kv_channels"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts", "experts_per_token",
    ),
    "moe_intermediate_size": ("expert_intermediate_size", "moe_ffn_hidden_size"),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_expert_intermediate_size": (
        "moe_shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim",
    ),
    "n_group": ("num_expert_group",),
    "layer_types": ("layers_block_type", "layer_block_types"),
    "sliding_window": ("sliding_window_size",),
    "use_qk_norm": ("qk_layernorm", "use_qk_layernorm"),
    "attention_bias": ("qkv_bias", "use_qkv_bias", "add_qkv_bias"),
    "linear_num_heads": ("linear_attn_num_heads",),
    "mamba_num_heads": ("mamba_n_heads",),
    "mamba_head_dim": ("mamba_d_head",),
    "ssm_state_size": ("mamba_d_state",),
    "n_groups": ("mamba_n_groups",),
    "conv_kernel": ("mamba_d_conv",),
    "torch_dtype": ("dtype",),
}  # fmt: skip

_KNOWN = frozenset((*SPELLINGS, *(name for names in SPELLINGS.values() for name in names)))
# A field that is written with a letter or two more, fewer or others is misspelt.
_MISSPELT, _ALIKE = 2, 0.92
# From so alike on a `model_type` may be meant: other kinds of models differ by two letters ("jamba", "llama").
_GUESSED = 0.7

# Several lengths of one config may differ (trained, served); the position table's is the model's limit.
_FIRST_COUNTS = frozenset(["max_position_embeddings"])


class ConfigFields:
    """The fields of one config. Every documented default that is taken is noted in `assumptions`.

    A size that is `unknown` reads as 0, which every degree divides: nothing is judged by it.
    """

    unknown: frozenset[str] = frozenset()

    def __init__(
        self, values: Mapping[str, Any], defaults: Mapping[str, Any], model_type: str | None, where: str
    ) -> None:
        self.values = values
        self.defaults = defaults
        self.model_type = model_type
        self.where = where
        self.assumptions: list[str] = []

    def with_values(self, values: Mapping[str, Any]) -> ConfigFields:
        """These fields with `values` in place of some; what is assumed of them is noted here."""
        changed = ConfigFields({**self.values, **values}, self.defaults, self.model_type, self.where)
        changed.assumptions, changed.unknown = self.assumptions, self.unknown
        return changed

    def refuse(self, message: str) -> InputError:
        """An `InputError` that begins with this config's place."""
        return InputError(f"{self.where}: {message}")

    def _unreadable(self, field: str, why: str) -> UnreadableFieldError:
        return UnreadableFieldError(field, f"{self.where}: field {field!r} {why}")

    def missing(self, field: str, why: str) -> MissingFieldError:
        """A `MissingFieldError` for a field that the arithmetic needs."""
        return MissingFieldError(field, self.where, why)

    def assume(self, note: str) -> None:
        """Note an assumption once, which begins with the field that is not stated.

        Raises InputError: a field of nearly that name is stated.
        """
        field = note.partition(" ")[0].rstrip(":")
        unknown = [key for key in self.values if key not in _KNOWN and abs(len(key) - len(field)) <= _MISSPELT]
        for key in difflib.get_close_matches(field, unknown, 1, _ALIKE):
            raise self.refuse(f"unknown field {key!r}; did you mean {field!r}?")
        if note not in self.assumptions:
            self.assumptions.append(note)

    def stated(self, field: str) -> Any:
        """The value as the config states it under any spelling, or `None` where it is absent or null."""
        first: Any = None
        source = field
        for spelling, written in self._written(field):
            value = self._collapsed(written)
            if value is None:
                continue
            if first is None:
                first, source = value, spelling
            elif field not in _FIRST_COUNTS and (type(first) is not type(value) or first != value):
                raise self.refuse(f"{source!r} is {_show(first)} but {spelling!r} is {_show(value)}; state it once")
        return first

    def _collapsed(self, value: Any) -> Any:
        """A list of one number for each layer, all alike, as that number (Hunyuan writes some values so)."""
        items = cast("list[Any]", value) if isinstance(value, list) else []
        layers = next((count for _, count in self._written("num_hidden_layers")), None)
        if items and len(items) == layers and all(isinstance(item, int) and item == items[0] for item in items):
            return items[0]
        return cast("Any", value)

    def value(self, field: str) -> Any:
        """The stated value, else the documented default of the model type (noted), else `None`.

        A field that is stated as null has no value: the default is for absent fields only.
        """
        stated = self.stated(field)
        is_null = any(written is None for _, written in self._written(field))
        if stated is None and not is_null and (default := self.defaults.get(field)) is not None:
            self.assume(f"{field} = {_show(default)}: not stated, documented default of {self.model_type}")
            return default
        return stated

    def _written(self, field: str) -> Iterator[tuple[str, Any]]:
        """Each spelling of the field that the config has, with its value."""
        spellings = (field, *SPELLINGS.get(field, ()))
        return ((spelling, self.values[spelling]) for spelling in spellings if spelling in self.values)

    def size(self, field: str, why: str, most: int = MAX_SIZE) -> int:
        """A positive integer that the arithmetic needs.

        Raises MissingFieldError: it is absent and has no documented default.
        """
        size = self.optional_size(field, most)
        if size is None:
            raise self.missing(field, why)
        return size

    def optional_size(self, field: str, most: int = MAX_SIZE) -> int | None:
        """A positive integer, or `None` where it is absent, null or zero."""
        if field in self.unknown:
            return 0
        size = self.count(field, most)
        return size if size else None

    def positive(self, field: str) -> int | None:
        """A positive integer, or `None` where it is absent or null: 0 and false are no other way to say that."""
        stated = self.stated(field)
        if stated is False or stated == 0:
            raise self._unreadable(field, f"must be at least 1, not {_show(stated)}")
        return self.optional_size(field)

    def count(self, field: str, most: int = MAX_SIZE) -> int | None:
        """An integer of 0 or more, or `None` where it is absent or null."""
        number = self.value(field)
        if number is None or number is False:
            return None
        if isinstance(number, float) and number.is_integer() and abs(number) <= most:
            number = int(number)
        if not isinstance(number, int) or isinstance(number, bool):
            raise self._unreadable(field, f"must be a whole number, not {_show(number)}")
        if not 0 <= number <= most:
            raise self._unreadable(field, f"must be between 0 and {most}, not {_show(number)}")
        return number

    def flag(self, field: str, default: bool = False) -> bool:
        """A boolean; `default` where the model type documents none."""
        switch = self.value(field)
        if switch is None:
            return default
        if not isinstance(switch, bool):
            if switch in (0, 1):
                return bool(switch)
            raise self.refuse(f"field {field!r} must be true or false, not {_show(switch)}")
        return switch

    def text(self, field: str) -> str | None:
        """A string, or `None`."""
        text = self.value(field)
        if text is not None and not isinstance(text, str):
            raise self.refuse(f"field {field!r} must be a string, not {_show(text)}")
        return text

    def mapping(self, field: str) -> Mapping[str, Any]:
        """A JSON object, empty where it is absent."""
        content = self.value(field)
        if content is None:
            return {}
        if not isinstance(content, Mapping):
            raise self.refuse(f"field {field!r} must be an object, not {_show(content)}")
        return cast("Mapping[str, Any]", content)

    def items(self, field: str, most: int = MAX_LAYERS) -> list[Any] | None:
        """A JSON array of at most `most` items, or `None` where it is absent."""
        listed_as = next((written for _, written in self._written(field) if written is not None), None)
        if listed_as is None:
            return None
        if not isinstance(listed_as, list | tuple):
            raise self.refuse(f"field {field!r} must be a list, not {_show(listed_as)}")
        listed = cast("list[Any] | tuple[Any, ...]", listed_as)
        if len(listed) > most:
            raise self.refuse(f"field {field!r} has {len(listed)} items, more than {most}")
        return list(listed)


def _show(value: Any) -> str:
    """`value` for a one-line message: at most 60 characters, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    if isinstance(value, list | tuple | dict | Mapping):
        return f"a {'list' if isinstance(value, list | tuple) else 'JSON object'}"
    shown = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return shown if len(shown) <= 60 else shown[:57] + "…"


class Profile(Struct, frozen=True):
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


@cache
def _types() -> Mapping[str, Any]:
    return shipped(__name__, "model_types.json")["types"]


@lru_cache(maxsize=256)
def find_profile(model_type: str) -> Profile:
    """The profile of `model_type`; upper case and hyphens for underscores are forgiven.

    Raises UnknownNameError: no such type is known; it carries the nearest known ones.
    """
    types = _types()
    name = model_type if model_type in types else model_type.strip().lower().replace("-", "_")
    if name not in types:
        nearest = tuple(get_close_matches(name[:100], list(types), n=3, cutoff=_GUESSED))
        raise UnknownNameError("model_type", model_type[:100], nearest)
    return profile_of(name, types)


def profile_of(name: str, types: Mapping[str, Mapping[str, Any]]) -> Profile:
    """The profile of one of `types`: what its entry states over that of the type it is the same as, where it is."""
    entry = types[name]
    base = types[entry.get("same_as", name)]
    tables = ({**base.get(table, {}), **entry.get(table, {})} for table in ("defaults", "sizes", "traits"))
    return Profile(name, *tables)
