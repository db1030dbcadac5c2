"""Text as the search reads it: English words, Chinese signs by pairs, and the concepts that a phrase names.

Everything is compared in one form: compatibility characters folded, lower case, hyphens, underscores and the joints of
`CamelCase` as blanks. A concept matches by the longest of its surface forms (`glossary.yaml`), in either language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

from msgspec import Struct

from .reader import KnowledgeError

_FOLDER = Path(__file__).resolve().parent

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\u3040-\u30ff\uac00-\ud7af"
_ATOM = re.compile(rf"(?P<word>[a-z0-9]+)|(?P<sign>[{_CJK}])|(?P<break>[^\sa-z0-9{_CJK}_/-])")
# "327,680" and "327_680" are equal.
_THOUSANDS = re.compile(r"(?<=[0-9])[,_](?=[0-9]{3}(?![0-9]))")
_DASH = re.compile("[\u2010-\u2015\u2212]")
# The joints of "AllReduceNode"; "vLLM" and "SGLang" have none.
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
# "TP8", "tp=8": the degree is a word of its own; "tp008" is a rule.
_DEGREE = re.compile(r"\b(tp|pp|ep|dp|sp|cp)(?=[1-9][0-9]{0,3}\b)")


class Atom(NamedTuple):
    """A word or one Chinese, Japanese or Korean sign; `joined`: only blanks lie before it."""

    text: str
    is_sign: bool
    joined: bool


class Reading(Struct, frozen=True):
    """The search terms of a text: its words, its pairs of signs, and its concepts, each as often as it occurs.

    `covered` are the words and pairs that lie inside a form of a concept.
    """

    words: tuple[str, ...]
    pairs: tuple[str, ...]
    concepts: tuple[str, ...]
    covered: frozenset[str]


def atoms(text: str) -> list[Atom]:
    """The words and signs of `text` in order."""
    folded = _THOUSANDS.sub("", _DASH.sub("-", unicodedata.normalize("NFKC", text)))
    folded = _DEGREE.sub(r"\1 ", _CAMEL.sub(" ", folded).lower())
    parts: list[Atom] = []
    joined = False
    for match in _ATOM.finditer(folded):
        if match.lastgroup == "break":
            joined = False
            continue
        parts.append(Atom(match[0], match.lastgroup == "sign", joined))
        joined = True
    return parts


def runs_of_atoms(text: str) -> Iterator[list[str]]:
    """Runs of adjacent words and signs of `text`, separated by blanks only."""
    run: list[str] = []
    for atom in atoms(text):
        if not atom.joined and run:
            yield run
            run = []
        run.append(atom.text)
    if run:
        yield run


def singular(word: str) -> str:
    """`word` without a plural "s"; the search engine stems further."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _yaml(name: str) -> dict[str, list[str]]:
    """The data file `name`: lists of words by name."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return cast("dict[str, list[str]]", yaml.load((_FOLDER / name).read_text(encoding="utf-8"), Loader=loader))


@cache
def _stop_words() -> tuple[frozenset[str], re.Pattern[str]]:
    """Stop words, in English and in Chinese, the longest first."""
    words = _yaml("stop_words.yaml")
    chinese = sorted(words["chinese"], key=len, reverse=True)
    return frozenset(words["english"]), re.compile("|".join(map(re.escape, chinese)))


@cache
def _everyday() -> frozenset[str]:
    return frozenset(_yaml("stop_words.yaml")["everyday"])


def special_concepts(concepts: Sequence[str]) -> int:
    """How many of the concepts are specific to this field: "TPOT" is, "price" is not."""
    return len(frozenset(concepts) - _everyday())


@cache
def glossary() -> dict[str, tuple[str, ...]]:
    """Concept → its surface forms.

    Raises:
        KnowledgeError: a form is empty or belongs to two concepts.
    """
    owners: dict[tuple[str, ...], str] = {}
    concepts = {concept: tuple(map(str, forms)) for concept, forms in _yaml("glossary.yaml").items()}
    for concept, forms in concepts.items():
        for form in forms:
            other = owners.setdefault(_key(form), concept)
            if other != concept or not _key(form):
                raise KnowledgeError(f"glossary.yaml: {form!r} stands for {other} and for {concept}")
    return concepts


def _key(form: str) -> tuple[str, ...]:
    return tuple(singular(atom.text) for atom in atoms(form))


@cache
def _forms() -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
    """First atom → the forms that begin with it and their concepts, longest first."""
    by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for concept, forms in glossary().items():
        for key in {_key(form) for form in forms}:
            by_first.setdefault(key[0], []).append((key, concept))
    return {first: tuple(sorted(forms, key=lambda form: (-len(form[0]), form))) for first, forms in by_first.items()}


def form_words() -> frozenset[str]:
    """Every English word in the surface forms."""
    return frozenset(atom.text for forms in glossary().values() for form in forms for atom in atoms(form))


def _concept_spans(read: Sequence[Atom]) -> Iterator[tuple[int, int, str]]:
    """Start, end and concept of each longest form, left to right; none overlaps another."""
    keys = [singular(atom.text) for atom in read]
    place = 0
    while place < len(read):
        end = place + 1
        for form, concept in _forms().get(keys[place], ()):
            stop = place + len(form)
            if tuple(keys[place:stop]) == form and all(atom.joined for atom in read[place + 1 : stop]):
                yield place, stop, concept
                end = stop
                break
        place = end


def _runs(read: Sequence[Atom]) -> Iterator[str]:
    """Runs of signs, cut at stop words."""
    run = ""
    for atom in (*read, Atom("", False, False)):
        if atom.is_sign and (atom.joined or not run):
            run += atom.text
            continue
        if run:
            yield from _without_stop_signs(run)
        run = atom.text if atom.is_sign else ""


def _without_stop_signs(run: str) -> list[str]:
    return _stop_words()[1].sub(" ", run).split()


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[place : place + 2] for place in range(len(run) - 1)]


def reading(text: str) -> Reading:
    """The search terms of `text`; time is linear in its length."""
    return reading_of(atoms(text))


def reading_of(read: Sequence[Atom]) -> Reading:
    """The search terms of atoms that were read (and perhaps respelled) before."""
    concepts: list[str] = []
    inside: set[str] = set()
    for start, end, concept in _concept_spans(read):
        concepts.append(concept)
        span = read[start:end]
        inside.update(atom.text for atom in span if not atom.is_sign)
        inside.update(pair for run in _runs(span) for pair in _pairs(run))
    words = tuple(atom.text for atom in read if not atom.is_sign and not says_nothing(atom.text))
    pairs = tuple(pair for run in _runs(read) for pair in _pairs(run))
    return Reading(words, pairs, tuple(concepts), frozenset(inside))


def says_nothing(word: str) -> bool:
    """Whether an English word is a stop word."""
    return word in _stop_words()[0] or (len(word) == 1 and not word.isdecimal())
