"""The model catalogue: entries with their sources, found by names as people write them, or read from a config.

**How a name is resolved.** It is cut into tokens (`names.py`). Suffixes that name no other architecture are ignored:
instruct, chat, hf, it, fp8, awq, date stamps such as 2507, the organisation. Then, in this order:

1. the entry with all written tokens and no other, ignored ones included, in its name or an alias;
2. the entries whose tokens, ignored ones apart, are the same;
3. the entries that have all written tokens and beyond them only a size, active parameters, a number of experts, a
   context length or, where the name states a size, a version;
4. the one entry whose own count of parameters is the written size, where its name states no total ("DeepSeek-V3 671B").

A name with a suffix of tuning is the checkpoint so tuned, if its config is known to differ (`variants` of an entry).
An alias with an organisation is a repository of its own with the entry's weights, and stays what is served; so does a
release of another date than the entry's.

Of several entries, those that share the most ignored suffixes with the name stay, then the newest version ("llama
70b" leaves the version out and means the newest), then the first of the catalogue. A size or a variant is never
guessed: if the candidates differ in one, or only a longer name fits, the name is refused with the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InputError, UnknownNameError
from ..input.files import is_there, shipped
from .as_written import as_written
from .config import read_architecture
from .config_file import read_config_file
from .entry import OWN, ModelEntry, Variant, made_of
from .hub_cache import UnknownRepositoryError, cached_config, hub_config, is_repository
from .names import (
    ParsedName,
    TokenKind,
    has_slip,
    parameters_of,
    parse_name,
    respelled,
    version_key,
)

# What an entry's name may have beyond the written one (rule 3).
_OMISSIBLE: tuple[TokenKind, ...] = ("size", "active", "experts", "context", "version")
_MAX_NAME = 200
# From so alike on a name of another family may be meant.
_ALIKE = 0.7
# How far a written total may be from the counted one: "1T" for 1.026e12, 685B (with a prediction layer) for 671B.
_SAME_SIZE = 0.03
_BEGINNING = 4  # letters


class _Known(Struct, frozen=True):
    """One name (or alias) of one entry, cut into tokens, and the repository that it means."""

    entry: ModelEntry
    name: ParsedName
    text: str
    is_alias: bool
    repository: str

    def checkpoint(self) -> ModelEntry:
        """The entry, under the name of the repository."""
        return self.entry if self.repository == self.entry.name else made_of(self.entry, self.repository)


@cache
def all_models() -> tuple[ModelEntry, ...]:
    """Every entry of the catalogue, in its order."""
    rows: list[dict[str, Any]] = shipped(__name__, "models.json")["models"]
    for row in rows:
        row["aliases"] = tuple(row.get("aliases", ()))
        row["variants"] = tuple(Variant(**variant) for variant in row.get("variants", ()))
    return tuple(ModelEntry(**row) for row in rows)


@cache
def _known_names() -> tuple[_Known, ...]:
    names: list[_Known] = []
    for entry in all_models():
        main = _Known(entry, parse_name(entry.short_name), entry.short_name, is_alias=False, repository=entry.name)
        names.append(main)
        aliases = {alias: parse_name(alias) for alias in entry.aliases}
        others = {alias: name for alias, name in aliases.items() if "/" in alias}
        for alias, name in aliases.items():
            # "R1-Distill-Qwen-32B" is short for what its publisher calls "DeepSeek-R1-Distill-Qwen-32B".
            longer = () if name.core <= main.name.core else (full for full in others if name.core <= others[full].core)
            repository = alias if "/" in alias else next(iter(longer), entry.name)
            names.append(_Known(entry, name, alias.rpartition("/")[2], is_alias=True, repository=repository))
    return tuple(names)


def find_model(name: str) -> ModelEntry:
    """The catalogue entry that `name` stands for, by the rule above, as the checkpoint that its suffix names.

    "Qwen3-4B-FP8" is the Qwen3-4B of the catalogue with the weights of that checkpoint (`checkpoints.py`). For an id
    of the Hugging Face Hub (`org/name`) that the catalogue does not know in full, the config itself is read if it is
    available (`hub_cache.py`). Raises UnknownNameError: no such model; it carries the nearest known names; InputError:
    the name leaves open which of several sizes or variants is meant; ServiceError: fetching the model failed.
    """
    if not name.strip() or len(name) > _MAX_NAME:
        raise InputError(f"a model name must have 1 to {_MAX_NAME} characters")
    if is_repository(name.strip()):
        return _find_repository(name.strip())
    return _found(name)


def _found(name: str) -> ModelEntry:
    entry = _find(name)
    return as_written(entry, name, (date for known in _names_of(entry) for date in known.name.dates))


def _names_of(entry: ModelEntry) -> list[_Known]:
    """The names of an entry, or of the entry that a checkpoint derives from."""
    return [known for known in _known_names() if known.entry.name in (entry.name, entry.base)]


def _find_repository(name: str) -> ModelEntry:
    """The catalogue's own entry, else the config itself, else the catalogue's entry for such a checkpoint."""
    entry = refused = None
    try:
        entry = _found(name)
    except InputError as error:
        refused = error
    if entry is not None and entry.base is None:
        return entry
    is_sure = entry is not None and entry.unknown is None
    config = cached_config(name) if is_sure else hub_config(name)
    if config is not None:
        return replace(_from_config(config, name, f"config of {name} in the Hugging Face cache"), name=name)
    if entry is not None:
        return entry
    if isinstance(refused, UnknownNameError):
        raise UnknownRepositoryError(name, refused.nearest)
    raise refused or UnknownRepositoryError(name, ())


def _find(name: str) -> ModelEntry:
    written = parse_name(name)
    names_a_family = bool(written.of_kind("family", "word"))
    same = [known for known in _known_names() if written.core == known.name.core]
    exact = [known for known in same if written.all_tokens == known.name.all_tokens]
    if exact or same:
        return _best(exact or same, written)
    longer = [known for known in _known_names() if names_a_family and written.core < known.name.core]
    if not longer:
        if (entry := _by_total(written)) is not None:
            return entry
        if (other := respelled(name)) != name and parse_name(other).core != written.core:
            with suppress(UnknownNameError):
                return _find(other)
        raise UnknownNameError("model", name.strip(), nearest_models(name))
    fitting = [known for known in longer if known.name.core - written.core <= known.name.of_kind(*_OMISSIBLE)]
    if not fitting and written.of_kind("size") and len({known.entry.name for known in longer}) == 1:
        # "DeepSeek R1 distill 70b": one entry has that size, and its name has another family too.
        fitting = [known for known in longer if known.name.core - written.core <= known.name.of_kind("family")]
    if not fitting or len({_left_open(written, known.name) for known in fitting}) > 1 or _is_bare(written, fitting):
        raise InputError(
            f"model {name.strip()!r} is ambiguous: it may be {_shown(fitting if len(fitting) > 1 else longer)}; "
            "name one"
        )
    return _best(fitting, written)


def _by_total(written: ParsedName) -> ModelEntry | None:
    """The one entry whose own count of parameters is the written size ("DeepSeek-V3 671B"), if its name states none."""
    sizes = written.of_kind("size")
    core = written.core - sizes
    if len(sizes) != 1 or not written.of_kind("family", "word"):
        return None
    parameters = parameters_of(*sizes)
    fitting = [
        known
        for known in _known_names()
        if core <= known.name.core
        and not (known.name.of_kind("size") and not _is_mixture(known.name))
        and abs((known.entry.total_params or 0) - parameters) <= _SAME_SIZE * parameters
    ]
    exact = [known for known in fitting if known.name.core == core]
    if exact:
        return _best(exact, written)
    entries = {known.entry.name: known.entry for known in fitting}
    return next(iter(entries.values())) if len(entries) == 1 else None


def _is_mixture(name: ParsedName) -> bool:
    """Whether the size in a name is not its total ("8x7B", "17B-16E")."""
    return bool(name.of_kind("experts")) or any("x" in size for size in name.of_kind("size"))


def _left_open(written: ParsedName, known: ParsedName) -> frozenset[str]:
    """The tokens of `known` beyond `written`: candidates that differ in them are ambiguous.

    A context never distinguishes two, nor does a version where the size is written (the newest is meant).
    """
    differing = known.core - written.core - known.of_kind("context")
    return differing - known.of_kind("version") if written.of_kind("size") else differing


def _is_bare(written: ParsedName, fitting: list[_Known]) -> bool:
    """Whether the name leaves out both the version and the size of a family that has versions."""
    return not written.of_kind("size") and any(known.name.of_kind("version") - written.core for known in fitting)


def _shown(candidates: list[_Known]) -> str:
    by_name = [known for known in candidates if not known.is_alias]
    # Only aliases that begin like a name are listed: "Hermes-4-Llama-3.1-70B" is hardly meant by "Llama 4".
    begins = {known.text.lower()[:_BEGINNING] for known in by_name}
    alike = [
        alias for alias in candidates if alias.is_alias and (not by_name or alias.text.lower()[:_BEGINNING] in begins)
    ]
    by_entry = {known.entry.name: known.text for known in (*alike, *by_name)}
    shown = [by_entry[name] for name in dict.fromkeys(known.entry.name for known in candidates) if name in by_entry]
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "")


def _best(candidates: list[_Known], written: ParsedName) -> ModelEntry:
    """The entry that shares the most ignored suffixes, then the newest, then by name before alias, then the first."""

    def rank(known: _Known) -> tuple[int, tuple[tuple[int, ...], ...], bool]:
        shared = len(known.name.ignored & written.ignored)
        return shared, version_key(known.name.of_kind("version")), not known.is_alias

    return max(candidates, key=rank).checkpoint()


def is_name_of(written: str, entry: ModelEntry) -> bool:
    """Whether `written` names this entry alone: nothing was corrected, and what it leaves out is not ambiguous."""
    name = parse_name(written)
    entry_names = _names_of(entry)
    if entry.confidence == OWN or has_slip(written):
        return entry.confidence == OWN
    if _is_of_other_date(name, entry_names):
        return False
    if any(known.name.core == name.core for known in entry_names):
        return True
    other_names = [known for known in _known_names() if name.core <= known.name.core and known not in entry_names]
    return not other_names and any(name.core - name.of_kind("size") <= known.name.core for known in entry_names)


def _is_of_other_date(name: ParsedName, entry_names: list[_Known]) -> bool:
    """Whether a name dates a release ("2411", "0528") that none of the entry's names has."""
    return bool(name.dates - frozenset(date for known in entry_names for date in known.name.dates))


def read_as(written: str, entry: ModelEntry) -> str:
    """The note that a name is read as an entry with another name (`is_name_of`)."""
    entry_names = _names_of(entry)
    if entry.base is not None and _is_of_other_date(parse_name(written), entry_names):
        return f"{written!r} is planned with the layers of {entry.base.rpartition('/')[2]}, the release that is known"
    return f"{written!r} read as {entry.short_name}"


def same_architecture(written: str, entry: ModelEntry) -> str | None:
    """The note that `written` names another model with a known entry's architecture; `None` if it names the entry."""
    core = parse_name(written).core
    known = next((known for known in _names_of(entry) if known.name.core == core), None)
    if known is None or not known.is_alias or core <= parse_name(known.entry.short_name).core:
        return None
    return f"{written!r} has the architecture of {known.entry.short_name}"


def has_family(name: str) -> bool:
    """Whether the catalogue has any model of the family that a name begins with ("gpt-4": no)."""
    families = parse_name(name[:_MAX_NAME]).of_kind("family")
    return any(families & known.name.core for known in _known_names())


def nearest_models(name: str, count: int = 3) -> tuple[str, ...]:
    """The short names nearest to `name`: most shared tokens first, then spelling."""
    written = parse_name(name[:_MAX_NAME])
    scored: dict[str, tuple[int, float]] = {}
    for known in _known_names():
        shared = len(written.core & known.name.core)
        if known.is_alias or not written.of_kind("family", "word") & known.name.core:
            continue
        likeness = SequenceMatcher(None, name.lower()[:_MAX_NAME], known.entry.short_name.lower()).ratio()
        # Of another family, a word that names share ("mini", "base") makes them no more alike.
        if written.of_kind("family") & known.name.core or likeness >= _ALIKE:
            scored[known.entry.short_name] = (shared, likeness)
    if scored:
        return tuple(sorted(scored, key=lambda short: scored[short], reverse=True)[:count])
    spellings = {entry.short_name.lower(): entry.short_name for entry in all_models()}
    close = get_close_matches(name.lower()[:_MAX_NAME], list(spellings), n=count, cutoff=0.6)
    return tuple(spellings[match] for match in close)


def load_model(reference: str | Path | Mapping[str, Any]) -> ModelEntry:
    """A model by name, by the path of a `config.json` (or of a folder with one), or by a config object.

    Raises UnknownNameError: neither a known name nor an existing path; InputError: the file cannot be read, is too
    large, or is no model config.
    """
    if isinstance(reference, Mapping):
        return _from_config(reference, "config", "given as an object")
    path = Path(reference)
    if isinstance(reference, Path) or reference.strip().endswith(".json") or is_there(path / "config.json"):
        return _from_config(read_config_file(path), str(path), f"file {path}")
    return find_model(reference)


def _from_config(config: Mapping[str, Any], where: str, source: str) -> ModelEntry:
    architecture = read_architecture(config, where=where)
    stated = config.get("_name_or_path") or config.get("name")
    name = stated if isinstance(stated, str) and 0 < len(stated) <= _MAX_NAME else architecture.model_type
    return ModelEntry(name, config, source, total_params=architecture.total_params)
