"""What has been claimed so far, field by field: the place where contradictions and impossible figures are refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from pydantic import BaseModel

from ...input import bounds
from ...plan.latency_limits import LATENCY_FIELDS
from ..errors import RequestError
from ..said import Said, Understood
from .alternatives import CORRECTED
from .evidence import Grade, grade
from .figures import RANGES, impossible, label, plain, typed
from .statement_rank import standing, standing_of
from .turns import latest

# Figures that people say twice, rounded ("33 ms per token, so 30 tokens/s"; "4k (4000)").
_ROUNDED = frozenset({*LATENCY_FIELDS, "input_tokens", "output_tokens", "min_tokens_per_second"})
_ROUNDING = 0.05
_MANY = re.compile(r"million|billion|trillion|[万亿]", re.IGNORECASE)
# The largest gap between a statement and its correction, in characters.
_MOST_BETWEEN = 60
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
        reason = impossible(name, value, words)
        if grade(name, value, words) is Grade.THIN or (reason is not None and _is_of_all_work(name, value, words)):
            self.leave_unread(f"{words!r} is hardly the {label(name)}, and was not understood")
            return
        if reason is not None:
            raise self.refusal(reason, name.partition(".")[0])
        value = typed(name, value)
        if name in self.values and name in _ROUNDED and abs(self.values[name] - value) <= _ROUNDING * value:
            if self.values[name] != value:
                is_later = grade(name, value, words) > grade(name, self.values[name], self.words[name])
                kept, again = self._better(name, value, words, is_later=is_later)
                self.reading(f"{again!r} read as {kept!r} said again, rounded")
            return
        if name in self.values and self.values[name] != value:
            settles = (self._takes_place, self._gives_way, self._is_outdone)
            if any(settled(name, value, words) for settled in settles):
                return
            raise self.refusal(
                f"{label(name)} is stated twice: {plain(self.values[name])} in {self.words[name]!r} "
                f"and {plain(value)} in {words!r}; keep one",
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

    def is_plain(self, name: str) -> bool:
        """Whether what was claimed for a field was said plainly."""
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
        if (reason := impossible("degree", value, words)) is not None:
            raise self.refusal(reason)
        return int(value)

    def said(self) -> Said:
        """All claims as one frozen value, after the checks that need more than one field."""
        for ranged, single in RANGES.items():
            self._check_range(ranged, single)
        return Said(
            **self.values,
            words=self.words,
            assumed={name: note for name, note in self.assumed.items() if name in self.values},
            unread=tuple(self.unread),
            readings=tuple(self.readings),
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


def _is_of_all_work(name: str, value: Any, words: str) -> bool:
    """Whether a length is beyond all lengths: tokens of a whole run ("864 million tokens in 48 hours")."""
    is_beyond = isinstance(value, int | float) and value > bounds.TOKENS.most
    return name in ("input_tokens", "output_tokens") and is_beyond and _MANY.search(words) is not None


def _bare(value: Any) -> Any:
    """A value without the fields that nobody stated."""
    return value.model_dump(exclude_none=True, exclude_defaults=True) if isinstance(value, BaseModel) else value
