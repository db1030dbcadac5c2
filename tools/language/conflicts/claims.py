"""What has been claimed so far, field by field: the place where contradictions and impossible figures are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from ...input import bounds
from ...input.bounds import Bounds
from ...plan.latency_limits import LATENCY_FIELDS
from ..errors import RequestError
from ..said import Said, Understood
from .alternatives import CORRECTED
from .evidence import Grade, grade, holds
from .statement_rank import standing, standing_of
from .turns import latest


class _Figure(Struct, frozen=True):
    label: str
    bounds: Bounds
    whole: bool = False


# The widest figures that the plan document can hold; what lies outside is impossible, not unlikely.
_FIGURES: dict[str, _Figure] = {
    "nodes": _Figure("number of nodes", bounds.DEGREE, whole=True),
    "gpus_per_node": _Figure("GPUs per node", bounds.DEGREE, whole=True),
    "gpus": _Figure("number of GPUs", bounds.DEGREE, whole=True),
    "input_tokens": _Figure("input length in tokens", bounds.TOKENS, whole=True),
    "output_tokens": _Figure("output length in tokens", bounds.TOKENS, whole=True),
    "max_batch": _Figure("most requests of a step", bounds.REQUESTS, whole=True),
    "prefill_chunk_tokens": _Figure("most tokens of a step", bounds.TOKENS, whole=True),
    "concurrency": _Figure("concurrency", bounds.REQUESTS, whole=True),
    "request_rate": _Figure("request rate", bounds.REQUESTS_PER_S),
    "min_tokens_per_second": _Figure("throughput in tokens/s", bounds.TOKENS_PER_S),
    "prefix_cache_hit_rate": _Figure("prefix cache hit rate as a share", bounds.SHARE),
    "expert_imbalance": _Figure("load of the busiest experts over the mean", bounds.IMBALANCE),
    "ttft_ms_max": _Figure("TTFT in ms", bounds.LATENCY_MS),
    "tpot_ms_max": _Figure("TPOT in ms", bounds.LATENCY_MS),
    "end_to_end_ms_max": _Figure("end-to-end time in ms", bounds.LATENCY_MS),
    "memory_utilization": _Figure("share of memory to use", bounds.USABLE_SHARE),
    "usd_per_gpu_hour": _Figure("price per GPU hour", bounds.USD),
    "intra_node_bw_gb_s": _Figure("intra-node bandwidth in GB/s", bounds.BANDWIDTH_GB_S),
    "inter_node_bw_gb_s": _Figure("inter-node bandwidth in GB/s", bounds.BANDWIDTH_GB_S),
    "degree": _Figure("parallel degree", bounds.DEGREE, whole=True),
}
# Figures that people say twice, rounded ("33 ms per token, so 30 tokens/s"; "4k (4000)").
_ROUNDED = frozenset({*LATENCY_FIELDS, "input_tokens", "output_tokens", "min_tokens_per_second"})
_ROUNDING = 0.05
_MANY = re.compile(r"million|billion|trillion|[万亿]", re.IGNORECASE)
# The largest gap between a statement and its correction, in characters.
_MOST_BETWEEN = 60
_RANGES = {"input_tokens_range": "input_tokens", "output_tokens_range": "output_tokens"}
# Fields in which words about the past demand nothing.
_OF_NOW = frozenset((
    "strategy", "compared", "engine", "engine_version", "weights", "kv_cache", "activations", "disaggregated",
    "gpus_per_node", "usd_per_gpu_hour", "usd_per_node_hour", "ttft_ms_max", "tpot_ms_max", "end_to_end_ms_max",
    "min_tokens_per_second", "tokens_per_second_per_gpu", "max_batch",
))  # fmt: skip


class Notes(Struct):
    """Notes for the report, each once: how ambiguous figures were read, and words that have no effect."""

    readings: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])

    def reading(self, note: str) -> None:
        """Note how an ambiguous figure was read."""
        if note not in self.readings:
            self.readings.append(note)

    def leave_unread(self, note: str) -> None:
        """List words that look like a demand and have no effect."""
        if note not in self.unread:
            self.unread.append(note)


class Claims(Notes):
    """Collects the claims of all readers; `said()` checks them as a whole and freezes them."""

    # The text that is read, in which a later statement may correct an earlier one.
    text: str = ""
    conditional: tuple[tuple[int, int], ...] = ()  # where it speaks of conditions
    past: tuple[tuple[int, int], ...] = ()  # where it speaks of the past
    describes_model: bool = False  # a config or dimensions beside it: a name that no catalogue has may be that model's
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    words: dict[str, str] = field(default_factory=dict[str, str])
    assumed: dict[str, str] = field(default_factory=dict[str, str])

    def claim(self, name: str, value: Any, words: str) -> None:
        """Record that `words` state `value` for the field `name`.

        Raises:
            RequestError: the figure is impossible, or other words stated another value.
        """
        if name.partition(".")[0] in _OF_NOW and self.is_past(words):
            self.reading(f"{words!r} tells what held once, and was not read as the {label(name.partition('.')[0])}")
            return
        reason = self._impossible(name, value, words)
        if grade(name, value, words) is Grade.THIN or (reason is not None and _is_of_all_work(name, value, words)):
            self.leave_unread(f"{words!r} is hardly the {label(name)}, and was not understood")
            return
        if reason is not None:
            raise self.refusal(reason, name.partition(".")[0])
        value = _typed(name, value)
        if name in self.values and name in _ROUNDED and abs(self.values[name] - value) <= _ROUNDING * value:
            if self.values[name] != value:
                self.reading(f"{words!r} read as {self.words[name]!r} said again, rounded")
            return
        if name in self.values and self.values[name] != value:
            settles = (self._takes_place, self._gives_way, self._is_outdone)
            if any(settled(name, value, words) for settled in settles):
                return
            raise self.refusal(
                f"{label(name)} is stated twice: {_plain(self.values[name])} in {self.words[name]!r} "
                f"and {_plain(value)} in {words!r}; keep one",
                name.partition(".")[0],
            )
        if name not in self.values:
            self.values[name] = value
            self.words[name] = words

    def takes_back(self, words: str, other: str) -> bool | None:
        """Whether `other` takes back `words` (`False`: the reverse), by a word of correction or as the later turn."""
        first = self.text.find(words)
        second = max(self.text.find(other, first + len(words)), self.text.find(other))
        if first < 0 or second < 0 or first == second:
            return None
        spans = [(first, first + len(words)), (second, second + len(other))]
        (_, start), (end, _) = earlier, later = sorted(spans)
        is_corrected = 0 <= end - start <= _MOST_BETWEEN and CORRECTED.search(self.text[start:end])
        ranks = [max(0, standing(self.text, *span)) for span in (earlier, later)]
        is_later = latest(self.text, (earlier, later)) == [False, True] and ranks[1] <= ranks[0]
        return first < second if is_corrected or is_later else None

    def _takes_place(self, name: str, value: Any, words: str) -> bool:
        """Whether one of the two statements corrects the other ("fp8... no, bf16"); only that one is kept."""
        is_later = self.takes_back(self.words[name], words)
        if is_later is None:
            return False
        later, earlier = self._better(name, value, words, is_later=is_later)
        self.reading(f"{later!r} takes the place of {earlier!r}, which stands before it")
        return True

    def _is_outdone(self, name: str, value: Any, words: str) -> bool:
        """Whether one of the two counts more, or says more plainly what it is about; only that one is kept."""
        before, now = (-standing_of(self.text, phrase) for phrase in (self.words[name], words))
        if before != now:
            meant, aside = self._better(name, value, words, is_later=before < now)
            self.reading(f"{meant!r} is planned for, not {aside!r}, which is said of something else")
            return True
        before, now = grade(name, self.values[name], self.words[name]), grade(name, value, words)
        if before != now:
            plain, other = self._better(name, value, words, is_later=before < now)
            self.leave_unread(f"{other!r} was not read as the {label(name)}, which {plain!r} says more plainly")
        return before != now

    def _better(self, name: str, value: Any, words: str, *, is_later: bool) -> tuple[str, str]:
        """Keep the later or the earlier statement; returns its words and those of the other."""
        earlier = self.words[name]
        if is_later:
            self.values[name], self.words[name] = value, words
        return (words, earlier) if is_later else (earlier, words)

    def _is_plain(self, name: str) -> bool:
        return grade(name, self.values[name], self.words[name]) is Grade.PLAIN

    def _gives_way(self, name: str, value: Any, words: str) -> bool:
        """Whether one of the two holds on a condition and so gives way; of two conditional ones neither is kept."""
        before, now = (self._is_within(phrase, self.conditional) for phrase in (self.words[name], words))
        if not before and not now:
            return False
        for phrase in [self.words[name]] * before + [words] * now:
            self.leave_unread(f"{phrase!r} holds on a condition, beside another {label(name)}: it fixes nothing")
        if before:
            self.drop(name)
            if not now:
                self.values[name], self.words[name] = value, words
        return True

    def told_once(self, spans: Sequence[tuple[int, int]]) -> list[bool]:
        """For each span, whether it speaks of the past while another speaks of the present."""
        past = [any(left <= start and end <= right for left, right in self.past) for start, end in spans]
        return [is_past and not all(past) for is_past in past]

    def is_past(self, words: str) -> bool:
        """Whether words only stand where the text speaks of the past."""
        return self._is_within(words, self.past)

    def _is_within(self, words: str, spans: tuple[tuple[int, int], ...]) -> bool:
        places = [match.start() for match in re.finditer(re.escape(words), self.text)] if spans else []
        return bool(places) and all(any(a <= place < b for a, b in spans) for place in places)

    def has(self, name: str) -> bool:
        """Whether anything was claimed for this field."""
        return name in self.values

    def drop(self, name: str) -> tuple[Any, str]:
        """Forget what was claimed for a name; returns its value and words, `None` and "" where nothing was."""
        return self.values.pop(name, None), self.words.pop(name, "")

    def replace(self, name: str, value: Any, words: str) -> None:
        """Put a value in the place of an earlier one, where the two are known not to contradict each other."""
        self.drop(name)
        self.claim(name, value, words)

    def assume(self, name: str, note: str) -> None:
        """Note that a field was read from words that do not quite state it, and how."""
        self.assumed[name] = note

    def refusal(self, reason: str, field: str | None = None) -> RequestError:
        """The error that refuses the request, with all that was understood so far; `field` as `RequestError` has it."""
        understood = tuple(
            Understood(field=name, value=_bare(value), words=self.words.get(name))
            for name, value in self.values.items()
        )
        return RequestError(reason, understood, field)

    @property
    def gpus(self) -> int | None:
        """The number of GPUs, stated or derived; `None` if unknown."""
        values = self.values
        if "gpus" in values:
            return values["gpus"]
        return values["nodes"] * values["gpus_per_node"] if "nodes" in values and "gpus_per_node" in values else None

    @property
    def gpus_of_node(self) -> int | None:
        """The GPUs of a node, stated or derived; `None` if unknown."""
        nodes, gpus = self.values.get("nodes"), self.values.get("gpus")
        return self.values.get("gpus_per_node") or (gpus // nodes if gpus and nodes else None)

    def checked_degree(self, value: float, words: str) -> int:
        """A parallel degree, checked like any other figure."""
        if (reason := self._impossible("degree", value, words)) is not None:
            raise self.refusal(reason)
        return int(value)

    def said(self) -> Said:
        """All claims as one frozen value, after the checks that need more than one field."""
        for ranged, single in _RANGES.items():
            self._check_range(ranged, single)
        self._check_counts()
        return Said(
            **self.values,
            words=self.words,
            assumed={name: note for name, note in self.assumed.items() if name in self.values},
            unread=tuple(self.unread),
            readings=tuple(self.readings),
        )

    def _impossible(self, name: str, value: Any, words: str) -> str | None:
        """Why a field cannot have the value; `None` where it can."""
        if name in _RANGES:
            ends = (self._impossible(_RANGES[name], end, words) for end in value)
            return next((reason for reason in ends if reason is not None), None)
        figure = _FIGURES.get(name)
        if figure is None or (figure.bounds.hold(value) and not (figure.whole and value != int(value))):
            return None
        least, most = figure.bounds
        kind = "a whole number" if figure.whole else "a number"
        return (
            f"impossible {figure.label}: {words!r} says {_plain(value)}; "
            f"it must be {kind} from {_plain(least)} to {_plain(most)}"
        )

    def _check_range(self, ranged: str, single: str) -> None:
        if ranged not in self.values or single not in self.values:
            return
        low, high = self.values[ranged]
        if not low <= self.values[single] <= high:
            raise self.refusal(
                f"{label(single)} {self.values[single]} ({self.words[single]!r}) lies outside the range "
                f"{low} to {high} ({self.words[ranged]!r})"
            )

    def _check_counts(self) -> None:
        """Where nodes, GPUs of each and all GPUs do not fit, drop what says it least plainly, or refuse them."""
        nodes, per_node, gpus = (self.values.get(name) for name in ("nodes", "gpus_per_node", "gpus"))
        if gpus is None or nodes is None:
            return
        if gpus != nodes * (per_node or gpus // nodes) and self._are_of_others():
            return
        if per_node is not None and nodes * per_node != gpus and self._is_no_size(nodes, per_node, gpus):
            self.drop("gpus_per_node")
            per_node = None
        if per_node is not None and nodes * per_node != gpus:
            self._settle_total(nodes, per_node, gpus)
        elif gpus % nodes:
            raise self.refusal(
                f"{gpus} GPUs ({self.words['gpus']!r}) do not divide evenly "
                f"over {nodes} nodes ({self.words['nodes']!r})"
            )

    def _are_of_others(self) -> bool:
        """Drop nodes that are said of something else than the GPUs; whether they are."""
        of_nodes = self.words["nodes"]
        if standing_of(self.text, of_nodes) <= max(0, standing_of(self.text, self.words["gpus"])):
            return False
        self.reading(f"{of_nodes!r} is said of something else, and was not read as what there is")
        self.drop("nodes")
        return True

    def _is_no_size(self, nodes: int, per_node: int, gpus: int) -> bool:
        """Whether the GPUs of each node say less plainly what there is than the total beside them, which is noted."""
        words = self.words["gpus_per_node"]
        is_part = nodes == 1 and gpus < per_node and not holds(words, per_node)
        is_other = not is_part and gpus % nodes == 0 and not self._is_plain("gpus_per_node")
        if is_part:
            self.reading(f"{words!r} has {per_node} GPUs, of which {gpus} are planned for")
        elif is_other:
            self.leave_unread(f"{words!r} was not read as the GPUs per node")
        return is_part or is_other

    def _settle_total(self, nodes: int, per_node: int, gpus: int) -> None:
        """Drop a total that is said of more, of a part or of something else than the counted nodes; else refuse it."""
        words, of_nodes, parts = self.words["gpus"], self.words["nodes"], self._parts_of(nodes, per_node)
        if nodes * per_node < gpus and not holds(words, gpus):
            self.reading(f"{words!r} is what {of_nodes!r} are a part of")
        elif gpus in parts:
            self.reading(f"{words!r} is what {parts[gpus]}")
        elif not self._is_plain("gpus"):
            counted = f"{of_nodes!r} with {self.words['gpus_per_node']!r}"
            self.leave_unread(f"{words!r} was not read as the number of GPUs, which {counted} say")
        elif standing_of(self.text, of_nodes) < standing_of(self.text, words):
            self.reading(f"{words!r} is said of something else, and was not read as what there is")
        else:
            raise self.refusal(
                f"the GPU counts contradict each other: {words!r} says {gpus}, "
                f"but {nodes} x {per_node} = {nodes * per_node} ({of_nodes!r})"
            )
        self.drop("gpus")

    def _parts_of(self, nodes: int, per_node: int) -> dict[int, str]:
        """GPU counts that state a part of all GPUs, with that part in words: a node's, or those not reserved."""
        reserved = [c for c in self.values.get("constraints", ()) if c.kind in ("reserved_gpus", "reserved_nodes")]
        reserved_gpus = sum(c.value * (per_node if c.kind == "reserved_nodes" else 1) for c in reserved)
        return {nodes * per_node - reserved_gpus: "is left of them", per_node: "each node has"}


def _is_of_all_work(name: str, value: Any, words: str) -> bool:
    """Whether a length is beyond all lengths: tokens of a whole run ("864 million tokens in 48 hours")."""
    is_beyond = isinstance(value, int | float) and value > bounds.TOKENS.most
    return name in ("input_tokens", "output_tokens") and is_beyond and _MANY.search(words) is not None


def _typed(name: str, value: Any) -> Any:
    """The value of a field as the type that the field has."""
    if name in _RANGES:
        return tuple(_typed(_RANGES[name], end) for end in value)
    figure = _FIGURES.get(name)
    return value if figure is None else int(value) if figure.whole else float(value)


def _bare(value: Any) -> Any:
    """A value without the fields that nobody stated."""
    return value.model_dump(exclude_none=True, exclude_defaults=True) if isinstance(value, BaseModel) else value


def label(name: str) -> str:
    """A field of `Said` in words."""
    if name.startswith("strategy."):
        _, phase, degree = name.split(".")
        return f"{degree} of {'prefill and decode' if phase == 'both' else phase}"
    return _FIGURES[name].label if name in _FIGURES else name.replace("_", " ")


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value)
