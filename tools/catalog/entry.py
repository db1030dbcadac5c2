"""One model of the catalogue: its config, its counts, and the checkpoints that share its layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .architecture import Architecture
from .config import read_architecture

# The confidence of a config that the user gave.
OWN = "user"


class Variant(Struct, frozen=True):
    """A tuned checkpoint with the weight shapes of an entry and its own longest sequence, as its config states it."""

    name: str
    max_position_embeddings: int
    source: str


class ModelEntry(Struct, frozen=True):
    """One model. Counts are of the text decoder; `None` where the entry is a user's own config."""

    name: str
    config: Mapping[str, Any]
    source: str
    confidence: str = OWN
    notes: str | None = None
    family: str | None = None
    total_params: int | None = None
    active_params: int | None = None
    published_params: float | None = None
    aliases: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    # The entry that this is a tuned or quantised checkpoint of; what is unknown of the named checkpoint.
    base: str | None = None
    unknown: str | None = None
    # Independently counted elements per token over all layers, before windows cap them (and of sparse indexers).
    kv_cache: Mapping[str, int] | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def short_name(self) -> str:
        """The name without its organisation."""
        return self.name.rsplit("/", 1)[-1]

    def architecture(self) -> Architecture:
        """The entry's architecture; errors name the entry."""
        return read_architecture(self.config, where=self.name)


def made_of(entry: ModelEntry, name: str) -> ModelEntry:
    """The checkpoint `name` with the layers of the entry."""
    return replace(entry, name=name, base=entry.base or entry.name, aliases=(), variants=())
