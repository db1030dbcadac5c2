"""JSON, YAML, TOML and INI briefs, nested in any way, as flat statements.

A model's `config.json` and a card in the catalogue's own form are passed on whole. Lists of servers or cards are
counted. Keys are understood in `fields.py`, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from ...catalog.config import TEXT_PARTS
from ...input.shapes import is_list, is_object
from ..patterns.gated import Gated
from .figure_objects import (
    OF_NO_UNIT,
    UNIT_KEYS,
    curve_text,
    figure_in,
    labelled_figure,
    range_text,
    with_own_qualifiers,
)
from .key_words import KEPT_BACK, key_words
from .keys import (
    COUNT,
    DEGREE,
    EACH,
    IS_PATH,
    MACHINE,
    MACHINES,
    WRITES_TO,
    key_under,
    not_planned,
    planned_figure,
    says_unused,
    says_used,
    statement_of_key,
)
from .launch import tells_former
from .objects import (
    IDENTITY,
    are_kinds,
    common_facts,
    counted_card,
    is_choice,
    is_name_of_node,
    key_of_count,
    named_nodes,
    names_nodes,
    offered_hardware,
    weighed_layouts,
)
from .parse import Parsed, Path, parse_json, parse_yaml
from .qualifiers import key_unit
from .settings import parse_settings
from .statements import OUT_OF_SCOPE, PER_NODE, Source, StatedObject, Statement, check_statement, join_sources
from .tables import columns_and_rows, rows_in, rows_of_table

# Keys that only a Hugging Face config.json spells like this.
_CONFIG_CORE = frozenset((
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
    "vocab_size", "n_embd", "n_layer", "n_head", "kv_lora_rank",
    "moe_intermediate_size", "max_position_embeddings", "num_experts_per_tok", "head_dim",
))  # fmt: skip
_CONFIG_ANCHOR = frozenset(("hidden_size", "num_hidden_layers", "n_embd", "n_layer", "d_model"))
# Blocks of a brief: overrides replace defaults, key by key.
_OVERRIDES, _DEFAULTS = re.compile(r"over ?rides?|final|覆盖"), re.compile(r"defaults?|base|默认")
# Keys beside a config's own that speak of the deployment, not of the architecture.
_BESIDE_CONFIG = Gated(
    r"(?:quantization|precision|weights?|kv cache|activations?|(?:weights?|kv cache|kv|activations?) "
    r"?(?:dtype|precision|type)"
    r"|hardware|cluster|nodes|gpus?|accelerators?|slo|sla|workload|requirements?|constraints?|limits?|load|traffic"
    r"|strategy|parallelism|performance|objective|throughput|latency|memory)"
)
_NAME_KEYS = ("name", "model_name", "model_id", "id", "model", "_name_or_path")
_NODE_LIST = re.compile(r"\b(?:nodes|servers|hosts|machines|instances|boxes)$|节点|服务器|机器")
_GPU_LIST = re.compile(r"\b(?:gpus|cards|accelerators|devices|npus)$|显卡|加速卡")
_NOTE = Gated(r"(?:.* )?(?:notes?|comments?|remarks?|history)|备注|说明|历史")
_FIGURE = re.compile(r"[<>=≤≥~\s]*\d")
# Comments that say what a number counts: "held_back: 1  # node for repairs".
_COUNTED = Gated(r"(?:nodes?|servers?|hosts?|machines?|gpus?|cards?)(?![\w-])|[台卡张]")
# Comments on their own line that demand something; others are about the file.
_DEMANDS = Gated(
    r"(?<![a-z])(?:must|shall|never|not|only|keep|leave|reserved?|belongs?)(?![a-z])|n't(?![a-z])|(?:不[要能得可]|别|必须|留给|预留|只能)"
)
_SEVERAL_WORDS = re.compile(r"\s|[\u4e00-\u9fff]{5}")
# "so choose among these:", above a list that says it.
_INTRODUCES = Gated(r"^(?!.*(?:(?<![a-z])(?:not|never|except|without)(?![a-z])|n't(?![a-z])|不|别|禁)).*[:\uff1a]\s*$")


class _Counting(Struct, frozen=True):
    """How a list is counted: the key of the count, the path element of what is inside, and which keys only identify."""

    words: str
    inside: str
    identity: re.Pattern[str]


_NODES = _Counting("node count", PER_NODE, re.compile(rf"(?!.*(?:gpu|card|accel|device|npu)){IDENTITY}"))
_GPUS = _Counting("gpu count", "", re.compile(r"(?:.* )?(?:id|index|rank|uuid|serial|slot|bus|no)"))


def read_json(name: str, text: str) -> Source:
    """The statements of a JSON brief.

    Raises:
        BriefError: not strict JSON, or nested too deep.
    """
    return _Walker(name, parse_json(name, text)).source()


def read_yaml(name: str, text: str) -> Source:
    """The statements of a YAML brief of one or more documents.

    Raises:
        BriefError: not YAML, anchors, or nested too deep.
    """
    return join_sources([_Walker(name, parsed).source() for parsed in parse_yaml(name, text)])


def read_settings(name: str, text: str) -> Source | None:
    """The statements of a brief in TOML or INI; `None` where it is neither.

    Raises:
        BriefError: a value that is not finite, or nested too deep.
    """
    parsed = parse_settings(name, text)
    return None if parsed is None else _Walker(name, parsed).source()


def is_config(value: Mapping[str, Any]) -> bool:
    """Whether an object is a model's `config.json` (or the part of one that matters)."""
    if any(isinstance(value.get(key), Mapping) for key in TEXT_PARTS) and ("model_type" in value or len(value) < 9):
        return True
    core = _CONFIG_CORE & value.keys()
    return bool(_CONFIG_ANCHOR & value.keys()) and len(core | ({"model_type", "architectures"} & value.keys())) >= 3


def _overridden(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements without the defaults that a block of overrides replaces."""
    listed = tuple(statements)
    wins = {s.path[-1] for s in listed if len(s.path) > 1 and _OVERRIDES.fullmatch(key_words(s.path[0]))}
    return tuple(
        s for s in listed if len(s.path) < 2 or not _DEFAULTS.fullmatch(key_words(s.path[0])) or s.path[-1] not in wins
    )


class _Walker:
    def __init__(self, name: str, parsed: Parsed) -> None:
        self._name = name
        self._parsed = parsed
        self._statements: dict[tuple[tuple[str, ...], str], Statement] = {}
        self._objects: list[StatedObject] = []

    def source(self) -> Source:
        value = self._parsed.value
        if not isinstance(value, Mapping | list):
            self._add((), value, ())
        else:
            self._walk((), value, ())
        for line, words in self._parsed.remarks.items():
            if _SEVERAL_WORDS.search(words) and _DEMANDS.search(words) and not _INTRODUCES.search(words):
                self._state((), words, f"{self._name} line {line}")
        return Source(_overridden(self._statements.values()), tuple(self._objects))

    def _where(self, at: Path) -> str:
        line = self._parsed.lines.get(at) or self._parsed.lines.get(at[:-1])
        if line is not None:
            return f"{self._name} line {line}"
        return f"{self._name} /{'/'.join(' '.join(str(part).split()) for part in at)}"[:200]

    def _add(self, keys: tuple[str, ...], value: Any, at: Path) -> None:
        comment = self._parsed.comments.get(at) or self._parsed.comments.get(at[:-1])
        if value is None or value == "":
            if comment and _SEVERAL_WORDS.search(comment):  # "tensorParallel: null  # TP8 or TP4?"
                self._state((), comment, self._where(at))
            return
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        if keys and WRITES_TO.fullmatch(key_words(keys[-1])) and IS_PATH.fullmatch(text):
            keys = (f"{OUT_OF_SCOPE}is the path of a file", *keys)
        if keys and _NOTE.fullmatch(key_words(keys[-1])) and tells_former(text):
            keys = (f"{OUT_OF_SCOPE}tells what held before", *keys)
        if comment and tells_former(comment):
            self._state((f"{OUT_OF_SCOPE}tells what held before",), comment, self._where(at))
            comment = None
        if comment:
            is_kept = keys and KEPT_BACK.fullmatch(key_words(keys[-1])) and _COUNTED.match(comment)
            text = f"{text} {comment}" if is_kept else f"{text} ({comment})"
        self._state(keys, text, self._where(at))

    def _state(self, keys: tuple[str, ...], text: str, where: str) -> None:
        check_statement(text, where, len(self._statements))
        # Servers of a list repeat each other: each statement is kept once, differing ones beside it.
        self._statements.setdefault((keys, text), Statement(keys, text, where, keyed=bool(keys)))

    def _walk(self, keys: tuple[str, ...], value: Any, at: Path) -> None:
        if is_object(value):
            self._mapping(keys, value, at)
        elif is_list(value):
            self._list(keys, value, at)
        else:
            self._add(keys, value, at)

    def _mapping(self, keys: tuple[str, ...], value: Mapping[str, Any], at: Path) -> None:
        if is_config(value):
            value = self._take_config(value, at)
        elif {"dense_peak_tflops", "memory_bandwidth_gb_s"} <= value.keys():
            self._objects.append(StatedObject("card", None, value, self._where(at)))
            return
        elif (text := range_text(value) or curve_text(keys[-1] if keys else "", value)) is not None:
            self._add(keys, text, at)
            return
        elif (labelled := labelled_figure(value)) is not None:
            label, text = labelled
            self._add((*keys, label) if label else keys, text, at)
            return
        elif (planned := planned_figure(value)) is not None:
            self._add(keys, planned[1], (*at, planned[0]))
            return
        if keys and (named := named_nodes(keys[-1], value)):
            self._list(keys, named, at)
            return
        if keys and (says_no := says_unused(value.items())) is not None:
            keys = (*keys, f"{OUT_OF_SCOPE}stands beside {says_no!r}")
        value = self._without_tables(keys, self._planned_of(keys, value, at), at)
        parent = key_words(keys[-1]) if keys else ""
        common = common_facts(parent, value)
        counts_nodes = any(isinstance(item, int) and MACHINES.fullmatch(key_words(key)) for key, item in value.items())
        for key, item in with_own_qualifiers(value).items():
            is_figure = isinstance(item, int | float | str) and _FIGURE.match(str(item)) and key not in common.keys
            words = key_words(key)
            unit = "" if key_unit(key) or OF_NO_UNIT.search(words) else common.unit
            if is_figure and (unit or common.qualifier):
                self._add((*keys, key), f"{item}{unit}{common.qualifier}", (*at, key))
                continue
            if key in common.keys or (common.unit and words in UNIT_KEYS) or says_used(words, str(item)):
                continue
            if (entry := counted_card(keys, key, item) or statement_of_key(parent, words, item)) is not None:
                self._add((*keys, *entry[:-1]), entry[-1], (*at, key))
                continue
            # {"node": {"gpu": "H100", "n": 8}, "nodes": 2}
            is_each = is_object(item) and counts_nodes and MACHINE.fullmatch(words)
            name = f"{EACH}{key}" if is_each else key_of_count(parent, key, item, common.counted)
            title = self._parsed.titles.get((*at, key), "").split(",")[0]  # "# history, Q2"
            said_of_all = (common.qualifier.strip(" ()"), title) * is_object(item)
            self._walk((*keys, *filter(None, said_of_all), key_under(parent, name, item)), item, (*at, key))

    def _planned_of(self, keys: tuple[str, ...], value: Mapping[str, Any], at: Path) -> Mapping[str, Any]:
        """The mapping without the figures for which it names another to plan for."""
        unplanned = not_planned(value)
        for key in unplanned[1:]:
            why = f"{OUT_OF_SCOPE}stands beside '{unplanned[0]}: {value[unplanned[0]]}'"
            self._add((*keys, why, key), value[key], (*at, key))
        return {key: item for key, item in value.items() if key not in unplanned}

    def _without_tables(self, keys: tuple[str, ...], value: Mapping[str, Any], at: Path) -> Mapping[str, Any]:
        """The mapping without a header and rows, which are added as a table."""
        if (listed := columns_and_rows(value)) is None:
            return value
        columns, rows = listed
        self._table(keys, [value[columns], *value[rows]], (*at, rows))
        return {key: item for key, item in value.items() if key not in listed}

    def _take_config(self, value: Mapping[str, Any], at: Path) -> Mapping[str, Any]:
        """Keep the config; return what else stands in the same object."""
        beside = {k: v for k, v in value.items() if _BESIDE_CONFIG.fullmatch(key_words(k))}
        name = next((value[k] for k in _NAME_KEYS if isinstance(value.get(k), str)), None)
        names = {k for k in _NAME_KEYS if k in value}
        config = {k: v for k, v in value.items() if k not in beside and k not in names}
        self._objects.append(StatedObject("config", name, config, self._where(at)))
        return beside

    def _list(self, keys: tuple[str, ...], items: list[Any], at: Path) -> None:
        last_key = key_words(keys[-1]) if keys else ""
        several = len(items) > 1
        says_no = [says_unused(item.items(), is_listed=several) if is_object(item) else None for item in items]
        unused = {i: why for i, why in enumerate(says_no) if why is not None}
        for i, why in unused.items():
            self._mapping((*keys, f"{OUT_OF_SCOPE}stands beside {why!r}"), items[i], (*at, i))
        items = [item for i, item in enumerate(items) if i not in unused]
        are_figures = bool(items) and all(is_object(item) and labelled_figure(item) for item in items)
        if not are_figures and (rows := rows_in(items)) is not None:
            self._table(keys[:-1], rows, at)
        elif items and (_NODE_LIST.search(last_key) or names_nodes(items)):
            self._counted(keys, items, at, _NODES)
        elif len(items) > 1 and _GPU_LIST.search(last_key) and are_kinds(items):
            self._add(keys, " or ".join(items), at)
        elif items and _GPU_LIST.search(last_key) and not all(isinstance(item, str) and " " in item for item in items):
            self._counted(keys, items, at, _GPUS)
        elif (offers := offered_hardware(last_key, items)) is not None:
            for key, text in offers.items():
                self._add((*keys, key) if key else keys, text, at)
        elif (weighed := weighed_layouts(last_key, items)) is not None:
            self._add(keys, weighed, at)
        elif len(items) > 1 and all(isinstance(item, str) for item in items) and is_choice(last_key, items):
            self._add(keys, " or ".join(items), at)
        elif (figure := figure_in(items)) is not None:
            self._add(keys, figure, at)
        elif all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
            is_range = len(items) == 2 and items[0] < items[1] and not DEGREE.fullmatch(last_key)
            self._add(
                keys,
                f"{items[0]} to {items[1]}"
                if is_range
                else (" or " if DEGREE.fullmatch(last_key) else ", ").join(map(str, items)),
                at,
            )
        else:
            for i, item in enumerate(items):
                entry = statement_of_key("", last_key, item)
                self._walk((*keys[:-1], *entry[:-1]) if entry else keys, entry[-1] if entry else item, (*at, i))

    def _table(self, keys: tuple[str, ...], rows: list[list[Any]], at: Path) -> None:
        """Add rows of cells, the header first, as those of a table in words."""
        texts = [["" if cell is None else str(cell) for cell in cells] for cells in rows]
        for row in rows_of_table(texts[0], list(enumerate(texts))):
            self._state((*keys, *row.keys), row.text, self._where((*at, row.line)))

    def _counted(self, keys: tuple[str, ...], items: list[Any], at: Path, counting: _Counting) -> None:
        """Add a list of servers or cards: how many, and the statements on each."""
        records = [item for item in items if is_object(item)]
        count, counted_key = len(items), None
        counted_key = next((k for k in (records[0] if records else ()) if COUNT.fullmatch(key_words(k))), None)
        if counted_key is not None and len(records) == len(items):
            counts = [record.get(counted_key) for record in records]
            if all(isinstance(n, int) and not isinstance(n, bool) for n in counts):
                count = sum(n for n in counts if isinstance(n, int))
        inside = (*keys, counting.inside) if counting.inside else keys
        self._add((*keys, counting.words), count, at)
        for i, item in enumerate(items):
            if not is_object(item):
                if isinstance(item, str) and counting.inside == "":
                    self._add((*keys, "name"), item, (*at, i))
                continue
            for key, value in item.items():
                plain = isinstance(value, str | int | float)
                is_name = counting.identity.fullmatch(key_words(key)) or is_name_of_node(key, value)
                if (entry := counted_card(inside, key, value)) is not None:
                    self._add((*inside, *entry[:-1]), entry[-1], (*at, i, key))
                elif key != counted_key and not (plain and is_name):
                    self._walk((*inside, key), value, (*at, i, key))
