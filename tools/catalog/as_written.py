"""The checkpoint of an entry that a written name means: tuned, of another date, or quantised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec.structs import replace

from .checkpoints import Base, checkpoint_of
from .entry import ModelEntry, made_of
from .names import TUNINGS, named_format, parse_name, without_format

# Sizes, versions and dates of a name.
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
# How a publisher's name says what a checkpoint was tuned for.
_TUNING = re.compile(r"-(?:base|instruct|chat|it|think|thinking)(?=-|$)")


def as_written(entry: ModelEntry, name: str, dates: Iterable[str]) -> ModelEntry:
    """The checkpoint of `entry` that `name` means; `dates` are those of the entry's releases that are known."""
    tuned = _as_variant(entry, name.strip())
    return _as_checkpoint(_as_release(tuned, name.strip(), frozenset(dates)), name)


def _as_variant(entry: ModelEntry, name: str) -> ModelEntry:
    """The tuned checkpoint of the entry that the name says: one that is known to differ, else by the name as written.

    A name without its publisher is the publisher's own where nothing but the tuning stands behind the entry's.
    """
    written, name = parse_name(name), without_format(name)
    tunings = written.ignored & TUNINGS
    if not tunings or not written.core <= parse_name(entry.short_name).core:
        return entry
    for one in entry.variants:
        if parse_name(one.name.rsplit("/", 1)[-1]).ignored & TUNINGS == tunings:
            config = {**entry.config, "max_position_embeddings": one.max_position_embeddings}
            return replace(made_of(entry, one.name), config=config, source=one.source)
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
    """The release of the entry's model of which the name has the date ("DeepSeek-R1-0528"), where it is not its own."""
    written, own = parse_name(without_format(name)), parse_name(entry.short_name)
    dates = written.dates - own.dates
    if len(dates) != 1 or dates & known or written.core != own.core:
        return entry
    (date,), publisher = dates, name.rpartition("/")[0] or entry.name.rpartition("/")[0]
    short = entry.short_name
    for other in own.dates:
        short = short.replace(other, date)
    return made_of(entry, f"{publisher}/{short if own.dates else f'{short}-{date}'}")


def _retuned(short: str) -> str:
    """A name without what it says of tuning, where it says it: "Mistral-Nemo-Base-2407" as "mistral-nemo-*-2407"."""
    return _TUNING.sub("-*", short.lower(), count=1)


def _has_numbers_of(entry: ModelEntry, short: str) -> bool:
    """Whether a name without its publisher is of the size and release of the entry."""
    return _NUMBERS.findall(without_format(short)) == _NUMBERS.findall(entry.short_name)


@lru_cache(maxsize=1024)
def _as_checkpoint(entry: ModelEntry, name: str) -> ModelEntry:
    if named_format(name) is None:
        return entry
    own, root = entry.architecture(), entry.base or entry.name
    found = checkpoint_of(name, Base(root, entry.name, entry.config), own)
    if found is None:
        return entry
    # A repository is what was written, but for the case of its letters.
    publisher, _, short = name.rpartition("/")
    is_written = publisher and name.lower() != found.name.lower() and _has_numbers_of(entry, short)
    label = name if is_written else found.name
    if found.config is None:
        unknown = f"how {label} scales its weights (tensor, channel, block) is not known: any degree may cut them"
        return replace(entry, name=label, base=root, unknown=unknown, aliases=())
    checkpoint = replace(entry, name=label, config=found.config, source=found.source, base=root, aliases=())
    return replace(checkpoint, total_params=checkpoint.architecture().total_params)
