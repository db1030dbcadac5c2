"""Briefs: what planners write down before they ask, as Markdown, YAML or JSON, one text or several, read into `Said`.

Every text becomes a flat list of statements; each is read by one table of fields and by the readers of requests; what
they state is put together and checked. It refuses briefs that contradict themselves, with both places, and completes
nothing. Words are data: nothing in a brief is followed, evaluated or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...tools.catalog.accelerators import Accelerator
from ...tools.errors import InputError
from ...tools.files import read_bounded, shown_path, utf8_text
from ...tools.strict_values import HALF_A_CHARACTER, is_text, whole_characters
from .brief_card import Card, read_card
from .brief_facts import Fact, Facts, only
from .brief_hardware import read_counts, read_links
from .brief_load import read_limits, read_load
from .brief_markdown import read_markdown
from .brief_model import read_model
from .brief_prose import Names, read_statement
from .brief_statements import Source, StatedObject, join_sources
from .brief_strategy import read_stated_strategy
from .brief_structured import read_json, read_yaml
from .constraint_words import merged_constraints
from .errors import BriefError
from .intent import OpenPrecisions, Said
from .merge import merge_said
from .quoted import quoted_apart

MAX_FILES = 20
MAX_FILE_BYTES = 1_000_000
_MARKDOWN = (".md", ".markdown", ".txt", ".rst")
_YAML_LINE = re.compile(r"\s*(?:#.*|---|-\s.*|[\w\u4e00-\u9fff .()/\"'-]{1,60}:(?:\s.*)?)?")


def read_brief_files(paths: Iterable[str | Path]) -> Said:
    """Read the files of one brief together.

    Raises:
        BriefError: too many files, one that is too large or not UTF-8 text, or as `read_brief`.
    """
    return read_brief(brief_texts(paths))


def brief_texts(paths: Iterable[str | Path]) -> list[tuple[str, str]]:
    """The (name, text) pairs of the files of one brief.

    Raises:
        BriefError: too many files, one that is too large or not UTF-8 text.
    """
    sources: list[tuple[str, str]] = []
    for path in paths:
        if len(sources) == MAX_FILES:
            raise BriefError(f"a brief has at most {MAX_FILES} files; join some")
        sources.append((str(path), _read_text(Path(path))))
    return sources


def read_brief(sources: Sequence[tuple[str, str]]) -> Said:
    """Read the (name, text) pairs of one brief together; a name's suffix tells the form, else the text does.

    Raises:
        BriefError: nothing in it, unreadable, contradictory, impossible, or it names what is unknown; the message is
            one line that names the place.
    """
    if len(sources) > MAX_FILES:
        raise BriefError(f"a brief has at most {MAX_FILES} texts, not {len(sources)}; join some")
    older, newer = _quoted_apart(sources)
    if older:
        return merge_said([read_brief(older), read_brief(newer)])
    facts, names = Facts(), Names()
    source = join_sources([_parse(name, text) for name, text in sources])
    if not source.statements and not source.objects:
        raise BriefError("the brief is empty; write down the model, the hardware, the load and the limits")
    names.folder = Path(sources[0][0]).parent
    for statement in source.statements:
        read_statement(statement, facts, names)
    names.settle()
    try:
        return _said(facts, names, source)
    except ValidationError as error:
        first = error.errors()[0]
        raise BriefError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from error


def _quoted_apart(sources: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The mails that texts quote, apart from what stands around them; none where a text is no mail."""
    older: list[tuple[str, str]] = []
    newer: list[tuple[str, str]] = []
    for name, text in sources:
        is_text = Path(name).suffix.lower() not in (".json", ".yaml", ".yml") and len(text) <= MAX_FILE_BYTES
        before, after = quoted_apart(text, needs_header=True) if is_text else ("", text)
        older += [(name, before)] if before else []
        newer.append((name, after))
    return older, newer


def _read_text(path: Path) -> str:
    name = shown_path(path)
    try:
        data = read_bounded(path, MAX_FILE_BYTES, name, "; a brief is a page or two")
        return utf8_text(data, name)
    except InputError as error:
        raise BriefError(str(error)) from None


def _parse(path: str, text: str) -> Source:
    name = whole_characters(Path(path).name[:80] or path[:80])
    if not is_text(text):
        raise BriefError(f"{name}: {HALF_A_CHARACTER}")
    if len(text) > MAX_FILE_BYTES:
        raise BriefError(f"{name} is longer than {MAX_FILE_BYTES} characters; a brief is a page or two")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    suffix = Path(path).suffix.lower()
    stripped = text.strip()
    if suffix == ".json" or (suffix not in (*_MARKDOWN, ".yaml", ".yml") and stripped[:1] in ("{", "[")):
        return read_json(name, text)
    if suffix in (".yaml", ".yml"):
        return read_yaml(name, text)
    if suffix not in _MARKDOWN and _looks_like_yaml(stripped):
        try:
            return read_yaml(name, text)
        except BriefError:  # plain text with colons, after all
            return read_markdown(name, text)
    return read_markdown(name, text)


def _looks_like_yaml(text: str) -> bool:
    lines = text.split("\n")
    nested = any(line.startswith("  ") for line in lines)
    return nested and all(_YAML_LINE.fullmatch(line) for line in lines[:2000])


def _said(facts: Facts, names: Names, source: Source) -> Said:
    words: dict[str, str] = {}
    model = read_model(facts, names.models, list(source.objects), names.folder)
    card = _card(facts, names, source.objects)
    values = read_counts(facts)
    per_node = values.get("gpus_per_node")
    if per_node is None and names.sizes.box is not None:
        values["gpus_per_node"] = per_node = names.sizes.box
    if per_node is None and "gpus" in values and "nodes" in values:
        per_node = values["gpus"] // values["nodes"]
    values |= read_links(facts, card.base, per_node) | read_load(facts) | read_limits(facts) | _wishes(facts, names)
    strategy = read_stated_strategy(facts)
    if strategy is not None:
        values["strategy"] = strategy
        _hardware_of_strategy(facts, values)
    if (gpu_rate := facts.one("throughput_per_gpu") or facts.one("tokens_per_second_per_gpu")) is not None:
        _total_throughput(facts, values, gpu_rate)
    values |= {"model": model.name, "model_config_object": model.config}
    values |= {"accelerator": card.accelerator, "accelerator_object": card.accelerator_object}
    values = {name: value for name, value in values.items() if value is not None}
    for name in values:
        words[name] = _words(facts, names, name)
    for name in ("model", "model_config_object"):
        if name in values:
            words[name] = model.words
    return Said(**values, words=words, unread=tuple(facts.unread[:100]), readings=tuple(facts.readings[:100]))


def _card(facts: Facts, names: Names, objects: Sequence[StatedObject]) -> Card:
    """The card in words and figures, or one that stands in the brief in the catalogue's own form."""
    stated = [item for item in objects if item.kind == "card"]
    if not stated:
        return read_card(facts, names.cards)
    try:
        cards = [Accelerator.model_validate({"id": "custom", **item.value}) for item in stated]
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BriefError(f"{stated[0].where}: the card's {where}: {first['msg']}") from error
    if any(card != cards[0] for card in cards):
        raise BriefError(f"two different cards: at {stated[0].where} and at {stated[1].where}; keep one")
    return Card(accelerator_object=cards[0], base=cards[0])


def _wishes(facts: Facts, names: Names) -> dict[str, Any]:
    """What is said without a figure: formats, objective, separate phases, relaxations, engine and version."""
    said: dict[str, Any] = {}
    for name in ("weights", "kv_cache", "activations", "precisions", "engine", "engine_version", "disaggregated"):
        if (fact := only(name, facts.of(name))) is not None:
            said[name] = fact.value
    asked: OpenPrecisions | None = said.get("precisions")
    if names.weights is not None and (asked is None or not (asked.is_open or any(one.weights for one in asked.named))):
        said.setdefault("weights", names.weights)
    if constraints := merged_constraints(*(fact.value for fact in facts.of("constraints"))):
        said["constraints"] = constraints
    if relaxations := {name for fact in facts.of("relaxations") for name in fact.value}:
        said["relaxations"] = tuple(sorted(relaxations))
    if (objective := _objective(facts)) is not None:
        said["objective"] = objective
    return said


def _objective(facts: Facts) -> str | None:
    """What to make best: what an "objective" key says, else the wishes in words, else the fewest cards (cost)."""
    keyed, wished = facts.of("objective_keyed"), facts.of("objective")
    fewest = facts.of("fewest")
    if (fact := only("objective", keyed)) is not None:
        return str(fact.value)
    if wished:
        if other := next((fact for fact in wished if fact.value != wished[0].value), None):
            facts.reading(f"{wished[0].words} read as the objective, {other.words} as a wish that comes after it")
        if fewest:
            facts.reading(f"{fewest[0].words}: the fewest cards that do, and on them the best {wished[0].value}")
        return str(wished[0].value)
    if fewest:
        facts.reading(f"{fewest[0].words}: the fewest cards read as the objective cost")
        return "cost"
    return None


def _hardware_of_strategy(facts: Facts, values: dict[str, Any]) -> None:
    """Where only the strategy counts GPUs, that is what there is."""
    counts = [fact for fact in facts.of("gpus") if fact.quantity is not None]
    if counts and not values.get("gpus_open") and not ({"gpus", "nodes"} & values.keys()):
        values["gpus"] = int(counts[0].value)
        facts.reading(
            f"{counts[0].words}: the GPUs of the stated strategy read as the hardware, which states no number"
        )


def _total_throughput(facts: Facts, values: dict[str, Any], rate: Fact) -> None:
    """A throughput per GPU is a limit of the whole where the number of GPUs is known."""
    gpus = values.get("gpus") or (values.get("nodes", 0) * values.get("gpus_per_node", 0))
    if not gpus:
        facts.leave_unread(f"{rate.words}: a throughput per GPU is a limit only where the number of GPUs is stated")
        return
    figure = rate.quantity.decimal_value if rate.quantity else rate.value
    total = float(figure) * gpus
    if values.setdefault("min_tokens_per_second", total) < total:
        values["min_tokens_per_second"] = total
    facts.reading(f"{rate.words}: read as {total:g} tokens/s of {gpus} GPUs together")


_SOURCES: dict[str, tuple[str, ...]] = {
    "intra_node_bw_gb_s": ("intra_node_bw",),
    "inter_node_bw_gb_s": ("inter_node_bw",),
    "ttft_ms_max": ("ttft_ms_max",),
    "tpot_ms_max": ("tpot_ms_max", "user_rate"),
    "ttft_statistic": ("ttft_ms_max",),
    "tpot_statistic": ("tpot_ms_max", "user_rate"),
    "input_tokens_range": ("input_tokens", "input_tokens_range"),
    "output_tokens_range": ("output_tokens", "output_tokens_range"),
    "input_tokens": ("input_tokens", "input_tokens_range"),
    "output_tokens": ("output_tokens", "output_tokens_range"),
    "memory_utilization": ("memory_utilization", "memory_free"),
    "min_tokens_per_second": ("min_tokens_per_second", "throughput_per_gpu", "tokens_per_second_per_gpu"),
    "objective": ("objective", "fewest"),
    "gpus_open": ("gpus_open", "fewest"),
    "weights": ("weights", "model"),
}


def _words(facts: Facts, names: Names, name: str) -> str:
    """The words of the statements that a field came from."""
    found: list[Fact] = []
    for source in (*_SOURCES.get(name, (name,)), f"{name}_keyed"):
        found += facts.of(source)
    if name.startswith("accelerator"):
        found = [*names.cards, *(fact for fact in facts.items if fact.field.startswith("card."))]
    if not found and name == "gpus_per_node":  # the size of a node that was named as a whole ("DGX H100")
        found = names.cards
    return "; ".join(dict.fromkeys(fact.words for fact in found))[:400]
