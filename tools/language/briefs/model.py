"""The model of a brief: a catalogue name, a config object, or dimensions in words, checked against each other.

Dimensions become a config with Hugging Face keys and no `model_type`. What the arithmetic needs and the brief does not
state is not filled in here: reading the config names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...catalog.config import TEXT_PARTS
from ...catalog.config_fields import SPELLINGS
from ...catalog.entry import ModelEntry
from ...catalog.model_mentions import mentions
from ...catalog.models import find_model
from ...errors import InputError
from ...input.files import is_there
from ..errors import BriefError
from ..patterns.gated import Gated
from .facts import Fact, Facts, same, show
from .statements import StatedObject, Statement

_PREFIX = "model."
# Words that state an architecture without a figure, and the config key that they set.
_NOT_GATED = Gated(
    r"\b(?:not|non|un)[ -]?gated\b|without (?:a )?gat(?:e|ing)\b|no gat(?:e|ing)\b|"
    r"\bgated: (?:no|false)\b|两矩阵|无门控|非门控"
)
_GATED = Gated(
    r"(?<!not )(?<!non[ -])(?<!un)\bgated\b(?! attention|: (?:no|false)\b)|\bswi?glu\b|\bgeglu\b|(?<!无)(?<!非)门控"
)
_UNTIED = Gated(
    r"\buntied\b|not tied|\btied: (?:no|false)\b|"
    r"tie[_ ]?(?:word[_ ])?embeddings?\W{1,3}(?:no|false)\b|不共享(?:词表|词嵌入|嵌入)"
    r"|separate (?:lm )?head",
)
_TIED = Gated(
    r"(?<!not )\btied\b(?!: (?:no|false)\b)|"
    r"tie[_ ]?(?:word[_ ])?embeddings?\W{1,3}(?:yes|true)\b|(?<!不)共享(?:词表|词嵌入|嵌入)",
)
_TRAITS: tuple[tuple[Gated, str, Any], ...] = (
    (_NOT_GATED, "mlp_gated", False),
    (_GATED, "mlp_gated", True),
    (_UNTIED, "tie_word_embeddings", False),
    (_TIED, "tie_word_embeddings", True),
    (Gated(r"multi[ -]?query attention|\bMQA\b|多查询注意力"), "num_key_value_heads", 1),
)
_MULTI_HEAD = Gated(r"\bMHA\b|(?<!grouped )\bmulti[ -]?head attention\b|(?<!组)多头注意力")
# What a sentence with dimensions is about.
_OF_MODEL = Gated(r"(?<![a-z])(?:model|checkpoint|variant|network|it|its)(?![a-z])|llm|模型")
_LATENT = Gated(r"latent|\bMLA\b|潜在")
# A figure for one of these describes a model rather than mentions it.
DESCRIBES = ("num_hidden_layers", "hidden_size")


class StatedModel(Struct, frozen=True):
    """The model: a name of the catalogue (or a path), or a config object; with the words that each came from."""

    name: str | None = None
    config: dict[str, Any] | None = None
    words: str = ""


def read_traits(statement: Statement) -> tuple[Fact, ...]:
    """Traits of an architecture that a statement names without a figure: gated, tied, multi-query."""
    text = f"{statement.path[-1]}: {statement.text}" if statement.keyed and statement.path else statement.text
    facts: list[Fact] = []
    for pattern, key, value in _TRAITS:
        if pattern.search(text):
            facts.append(Fact(f"{_PREFIX}{key}", value, statement.text[:120], statement.where))
    if _MULTI_HEAD.search(text) and not _LATENT.search(text):
        facts.append(Fact("multi_head", True, statement.text[:120], statement.where))
    return tuple(facts)


def read_model(facts: Facts, names: list[Fact], objects: list[StatedObject], folder: Path) -> StatedModel:
    """The one model that names, config objects and dimensions describe; a path is relative to `folder`.

    Raises:
        BriefError: two models, or a config that the stated dimensions contradict.
    """
    entry_fact, label = _one_name(names)
    config = _one_config(objects)
    if label is not None and str(label.value).endswith(".json"):
        if config is None:
            path = folder / str(label.value)
            return StatedModel(name=str(path if is_there(path) else label.value), words=label.words)
        label = None
    if entry_fact is not None and config is None:
        _leave_asides(facts, entry_fact.value)
    dimensions = _dimensions(facts, config)
    if config is not None:
        differing = _differing(dimensions, config.value)
        if differing:
            fact, known = dimensions[differing[0]], show(_known(config.value, differing[0]))
            raise BriefError(
                f"{fact.where} says {differing[0]} {show(fact.value)}, but the config at {config.where} has {known}; "
                "keep one"
            )
        name = entry_fact.value.name if entry_fact else (config.name or (str(label.value) if label else None))
        added = {
            key: fact.value for key, fact in dimensions.items() if fact.quantity and _known(config.value, key) is None
        }
        return StatedModel(config=_named({**config.value, **added}, name), words=f"config at {config.where}")
    if entry_fact is not None:
        return _with_stated_dimensions(facts, entry_fact, dimensions)
    described = {key: fact.value for key, fact in dimensions.items()}
    if any(key in described for key in DESCRIBES):
        words = "; ".join(dict.fromkeys(fact.words for fact in dimensions.values() if fact.quantity))
        return StatedModel(config=_named(described, str(label.value) if label else None), words=words[:400])
    for fact in facts.items:
        if fact.field.startswith(_PREFIX) and fact.quantity is not None:
            facts.leave_unread(f"{fact.words}: no model is named or described that this could be a dimension of")
    if label is not None:
        try:
            find_model(str(label.value))
        except InputError as error:
            raise BriefError(f"{label.where}: {error}") from error
    return StatedModel()


def _one_name(names: list[Fact]) -> tuple[Fact | None, Fact | None]:
    """The named catalogue entry, and a name that the catalogue does not have; `None` for what is absent."""
    known: list[Fact] = [fact for fact in names if isinstance(fact.value, ModelEntry)]
    # "Qwen3-4B" beside its checkpoint "Qwen3-4B-FP8" speaks of the latter.
    known = [fact for fact in known if not any(other.value.base == fact.value.name for other in known)]
    for other in known[1:]:
        if other.value.name != known[0].value.name:
            raise BriefError(
                f"two models are named: {known[0].value.name} at {known[0].where} and {other.value.name} at "
                f"{other.where}; plan each by itself"
            )
    unknown = [fact for fact in names if not isinstance(fact.value, ModelEntry)]
    return (known[0] if known else None), (unknown[0] if unknown else None)


def _one_config(objects: list[StatedObject]) -> StatedObject | None:
    configs = [stated for stated in objects if stated.kind == "config"]
    for other in configs[1:]:
        if dict(other.value) != dict(configs[0].value):
            raise BriefError(f"two model configs: one at {configs[0].where} and another at {other.where}; keep one")
    return configs[0] if configs else None


def _leave_asides(facts: Facts, entry: ModelEntry) -> None:
    """Leave unread what sentences say of no model: "homework: the KV cache of a 70B with 80 layers"."""
    for fact in [fact for fact in facts.items if fact.quantity is not None and not fact.keyed]:
        key = fact.field.removeprefix(_PREFIX)
        is_other = key != fact.field and not same(_known(entry.config, key), fact.value)
        if is_other and not _OF_MODEL.search(fact.context) and not mentions(fact.words):
            facts.items.remove(fact)
            facts.leave_unread(f"{fact.words} was not read as the {key} of {entry.name}")


def _dimensions(facts: Facts, config: StatedObject | None) -> dict[str, Fact]:
    dimensions: dict[str, Fact] = {}
    for name in dict.fromkeys(fact.field for fact in facts.items if fact.field.startswith(_PREFIX)):
        fact = facts.agreed(name)
        if fact is None:
            continue
        key = name.removeprefix(_PREFIX)
        if fact.quantity is not None and not fact.quantity.is_whole:
            raise BriefError(f"{fact.where}: {key} must be a whole number, not {show(fact.value)}")
        value = int(fact.value) if fact.quantity is not None else fact.value
        dimensions[key] = replace(fact, value=value)
    heads = dimensions.get("num_attention_heads")
    if (
        heads is not None
        and config is None
        and "num_key_value_heads" not in dimensions
        and (multi := facts.of("multi_head"))
    ):
        dimensions["num_key_value_heads"] = Fact(heads.field, heads.value, multi[0].words, multi[0].where)
    return dimensions


def _with_stated_dimensions(facts: Facts, named: Fact, dimensions: Mapping[str, Fact]) -> StatedModel:
    """The named model, with the dimensions that the brief states otherwise; these win, and a reading notes each."""
    entry: ModelEntry = named.value
    differing = _differing(dimensions, entry.config)
    if not differing:
        return StatedModel(name=entry.name, words=named.words)
    config = dict(entry.config)
    for key in differing:
        fact, known = dimensions[key], _known(config, key)
        config[next(spelling for spelling in _spelled(key) if spelling in config)] = fact.value
        facts.reading(f"{fact.words}: {key} of {entry.name} is {show(known)}: the brief's {show(fact.value)} is used")
    return StatedModel(config=_named(config, f"{entry.name}-as-stated"), words=named.words)


def _differing(dimensions: Mapping[str, Fact], config: Mapping[str, Any]) -> list[str]:
    """The stated dimensions that differ from a config's, but for positions, a limit that may be lower."""
    return [
        key
        for key, fact in dimensions.items()
        if fact.quantity is not None
        and (known := _known(config, key)) is not None
        and not same(known, fact.value)
        and key != "max_position_embeddings"
    ]


def _known(config: Mapping[str, Any], key: str) -> int | None:
    """A dimension of a config, in whichever spelling."""
    values: Mapping[str, Any] = config
    for part in TEXT_PARTS:
        if isinstance(config.get(part), Mapping):
            values = config[part]
    return next((values[k] for k in _spelled(key) if isinstance(values.get(k), int)), None)


def _spelled(key: str) -> tuple[str, ...]:
    return key, *SPELLINGS.get(key, ())


def _named(config: dict[str, Any], name: str | None) -> dict[str, Any]:
    if name and "_name_or_path" not in config:
        config["_name_or_path"] = name[:200]
    return config
