"""The model catalogue: entries with their sources, found by names as people write them, or read from a config.

**How a name is resolved.** It is cut into tokens (`names.py`); suffixes that name no other architecture (instruct, chat,
hf, it, fp8, awq, date stamps such as 2507, the organisation) are ignored. Then, in this order:

1. the entry whose full name, organisation or not, is the one written;
2. the entries whose remaining tokens, or those of an alias, are the same set;
3. the entries that have all written tokens and beyond them only a size, active parameters, a number of experts, a
   context length or a version.

Of several, those that share the most ignored suffixes with the name stay, then the newest version (a name that leaves
the version out, "llama 70b", means the newest), then the first of the catalogue. A size or a variant is never guessed:
where the candidates differ in one, the name is ambiguous and refused with the candidates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from ..errors import InputError, UnknownNameError
from .architecture import Architecture
from .config import read_architecture
from .names import ParsedName, TokenKind, parse_name, version_key

MAX_CONFIG_BYTES = 2_000_000
_DATA_PACKAGE = __name__.rpartition(".")[0]
# What an entry's name may have beyond the written one (rule 3).
_OPTIONAL: tuple[TokenKind, ...] = ("size", "active", "experts", "context", "version")


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model. Counts are of the text decoder; `None` where the entry is a user's own config."""

    name: str
    config: Mapping[str, Any] = field(hash=False)
    source: str
    confidence: str = "user"
    notes: str | None = None
    family: str | None = None
    total_params: int | None = None
    active_params: int | None = None
    published_params: float | None = None
    aliases: tuple[str, ...] = ()
    kv_cache: Mapping[str, int] | None = field(default=None, hash=False)

    @property
    def short_name(self) -> str:
        """The name without its organisation."""
        return self.name.rsplit("/", 1)[-1]

    def architecture(self) -> Architecture:
        """The entry's architecture, read afresh; errors name the entry."""
        return read_architecture(self.config, where=self.name)


@cache
def all_models() -> tuple[ModelEntry, ...]:
    """Every entry of the catalogue, in its order."""
    text = files(_DATA_PACKAGE).joinpath("data/models.json").read_text(encoding="utf-8")
    return tuple(ModelEntry(**{**row, "aliases": tuple(row.get("aliases", ()))}) for row in json.loads(text)["models"])


def find_model(name: str) -> ModelEntry:
    """The catalogue entry that `name` stands for, by the rule above.

    Raises:
        UnknownNameError: there is none; it carries the nearest known names.
        InputError: the name leaves open which of several sizes or variants is meant.
    """
    written = name.strip()
    if not written or len(written) > 200:
        raise InputError("a model name must have 1 to 200 characters")
    exact = [entry for entry in all_models() if written.lower() in (entry.name.lower(), entry.short_name.lower())]
    if exact:
        return exact[0]
    parsed = parse_name(written)
    same = [entry for entry in all_models() if any(parsed.core == known.core for known in _parsed(entry))]
    if same:
        return _best(same, parsed)
    wider = [entry for entry in all_models() if any(_extends(parsed, known) for known in _parsed(entry))]
    if not wider:
        raise UnknownNameError("model", written, nearest_models(parsed))
    open_sizes = {_left_open(parsed, entry) for entry in wider}
    if len(open_sizes) > 1 or (len(wider) > 1 and not parsed.of_kind("size")):
        shown = ", ".join(entry.short_name for entry in wider[:8]) + (", …" if len(wider) > 8 else "")
        raise InputError(f"model {written!r} is ambiguous: it may be {shown}")
    return _best(wider, parsed)


@cache
def _parsed(entry: ModelEntry) -> tuple[ParsedName, ...]:
    return tuple(parse_name(name) for name in (entry.short_name, *entry.aliases))


def _extends(written: ParsedName, known: ParsedName) -> bool:
    """Whether `known` is `written` plus parts that a name may leave out. A bare version is not a name."""
    extra = known.core - written.core
    words = written.of_kind("word")
    return bool(words) and written.core < known.core and extra <= known.of_kind(*_OPTIONAL)


def _left_open(written: ParsedName, entry: ModelEntry) -> frozenset[str]:
    """What the closest of the entry's names has beyond `written`, versions apart."""
    known = min((p for p in _parsed(entry) if _extends(written, p)), key=lambda p: len(p.core))
    return known.core - written.core - known.of_kind("version", "context")


def _best(entries: list[ModelEntry], written: ParsedName) -> ModelEntry:
    """The one that shares the most ignored suffixes, then the newest, then the first."""

    def rank(entry: ModelEntry) -> tuple[int, tuple[tuple[int, ...], ...]]:
        name = parse_name(entry.short_name)
        return len(name.ignored & written.ignored), version_key(name.of_kind("version"))

    return max(entries, key=rank)


def nearest_models(written: ParsedName, count: int = 3) -> tuple[str, ...]:
    """The short names that are nearest to a name: shared tokens first, spelling second."""
    joined = " ".join(sorted(written.core))
    scored: list[tuple[int, int, str]] = []
    for position, entry in enumerate(all_models()):
        shared = max(len(known.core & written.core) for known in _parsed(entry))
        if shared:
            scored.append((-shared, position, entry.short_name))
    if scored:
        return tuple(name for _, _, name in sorted(scored)[:count])
    by_spelling = {" ".join(sorted(_parsed(entry)[0].core)): entry.short_name for entry in all_models()}
    return tuple(by_spelling[key] for key in get_close_matches(joined, list(by_spelling), n=count, cutoff=0.5))


def load_model(reference: str | Path | Mapping[str, Any]) -> ModelEntry:
    """A model by name, by the path of a `config.json` (or of a folder with one), or by a config object.

    Raises:
        UnknownNameError: neither a known name nor an existing path.
        InputError: the file cannot be read, is too large, or is no model config.
    """
    if isinstance(reference, Mapping):
        return _from_config(reference, "config", "given as an object")
    path = Path(reference)
    if isinstance(reference, Path) or reference.endswith(".json") or _is_folder(path):
        return _from_file(path)
    return find_model(reference)


def _is_folder(path: Path) -> bool:
    try:
        return (path / "config.json").is_file()
    except (OSError, ValueError):
        return False


def _from_file(path: Path) -> ModelEntry:
    if path.is_dir():
        path = path / "config.json"
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read model config {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_CONFIG_BYTES:
        raise InputError(f"model config {path} is larger than {MAX_CONFIG_BYTES} bytes")
    return _from_config(parse_config(data, str(path)), str(path), f"file {path}")


def parse_config(data: bytes | str, where: str) -> Mapping[str, Any]:
    """A JSON object from hostile text: no duplicate keys, no NaN, no deep nesting.

    Raises:
        InputError: it is not one; the message names `where` and the place.
    """

    def refuse_constant(token: str) -> Any:
        raise InputError(f"{where}: {token} is not JSON")

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InputError(f"{where}: an object states the same key twice")
        return found

    try:
        value: Any = json.loads(data, parse_constant=refuse_constant, object_pairs_hook=without_duplicates)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not readable JSON ({type(error).__name__})") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: a number has too many digits") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: a model config must be a JSON object")
    return cast("dict[str, Any]", value)


def _from_config(config: Mapping[str, Any], where: str, source: str) -> ModelEntry:
    architecture = read_architecture(config, where=where)
    stated = config.get("_name_or_path") or config.get("name")
    name = stated if isinstance(stated, str) and 0 < len(stated) <= 200 else architecture.model_type
    return ModelEntry(name, config, source, total_params=architecture.total_params)
