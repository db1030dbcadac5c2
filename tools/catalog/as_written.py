"""The checkpoint of an entry that a written name means: tuned, of another date, or quantised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from .checkpoints import checkpoint_of
from .entry import ModelEntry, made_of
from .names import TUNINGS, named_format, parse_name, without_format

# Sizes, versions and dates of a name.
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
# How a publisher's name says what a checkpoint was tuned for.
_TUNING = re.compile(r"-(?:base|instruct|chat|it|think|thinking)(?=-|$)")


def as_written(entry: ModelEntry, name: str, dates: Iterable[str]) -> ModelEntry:
    """The checkpoint of `entry` that `name` means; `dates` are those of the entry's known releases."""
    tuned = _as_variant(entry, name.strip())
    return _as_checkpoint(_as_release(tuned, name.strip(), frozenset(dates)), name)


def _as_variant(entry: ModelEntry, name: str) -> ModelEntry:
    """The tuned checkpoint of the entry that the name states: a known variant, else the entry under the written name.

    A name without its publisher is the publisher's own checkpoint if only the tuning differs from the entry's name.
    """
    written, name = parse_name(name), without_format(name)
    tunings = written.ignored & TUNINGS
    if not tunings or not written.core <= parse_name(entry.short_name).core:
        return entry
    for variant in entry.variants:
        if parse_name(variant.name.rsplit("/", 1)[-1]).ignored & TUNINGS == tunings:
            config = {**entry.config, "max_position_embeddings": variant.max_position_embeddings}
            return replace(made_of(entry, variant.name), config=config, source=variant.source)
    publisher, _, short = name.rpartition("/")
    if not publisher and _retuned(short) == _retuned(entry.short_name):
        publisher = entry.name.rpartition("/")[0]
        return entry if short.lower() == entry.short_name.lower() else made_of(entry, f"{publisher}/{short}")
    if not _has_numbers_of(entry, short):
        return entry
    if publisher or short.lower().removesuffix("-instruct") == entry.short_name.lower() != short.lower():
        full = name if publisher else f"{entry.name.removesuffix(entry.short_name)}{short}"
        return entry if full == entry.name else made_of(entry, full)
    return entry


def _as_release(entry: ModelEntry, name: str, known: frozenset[str]) -> ModelEntry:
    """The release of the entry's model that the name dates ("DeepSeek-R1-0528"), if it is another than the entry's."""
    written, entry_name = parse_name(without_format(name)), parse_name(entry.short_name)
    dates = written.dates - entry_name.dates
    if len(dates) != 1 or dates & known or written.core != entry_name.core:
        return entry
    (date,), publisher = dates, name.rpartition("/")[0] or entry.name.rpartition("/")[0]
    short = entry.short_name
    for other in entry_name.dates:
        short = short.replace(other, date)
    return made_of(entry, f"{publisher}/{short if entry_name.dates else f'{short}-{date}'}")


def _retuned(short: str) -> str:
    """A name with its word of tuning blanked: "Mistral-Nemo-Base-2407" as "mistral-nemo-*-2407"."""
    return _TUNING.sub("-*", short.lower(), count=1)


def _has_numbers_of(entry: ModelEntry, short: str) -> bool:
    """Whether a name without its publisher has the size and release of the entry."""
    return _NUMBERS.findall(without_format(short)) == _NUMBERS.findall(entry.short_name)


@lru_cache(maxsize=1024)
def _as_checkpoint(entry: ModelEntry, name: str) -> ModelEntry:
    if named_format(name) is None:
        return entry
    architecture, root = entry.architecture(), entry.base or entry.name
    published = checkpoint_of(name, entry, architecture)
    if published is None:
        return entry
    # The written repository id, but for the case of its letters.
    publisher, _, short = name.rpartition("/")
    is_written = publisher and name.lower() != published.name.lower() and _has_numbers_of(entry, short)
    label = name if is_written else published.name
    if published.config is None:
        unknown = f"how {label} scales its weights (tensor, channel, block) is not known: any degree may cut them"
        return replace(entry, name=label, base=root, unknown=unknown, aliases=())
    checkpoint = replace(entry, name=label, config=published.config, source=published.source, base=root, aliases=())
    return replace(checkpoint, total_params=checkpoint.architecture().total_params)
