"""Walks through a foreign proposal and takes down what each key says: degrees, model, hardware, load, nodes, edges.

A key counts by its words and by the keys above it. What is a node, a stage or a replica is read in `items.py`. What it
does not know it looks into, and leaves alone where there is nothing inside that it knows.
"""

from __future__ import annotations

import re
from typing import Any

from ...bounds import DEGREE
from ...catalog.model_mentions import mentions
from ...catalog.models import find_model
from ...catalog.names import named_format
from ...checkpoint import checkpoint
from ...errors import InputError
from ...rules.combination.dimension_names import read_dimension
from .axes import degrees_by_axis, lengths_of
from .degree_words import degrees_of
from .edge_words import Joint, joints_of
from .facts import Facts, number_format
from .figures import Place, digits_for_words, figure_of, places_of, span_of, whole_number
from .flags import flags_in
from .hardware_keys import HardwareReader
from .items import ItemReader
from .lexicon import DEGREE_NAMES, OBJECTIVES, concept_of, node_type_of, phase_of, words_of
from .notes import Notes, shortened
from .scope import Item, Scope
from .shapes import is_list, is_nested, is_object
from .text import MOST_INNER_CHARS, extract, parsed

MAX_DEPTH = 60
# The format's own bound on a degree.
_MOST_DEGREE = int(DEGREE.most)
_MAX_VALUES = 500_000
# A short text stands for any number of devices: those of hundreds of GPUs at each operator of each layer.
MOST_PLACES = 100_000
_OPERATOR_DEGREES = {
    "AttentionNode": {"tp": "tp", "dp": "attention_dp", "sp": "sp"},
    "FFNNode": {"tp": "tp_ffn"},
    "MoENode": {"ep": "ep", "tp": "tp_expert"},
}
_BARE_DEGREES: dict[str | None, str] = {"stages": "pp", "experts": "ep", "bare_dp": "dp"}
# Texts inside of texts: an answer inside of a message, few of them and no further.
_MOST_DEPTH_OF_TEXTS = 2
_MOST_TEXTS = 20
_LOAD = {"input_tokens", "output_tokens", "concurrency"}
_LIMITS = {"ttft_ms_max", "tpot_ms_max", "request_rate"}
# Layers of each stage in one text: "41,39", "[41, 39]", "41/39".
_CUTS = re.compile(r"[\[(]?((?:\d{1,5}[ ,，/]{1,3}){1,1000}\d{1,5})[\])]?")
UNPLANNED = {
    "speculative": "speculative decoding is not planned: the plan is for serving without it",
    "lora": "LoRA serving is not planned: the plan is for the base model alone",
}
# Where a number of GPUs is that of the plan, not only of the hardware.
_OF_STRATEGY = re.compile(r"strategy$|parallel\w{0,20}$", re.IGNORECASE)
_SEPARATE = ("worker", "instance", "pool", "server", "engine", "cluster", "node", "节点", "实例")
_CONFIG_KEYS = frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"})


class Walker:
    """One walk: `facts` was said of the whole plan, `items` are the nodes without a parent, `joints` the edges."""

    def __init__(self, notes: Notes, *, is_cut: bool = False) -> None:
        self.notes = notes
        # Of a text that breaks off nothing is counted: there may have been more.
        self.is_cut = is_cut
        self.facts = Facts(notes)
        self.items: list[Item] = []
        self.joints: list[Joint] = []
        self.values = 0
        self.texts = 0
        self._places = 0
        self.reader = ItemReader(self)
        self.hardware = HardwareReader(self)

    def places_of(self, value: object) -> list[Place] | None:
        """The devices that `value` names, of all that a document may name; `None` where it names none."""
        if self._places > MOST_PLACES:
            return None
        found = places_of(value)
        self._places += len(found or ())
        if self._places <= MOST_PLACES:
            return found
        self.notes.unclear(f"more than {MOST_PLACES:,} devices, however often one is named", "/")
        return None

    def walk(self, value: object, scope: Scope) -> None:
        """Take down what `value` says."""
        checkpoint()
        self.values += 1
        if self.values > _MAX_VALUES or scope.where.count("/") > MAX_DEPTH:
            self.notes.unclear("too large or too deep to be read whole", scope.where)
            return
        if is_object(value):
            members = value
            if len(_CONFIG_KEYS & members.keys()) >= 3:
                self.facts.claim("config", members, scope.where)
                return
            if by_axis := degrees_by_axis(members):
                for name, number in by_axis.degrees.items():
                    self.claim_degree(name, number, scope)
                members = by_axis.rest
            for key, member in members.items():
                self._member(str(key), member, scope)
        elif is_list(value):
            items = value
            if items and any(isinstance(item, str) and item.startswith(("--", "-tp")) for item in items):
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

    def _member(self, key: str, value: Any, scope: Scope) -> None:
        if value is None or value == "":
            return
        if isinstance(value, str) and (inner_value := parsed(value)) is not None:
            value = inner_value
        if is_object(value) and (lengths := lengths_of(key, value)):
            for field, tokens in lengths.items():
                self._plain(field, tokens, scope.inside(key))
            return
        concept, phase, inner = concept_of(key), phase_of(key), scope.inside(key)
        if phase is not None and concept is None:
            self._phase(key, phase, value, inner)
        elif concept in UNPLANNED:
            if value not in (False, 0, [], {}) and str(value).lower() not in ("false", "none", "null", "off", "0"):
                self.notes.unclear(UNPLANNED[concept], inner.where)
        elif concept == "aside" or self.reader.takes(concept, value, inner):
            return
        elif concept in DEGREE_NAMES:
            self.degree(concept, value, inner)
        elif scope.hardware and self.hardware.member(concept, value, inner):
            return
        elif concept in ("hardware", "accelerator", "node_count", "gpus_per_node", "gpu_total", "devices"):
            if concept == "gpu_total" and whole_number(value) and _OF_STRATEGY.search(scope.where):
                self.facts.claim("used", whole_number(value), inner.where, weak=True)
            self.hardware.plain(concept, value, inner)
        elif concept == "model" or (concept == "id" and scope.where.endswith("/model")):
            self._model(value, inner)
        elif concept == "edges":
            self.joints.extend(joints_of(value, inner, self.notes))
        elif concept in _BARE_DEGREES and whole_number(value) is not None and scope.item is None:
            self.degree(_BARE_DEGREES[concept], value, inner)
        elif value is True and (dtype := number_format(key)) is not None:
            self.facts.claim("precision.weights", dtype, inner.where)
        elif concept is not None and self._plain(concept, value, inner):
            return
        elif concept is None and is_object(value) and (operator := node_type_of(key)) in _OPERATOR_DEGREES:
            self.walk(value, inner.but(operator=operator))
        elif is_nested(value):
            self.walk(value, inner)
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

    def degrees_text(self, text: str, scope: Scope) -> None:
        """Take down degrees that a text states; note one that states none for certain."""
        degrees = degrees_of(text)
        if degrees is None:
            self.notes.unclear(f"{shortened(text)!r} states no parallel degrees for certain", scope.where, "strategy")
            return
        for name, number in degrees.items():
            self.claim_degree(name, number, scope)

    def degree(self, name: str, value: Any, scope: Scope) -> None:
        """Take down one degree: a number, a text, one for each phase, or an object that holds it."""
        if is_object(value):
            self._degree_object(name, value, scope)
            return
        if is_list(value):
            numbers = {whole_number(item) for item in value}
            value = numbers.pop() if len(numbers) == 1 else None
        number = whole_number(digits_for_words(value[:100]) if isinstance(value, str) else value)
        if number is None and isinstance(value, str) and degrees_of(value) is not None:
            self.degrees_text(value, scope)
        elif number is None or number < 1 or number > _MOST_DEGREE:
            if value not in (False, 0):
                self.notes.unclear(f"{shortened(value)!r} is no degree of {name}", scope.where, "strategy")
            if type(value) is int and -_MOST_DEGREE <= value < 0 and scope.operator is None:
                self.facts.claim(f"{scope.phase or 'any'}.as_stated.{name}", value, scope.where)
        else:
            self.claim_degree(name, number, scope)

    def _degree_object(self, name: str, value: dict[str, Any], scope: Scope) -> None:
        """ "tensor_parallel": {"tp_size": 2}, or {"prefill": 4, "decode": 8}."""
        for key, member in list(value.items())[:50]:
            phase, inner = phase_of(key), scope.inside(key)
            if phase is not None:
                self.degree(name, member, inner.but(phase=phase))
            elif words_of(key) in ("size", "degree", "value", "ways", "n", "count", "world size"):
                self.degree(name, member, inner)
            elif words_of(key) == "enabled":
                continue
            else:
                self._member(key, member, scope)

    def claim_degree(self, name: str, number: int, scope: Scope) -> None:
        """Take down a degree for the phase of its scope, under the name that it has in its operator."""
        if name == "cp":
            self.undefined(name, number, scope)
            return
        if scope.operator is not None:
            named = _OPERATOR_DEGREES[scope.operator].get(name)
            if named is None:
                self.notes.unclear(f"{name} {number} does not go with this operator", scope.where)
                return
            if named == "tp":
                self.facts.claim("attention_only", True, scope.where, weak=True)
            name = named
        self.facts.claim(f"{scope.phase or 'any'}.{name}", number, scope.where)

    def undefined(self, name: str, number: int, scope: Scope) -> None:
        """Take down a dimension that is none of the five, for the rules to name it."""
        if number > 1:
            self.notes.unclear(f"{name} {number}: no dimension but DP, PP, SP, EP and TP is known", scope.where)
            self.facts.claim(f"{scope.phase or 'any'}.as_stated.{name}", number, scope.where)

    def _model(self, value: Any, scope: Scope) -> None:
        if is_object(value):
            self.walk(value, scope if scope.where.endswith("/model") else scope.inside("model"))
        elif isinstance(value, str):
            self.model_name(value, scope.where)
        else:
            self.notes.unclear(f"{shortened(value)!r} is no model's name", scope.where, "model")

    def model_name(self, name: str, where: str, *, weak: bool = False) -> None:
        """Take down a model by name, with the number format that its suffix states."""
        try:
            entry = find_model(name.strip().rstrip("/"))
        except InputError as error:
            if not weak:
                self.facts.claim("unknown_model", name.strip()[:200], where, weak=True)
                self.notes.unclear(str(error), where, "model")
            return
        self.facts.claim("model", entry.name, where, weak=weak)
        suffix = named_format(name)
        if suffix is not None:
            self.facts.claim("precision.weights", suffix, where, weak=True)

    def _plain(self, concept: str, value: Any, scope: Scope) -> bool:
        """A field that is a number or a word; whether it was understood (or at least seen) as one."""
        if is_nested(value) and concept not in ("stage_layers", "relaxations"):
            return False
        if concept in _LOAD:
            number = whole_number(value)
            self._claim_or_doubt(f"workload.{concept}", number or None, value, scope)
        elif concept in _LIMITS:
            self._claim_or_doubt(f"workload.{concept}", figure_of(value), value, scope)
        elif concept == "objective":
            self._claim_or_doubt("workload.objective", OBJECTIVES.get(words_of(str(value))), value, scope)
        elif concept in ("weights", "kv_cache", "activations"):
            if str(value).lower() != "auto":
                self._claim_or_doubt(f"precision.{concept}", number_format(value), value, scope)
        elif concept == "memory_utilization":
            share = figure_of(value)
            self._claim_or_doubt("memory_utilization", share if share and share <= 1 else None, value, scope)
        elif concept == "engine" and isinstance(value, str):
            self.facts.claim("engine", value.strip()[:60], scope.where)
        elif concept == "stage_layers":
            self._stage_layers(value, scope)
        elif concept in ("enable_ep", "enable_dp_attention") and isinstance(value, bool):
            self.facts.claim(concept, value, scope.where)
        elif concept == "relaxations" and is_list(value):
            self.facts.claim("relaxations", [str(item)[:60] for item in value], scope.where)
        else:
            return False
        return True

    def _claim_or_doubt(self, field: str, read: Any, value: Any, scope: Scope) -> None:
        if read is None:
            self.notes.unclear(f"{shortened(value)!r} cannot be read as {field.rpartition('.')[2]}", scope.where, field)
        else:
            self.facts.claim(field, read, scope.where)

    def _stage_layers(self, value: Any, scope: Scope) -> None:
        if is_object(value) and value and all(phase_of(str(key)) for key in value):
            for key, member in value.items():
                self._stage_layers(member, scope.inside(key).but(phase=phase_of(str(key))))
            return
        items: list[Any] = value if is_list(value) else []
        if isinstance(value, str) and (match := _CUTS.fullmatch(value[:2_000].strip())):
            items = match[1].replace(",", " ").replace("，", " ").replace("/", " ").split()
        numbers = [whole_number(item) for item in items]
        spans = [span_of(item) for item in items]
        if numbers and None not in numbers:
            self.facts.claim(f"{scope.phase or 'any'}.stage_layers", numbers, scope.where)
        elif spans and None not in spans:
            lengths = [last - first + 1 for first, last in (span for span in spans if span is not None)]
            self.facts.claim(f"{scope.phase or 'any'}.stage_layers", lengths, scope.where)
        elif whole_number(value) is None:  # one number for all stages says what even cuts say
            self.unknown("stage_layers", "stage_layers", value, scope)

    def _may_look_into(self, text: str, scope: Scope) -> bool:
        self.texts += 1
        return self.texts <= _MOST_TEXTS and scope.depth < _MOST_DEPTH_OF_TEXTS and len(text) <= MOST_INNER_CHARS

    def unknown(self, key: str, concept: str | None, value: Any, scope: Scope) -> None:
        """A word or number that means nothing here; degrees in it count where it holds nothing else."""
        dimension = read_dimension(key) if concept is None and type(value) is int and not scope.hardware else None
        if dimension is not None and not dimension.defined and value <= _MOST_DEGREE:
            self.undefined(key, value, scope)
            return
        if isinstance(value, str) and "{" in value and self._may_look_into(value, scope):
            found = extract(value, self.notes)
            self.walk(found.value, scope.but(depth=scope.depth + 1))
            if found.value is not None:
                return
        if isinstance(value, str) and len(value) <= 300:
            if degrees_of(value) is not None:
                self.degrees_text(value, scope)
            elif concept is None and any(found.entry and found.words == value.strip() for found in mentions(value)):
                self.model_name(value, scope.where, weak=True)  # whatever the key, it is a model's name
            else:
                self.notes.unclear(f"{shortened(value)!r}: not understood", scope.where)
        else:
            self.notes.unclear(f"{shortened(value)!r}: not understood", scope.where)
