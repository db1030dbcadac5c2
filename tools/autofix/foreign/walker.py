"""Walks through a foreign proposal and claims what each key says: degrees, model, hardware, load, nodes, edges.

A key is understood by its words and by the keys above it. Nodes, stages and replicas are read in `items.py`. Unknown
members are searched for known ones, and otherwise left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...catalog.model_mentions import mentions
from ...catalog.models import find_model
from ...catalog.names import named_format
from ...checkpoint import checkpoint
from ...errors import InputError
from ...input.shapes import is_list, is_nested, is_object
from ...plan.latency_limits import LATENCY_FIELDS
from ...rules.combination.dimension_names import read_dimension
from .claims import MOST_DEGREE, OPERATOR_DEGREES, Claims
from .figures import figure_of, span_of, whole_number
from .flags import flags_in
from .hardware import HARDWARE, HardwareReader, degrees_by_axis, lengths_of
from .items import ItemReader
from .lexicon import DEGREE_NAMES, OBJECTIVES, any_case, concept_of, node_type_of, number_format, phase_of, words_of
from .nodes import edges_of
from .notes import Notes, shortened
from .scope import Scope
from .text import MOST_INNER_CHARS, extract, parsed

MAX_DEPTH = 60
_MAX_VALUES = 500_000
# Nested texts, as an answer inside a message: their depth and number are bounded.
_MOST_DEPTH_OF_TEXTS = 2
_MOST_TEXTS = 20
_BARE_DEGREES: dict[str | None, str] = {"stages": "pp", "experts": "ep", "bare_dp": "dp"}
_PRECISIONS = ("weights", "kv_cache", "activations")
# Concepts whose value is one figure or word: the field that they claim, and what reads it.
_PLAIN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{
        name: (f"workload.{name}", lambda value: whole_number(value) or None)
        for name in ("input_tokens", "output_tokens", "concurrency")
    },
    **{name: (f"workload.{name}", figure_of) for name in (*LATENCY_FIELDS, "request_rate")},
    **{name: (f"precision.{name}", number_format) for name in _PRECISIONS},
    "objective": ("workload.objective", lambda value: OBJECTIVES.get(words_of(str(value)))),
    "memory_utilization": ("memory_utilization", lambda value: _share(value)),
    "engine": ("engine", lambda value: value.strip()[:60] if isinstance(value, str) else None),
}
# Layers of each stage in one text: "41,39", "[41, 39]", "41/39".
_CUTS = re.compile(r"[\[(]?((?:\d{1,5}[ ,，/]{1,3}){1,1000}\d{1,5})[\])]?")
UNPLANNED = {
    "speculative": "speculative decoding is not planned: the plan is for serving without it",
    "lora": "LoRA serving is not planned: the plan is for the base model alone",
}
_OFF = ("false", "none", "null", "off", "0", "0.0", "[]", "{}")
# Places where a number of GPUs is that of the plan, not only of the hardware.
_OF_STRATEGY = any_case(r"strategy$|parallel\w{0,20}$")
_SEPARATE = ("worker", "instance", "pool", "server", "engine", "cluster", "node", "节点", "实例")
_CONFIG_KEYS = frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"})


class Walker(Claims):
    """One walk through a proposal."""

    def __init__(self, notes: Notes, *, is_cut: bool = False) -> None:
        super().__init__(notes, is_cut=is_cut)
        self.values = 0
        self.texts = 0
        self.reader = ItemReader(self)
        self.hardware = HardwareReader(self, self.reader)

    def walk(self, value: object, scope: Scope) -> None:
        """Claim what `value` says."""
        checkpoint()
        self.values += 1
        if self.values > _MAX_VALUES or scope.where.count("/") > MAX_DEPTH:
            self.notes.unclear("too large or too deep to be read whole", scope.where)
        elif is_object(value) and len(_CONFIG_KEYS & value.keys()) >= 3:
            self.facts.claim("config", value, scope.where)
        elif is_object(value):
            degrees, members = degrees_by_axis(value) or ({}, value)
            for name, number in degrees.items():
                self.claim_degree(name, number, scope)
            for key, member in members.items():
                self.member(str(key), member, scope)
        elif is_list(value):
            self._walk_list(value, scope)

    def _walk_list(self, items: list[Any], scope: Scope) -> None:
        if any(isinstance(item, str) and item.startswith(("--", "-tp")) for item in items):
            words = [str(item) for item in items if isinstance(item, str | int | float)]
            self.walk(flags_in(" ".join(words)), scope)
        if self.reader.takes_phases(items, scope):
            return
        if items and all(is_list(item) and len(item) == 2 and concept_of(str(item[0])) for item in items):
            self.walk({str(item[0]): item[1] for item in items}, scope)  # pairs of a key and what it says
            return
        for place, member in enumerate(items):
            if is_nested(member):
                self.walk(member, scope.inside(place))

    def member(self, key: str, value: Any, scope: Scope) -> None:
        if value is None or value == "":
            return
        if isinstance(value, str):
            value = parsed(value) or value
        concept, phase, inner = concept_of(key), phase_of(key), scope.inside(key)
        if is_object(value) and (lengths := lengths_of(key, value)):
            for field, tokens in lengths.items():
                self._plain(field, tokens, inner)
        elif phase is not None and concept is None:
            self._phase(key, phase, value, inner)
        elif concept in UNPLANNED:
            if str(value).lower() not in _OFF:
                self.notes.unclear(UNPLANNED[concept], inner.where)
        elif concept == "aside" or self.reader.takes(concept, value, inner):
            return
        elif concept in DEGREE_NAMES:
            self.degree(concept, value, inner)
        elif scope.hardware and self.hardware.takes_member(concept, value, inner):
            return
        elif concept in HARDWARE:
            if concept == "gpu_total" and whole_number(value) and _OF_STRATEGY.search(scope.where):
                self.facts.claim("used", whole_number(value), inner.where, weak=True)
            self.hardware.read(concept, value, inner)
        elif concept == "model" or (concept == "id" and scope.where.endswith("/model")):
            self._model(value, inner)
        elif concept == "edges":
            self.edges.extend(edges_of(value, inner, self.notes))
        elif concept in _BARE_DEGREES and whole_number(value) is not None and scope.item is None:
            self.degree(_BARE_DEGREES[concept], value, inner)
        elif value is True and (dtype := number_format(key)) is not None:
            self.facts.claim("precision.weights", dtype, inner.where)
        elif concept is not None and self._plain(concept, value, inner):
            return
        elif is_nested(value):
            operator = node_type_of(key) if concept is None and is_object(value) else None
            self.walk(value, inner.but(operator=operator) if operator in OPERATOR_DEGREES else inner)
        elif isinstance(value, str) and ("--" in value or " -tp" in value) and (flags := flags_in(value[:20_000])):
            self.walk(flags, inner)
        else:
            self.unknown(key, concept, value, inner)

    def _phase(self, key: str, phase: str, value: Any, scope: Scope) -> None:
        inside = scope.but(phase=phase)
        is_separate = any(word in words_of(key) for word in _SEPARATE)
        if is_separate and (is_nested(value) or isinstance(value, str)):
            self.facts.claim("separate", True, scope.where, weak=True)
        if isinstance(value, str):
            self.degrees_text(value, inside)
        elif is_object(value):
            self.walk(value, inside)
        elif is_list(value):
            kind = "ReplicaNode" if self.facts.has("separate") and is_separate else "PipelineStageNode"
            self.reader.take_list(kind, value, inside)
        else:
            self.notes.unclear(f"{shortened(value)}: not clear what of {phase} this is", scope.where)

    def _model(self, value: Any, scope: Scope) -> None:
        if is_object(value):
            self.walk(value, scope if scope.where.endswith("/model") else scope.inside("model"))
        elif isinstance(value, str):
            self.model_name(value, scope)
        else:
            self.unclear("{} is no model's name", value, scope, "model")

    def model_name(self, name: str, scope: Scope, *, weak: bool = False) -> None:
        """Claim a model by name, with the number format that its suffix states."""
        try:
            entry = find_model(name.strip().rstrip("/"))
        except InputError as error:
            if not weak:
                self.facts.claim("unknown_model", name.strip()[:200], scope.where, weak=True)
                self.notes.unclear(str(error), scope.where, "model")
            return
        self.facts.claim("model", entry.name, scope.where, weak=weak)
        suffix = named_format(name)
        if suffix is not None:
            self.facts.claim("precision.weights", suffix, scope.where, weak=True)

    def _plain(self, concept: str, value: Any, scope: Scope) -> bool:
        """Claim a field that is a number or a word; return whether it is one, readable or not."""
        if concept == "stage_layers":
            self._stage_layers(value, scope)
        elif concept == "relaxations" and is_list(value):
            self.facts.claim("relaxations", [str(item)[:60] for item in value], scope.where)
        elif is_nested(value):
            return False
        elif concept in ("enable_ep", "enable_dp_attention") and isinstance(value, bool):
            self.facts.claim(concept, value, scope.where)
        elif concept in _PLAIN and (concept != "engine" or isinstance(value, str)):
            field, read = _PLAIN[concept]
            if (claimed := read(value)) is not None:
                self.facts.claim(field, claimed, scope.where)
            elif concept not in _PRECISIONS or str(value).lower() != "auto":
                self.unclear(f"{{}} cannot be read as {concept}", value, scope, field)
        else:
            return False
        return True

    def _stage_layers(self, value: Any, scope: Scope) -> None:
        if is_object(value) and value and all(phase_of(str(key)) for key in value):
            for key, member in value.items():
                self._stage_layers(member, scope.inside(key).but(phase=phase_of(str(key))))
            return
        cut = _CUTS.fullmatch(value[:2_000].strip()) if isinstance(value, str) else None
        items: list[Any] = value if is_list(value) else re.split(r"[ ,，/]+", cut[1]) if cut is not None else []
        counts = [whole_number(item) for item in items]
        if None in counts:
            counts = [span and span[1] - span[0] + 1 for span in map(span_of, items)]
        if counts and None not in counts:
            self.facts.claim(f"{scope.phase_or_any}.stage_layers", counts, scope.where)
        elif whole_number(value) is None:  # one number for all stages says what even cuts say
            self.unknown("stage_layers", "stage_layers", value, scope)

    def unknown(self, key: str, concept: str | None, value: Any, scope: Scope) -> None:
        """Claim what can be read from a word or number without a meaning in its place: degrees, or a model's name."""
        if concept is None and type(value) is int and value <= MOST_DEGREE and not scope.hardware:
            dimension = read_dimension(key)
            if dimension is not None and not dimension.defined:
                self.undefined(key, value, scope)
                return
        if isinstance(value, str) and "{" in value and self._looks_into(value, scope):
            return
        text = value if isinstance(value, str) and len(value) <= 300 else ""
        if text and self.words.degrees(text) is not None:
            self.degrees_text(text, scope)
        elif text and concept is None and any(match.entry and match.words == text.strip() for match in mentions(text)):
            self.model_name(text, scope, weak=True)  # whatever the key, it is a model's name
        else:
            self.unclear("{}: not understood", value, scope)

    def _looks_into(self, text: str, scope: Scope) -> bool:
        """Walk through the proposal inside a text; return whether there is one."""
        self.texts += 1
        if self.texts > _MOST_TEXTS or scope.depth >= _MOST_DEPTH_OF_TEXTS or len(text) > MOST_INNER_CHARS:
            return False
        inside = extract(text, self.notes).value
        self.walk(inside, scope.but(depth=scope.depth + 1))
        return inside is not None


def _share(value: object) -> float | None:
    share = figure_of(value)
    return share if share and share <= 1 else None
