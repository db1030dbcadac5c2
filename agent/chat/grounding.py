"""What a model's words rest on: what the person said in this session and what tools answered; nothing else is believed.

Figures may be put together as a reading of a request may (`reading/derived.py`); whoever pretends to give orders in a
text of the person is no source (`reading/trusted.py`). A figure of the model counts once the person has agreed to the
question that named it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from ...tools.catalog import hardware, model_mentions
from ...tools.engines.names import known_engine
from ...tools.errors import InputError
from ...tools.language.patterns.quantities import Quantity, find_quantities
from ...tools.language.request import read_words
from ...tools.language.said import Said
from ...tools.language.writing.normal_form import normalise
from ..reading.derived import derived, has_number
from ..reading.spelled import is_spelled, names_parallel
from ..reading.trusted import Trusted
from .edit_words import FACTORS_SAID
from .session import Event

_DEGREE = re.compile(r"(?<![A-Za-z])(?P<name>tp|pp|ep|sp|dp)[\s_\-=]{0,2}(?P<value>\d{1,6})(?![\d.])", re.IGNORECASE)
_FORMAT = re.compile(r"(?<![A-Za-z0-9])(?:(?:nv|mx)?fp\d{1,2}|bf16|int\d)(?![A-Za-z0-9])", re.IGNORECASE)
_STATISTIC = re.compile(r"(?<![A-Za-z0-9])p\d\d(?![A-Za-z0-9])", re.IGNORECASE)
_TIMES = re.compile(r"\s?(?:x|times|倍)(?![A-Za-z])", re.IGNORECASE)
_SENTENCE = re.compile(r"[^!?。！？\n]*?(?:[!?。！？\n]|\.(?=\s)|$)")
_ASSENT = re.compile(
    r"(?<![a-z])(?:yes|yep|yeah|ok(?:ay)?|sure|right|agreed|fine|please|go\sahead|do|first|second|former|latter|both)(?![a-z])"
    r"|好|可以|行|是的|对|没问题|同意|就这|第[一二]",
    re.IGNORECASE,
)
_DISSENT = re.compile(r"(?<![a-z])(?:no|not|don'?t|never|neither|instead)(?![a-z])|不|别|没有", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{4,}|[\u4e00-\u9fff]{2}")
# The field by whose derivations a figure of a unit may follow from words; other figures must stand in them as they are.
_FIELD_OF = {
    **dict.fromkeys(("count", "gpus", "nodes", "requests", "tokens"), "concurrency"),
    **dict.fromkeys(("requests/s", "requests/s/user"), "request_rate"),
    "share": "prefix_cache_hit_rate",
}
# What a time may measure; a figure of one is not a figure of another.
_TIMED = {
    "TTFT": re.compile(r"ttft|first[\s\-]token|首\s?(?:个\s?)?(?:token|字)", re.IGNORECASE),
    "TPOT": re.compile(
        r"tpot|(?<![a-z])itl(?![a-z])|(?:per|each|output)[\s\-]token|每\s?(?:个\s?)?token", re.IGNORECASE
    ),
    "end to end": re.compile(r"end[\s\-]to[\s\-]end|端到端", re.IGNORECASE),
}
_BREAK = re.compile(r"[\n;!?。！？]|\.\s")
_Source = Literal["model", "person", "tools"]
_SPEEDS = ("tokens/s", "tokens/s/user")
_EXACT, _ROUNDED = 0.006, 0.02
_MOST_NAMED = 6


class Heard(Struct, frozen=True):
    """Texts of the person, with the questions that they agreed to, and texts of tools."""

    person: tuple[str, ...]
    tools: tuple[str, ...]

    @classmethod
    def of(cls, events: Iterable[Event], answers: Sequence[str] = ()) -> Heard:
        """What was said in a session; `answers` are those of tools in this turn that were not shown."""
        person, tools, asked, spoken = list[str](), list(answers), "", ""
        for event in events:
            text = str(event.data.get("text", ""))
            if event.kind == "turn":
                asked, spoken = (asked_in(spoken) or asked) if text.startswith("/") else asked_in(spoken), ""
                if asked and agrees(text, asked):
                    person.append(asked)
                person += [text, *(words for statement in event.data.get("said", ()) for words in _stated(statement))]
            elif event.kind == "shown" and event.data.get("by") == "model":
                spoken += text
            elif event.kind == "shown" and "by" not in event.data:
                tools.append(text)
        return cls(tuple(filter(None, map(_obeyed, person))), tuple(tools))

    def unsaid(self, words: str) -> str | None:
        """The first figure or name in the words of a call that nobody said; `None` if each was said."""
        return next((text for text, is_said in self._parts(words) if not is_said), None)

    def unchecked(self, words: str) -> tuple[str, ...]:
        """Figures in a model's statements that nobody said; what it asks for is no statement."""
        plain = normalise(statements(words))
        unheard = [
            figure.words
            for figure, of in _figures(plain, "model")
            if (figure.unit != "count" or _TIMES.match(plain, figure.end)) and not self._has(figure, of, is_claim=True)
        ]
        unheard += [match.group() for match in _DEGREE.finditer(plain) if not self._has_degree(match)]
        return tuple(dict.fromkeys(unheard))[:_MOST_NAMED]

    def _parts(self, words: str) -> Iterator[tuple[str, bool]]:
        """Each figure and name of `words`, and whether it was said."""
        plain, texts = normalise(words), (*self.person, *self.tools)
        named = [(name.start, name.end) for name in (*hardware.mentions(plain), *model_mentions.mentions(plain))]
        for figure, of in _figures(plain, "model"):
            if not any(start <= figure.start and figure.end <= end for start, end in named):
                yield " ".join((*sorted(of), figure.words)), self._has(figure, of)
        for match in _DEGREE.finditer(plain):
            yield match.group(), self._has_degree(match)
        for match in _FORMAT.finditer(plain):
            yield match.group(), any(is_spelled("weights", match.group().lower(), text, Said()) for text in texts)
        for match in _STATISTIC.finditer(plain):
            yield (
                match.group(),
                any(is_spelled("ttft_statistic", match.group().lower(), text, Said()) for text in texts),
            )
        known = {name for text in texts for name in _names(text)}
        yield from (
            (name, name in known or any(name.lower() in text.lower() for text in texts)) for name in _names(plain)
        )
        for factor, said_as in FACTORS_SAID.items():
            if (match := said_as.search(plain)) is not None:
                yield (
                    match.group(),
                    any(said_as.search(normalise(text)) or has_number(factor, text) for text in self.person),
                )
        for name in _relaxations(plain):
            parallel = "tp" if name == "tp_in_expert" else "sp" if name == "kv_sequence_decode" else name
            yield f"allowing {name}", any(names_parallel(parallel, text) for text in self.person)

    def _has(self, figure: Quantity, of: frozenset[str], *, is_claim: bool = False) -> bool:
        """Whether a figure was said, of the same thing if both name one.

        A claim may round it, and what tools print in tables has its unit elsewhere.
        """
        field, tolerance = _FIELD_OF.get(figure.unit), _ROUNDED if is_claim else _EXACT
        if field and any(derived(field, end, text) is not None for end in _ends(figure) for text in self.person):
            return True
        bare = is_claim or figure.unit == "count"
        heard = [known for text in self.person for known in _figures(text, "person")]
        heard += [known for text in self.tools for known in _figures(text, "tools") if bare or known[0].unit != "count"]
        return any(
            _is_same(figure, other, tolerance) and (not of or not other_of or of & other_of)
            for other, other_of in heard
        )

    def _has_degree(self, match: re.Match[str]) -> bool:
        name, value = match["name"].lower(), float(match["value"])
        said_as = re.compile(rf"(?<![A-Za-z]){name}[\s_\-=]{{0,2}}{match['value']}(?!\d)", re.IGNORECASE)
        return any(said_as.search(text) for text in (*self.person, *self.tools)) or any(
            has_number(value, text) and names_parallel(name, text) for text in self.person
        )


def asked_in(words: str) -> str:
    """The questions in a model's words, each with the sentence before it ("I would halve them. Shall I?"); or ""."""
    sentences = [sentence for match in _SENTENCE.finditer(words) if (sentence := match.group().strip())]
    asked = {at for at, sentence in enumerate(sentences) if sentence.endswith(("?", "？"))}
    return " ".join(sentence for at, sentence in enumerate(sentences) if at in asked or at + 1 in asked)


def statements(words: str) -> str:
    """A model's words without its questions."""
    sentences = (match.group() for match in _SENTENCE.finditer(words))
    return "".join(sentence for sentence in sentences if not sentence.endswith(("?", "？")))


def agrees(text: str, asked: str) -> bool:
    """Whether words take up a question, by assent or by a word of it ("raise it"), and do not turn it down."""
    taken = any(word in asked.lower() for word in _WORD.findall(text.lower()))
    return (taken or _ASSENT.search(text) is not None) and _DISSENT.search(text) is None


@lru_cache(maxsize=512)
def _obeyed(text: str) -> str:
    """A text of the person without the sentences that pretend to give orders to a model."""
    trusted = Trusted.of(text)
    remaining = trusted.text
    for sentence in trusted.set_aside:
        remaining = remaining.replace(sentence, " ")
    return remaining


def _stated(statement: dict[str, object]) -> tuple[str, ...]:
    """Words, names and figures that a brief or options stated, as words of the person."""
    return (" ; ".join(f"{name.replace('_', ' ')} {value}" for name, value in statement.items()),)


def _ends(figure: Quantity) -> tuple[float, ...]:
    ends = (figure.value, figure.decimal_value)
    return ends if figure.upper is None else (*ends, figure.upper)


def _is_same(figure: Quantity, other: Quantity, tolerance: float) -> bool:
    """Whether two figures are the same: in value, and in unit where both have one; a speed is a time for each token."""
    if (
        figure.unit == other.unit
        or "count" in (figure.unit, other.unit)
        or {figure.unit, other.unit} == {"ms", "ms/token"}
    ):
        return any(_close(a, b, tolerance) for a in _ends(figure) for b in _ends(other))
    speeds = [both for both in ((figure, other), (other, figure)) if both[0].unit in _SPEEDS and "ms" in both[1].unit]
    # A reciprocal is rounded: "33 ms" of 30 tokens/s.
    return any(fast.value and _close(slow.value, 1000 / fast.value, _ROUNDED) for fast, slow in speeds)


def _close(value: float, other: float, tolerance: float) -> bool:
    return abs(value - other) <= tolerance * max(abs(value), abs(other), 1e-9)


@lru_cache(maxsize=1024)
def _figures(text: str, by: _Source) -> tuple[tuple[Quantity, frozenset[str]], ...]:
    """The figures of a text; times come with what they may measure."""
    plain = normalise(text)
    quantities = find_quantities(plain)
    ends = (0, *(figure.end for figure in quantities))
    starts = (*(figure.start for figure in quantities[1:]), len(plain))
    return tuple(
        (figure, _times_of(plain, figure, before, after, by) if "ms" in figure.unit else frozenset[str]())
        for figure, before, after in zip(quantities, ends, starts, strict=False)
    )


def _times_of(plain: str, figure: Quantity, before: int, after: int, by: _Source) -> frozenset[str]:
    """What a time measures: in a line of a tool the name before it; in words the names up to the figures beside it.

    A person may write the name before or after the figure; both count.
    """
    breaks = [0, *(match.end() for match in _BREAK.finditer(plain, 0, figure.start))]
    stop = _BREAK.search(plain, figure.end)
    named = sorted((match.start(), name) for name, words in _TIMED.items() for match in words.finditer(plain))
    if by == "tools":
        return frozenset([name for at, name in named if breaks[-1] <= at < figure.start][-1:])
    first = frozenset(name for at, name in named if max(before, breaks[-1]) <= at < figure.start)
    last = frozenset(name for at, name in named if figure.end <= at < min(after, stop.start() if stop else after))
    return first | last if by == "person" or not first else first


@lru_cache(maxsize=512)
def _names(text: str) -> tuple[str, ...]:
    """Models, accelerators and engines that a text names, as the catalogues call them."""
    cards = (name.accelerator.id for name in hardware.mentions(text) if name.accelerator is not None)
    models = (name.words if name.entry is None else name.entry.name for name in model_mentions.mentions(text))
    engine = known_engine(text)
    return (*cards, *models, *(() if engine is None else (engine,)))


def _relaxations(plain: str) -> tuple[str, ...]:
    try:
        return tuple(read_words(plain).relaxations)
    except InputError:
        return ()
