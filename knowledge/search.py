"""Finds the section that answers a question, in English, in Chinese, or in both; no language model, no network.

SQLite's FTS5 holds the sections in memory: it stems English words (Porter) and ranks by BM25 with a weight for each
column. Chinese is indexed by pairs of signs, and the glossary's concepts as words of their own, so that 张量并行,
"TP" and "tensor parallelism" are equal. A word that no section has is read as the nearest that some section has. A
question that the sections do not cover gets no answer.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from math import log

from msgspec import Struct, field

from . import phrases
from .index import KnowledgeBase, knowledge
from .section import Section
from .words import (
    Atom,
    Reading,
    atoms,
    form_words,
    reading,
    reading_of,
    runs_of_atoms,
    says_nothing,
    special_concepts,
)

# The rest of a longer question is not read: its subject is clear by then.
MAX_QUESTION_CHARACTERS = 2_000
MAX_TERMS = 120
# Columns with their weights: where a word stands shows how much the section is about it. Columns count separately, so
# that a word in the title counts beside the same word in the passage.
_COLUMNS = {"title": 1.6, "keywords": 1.2, "asked": 1.5, "rules": 1.5, "topic": 0.7, "body": 1.0}
# A word inside a concept's form counts beside the concept; a respelled one counts less.
_COVERED, _RESPELLED, _PAIR = 0.4, 0.7, 0.5
# Rarity is flattened: in a small base a chance word is as rare as the word that matters.
_RARITY_POWER = 0.5
# A section about many rules says less of each.
_PER_RULE, _PER_RULE_TAUGHT = 0.02, 0.1
# Of two equal sections, one that opens its file, or that every proposer reads, ranks first.
_GENERAL = 1.15
# The likest wording adds this share of the best score: enough to decide between sections with the same words.
_WORDING = 0.3
# An unknown word weighs as much as a word of one section. The share of a question that an answer must hold, by the
# number of its concepts that only this field has: none if two show its subject, however long its story; most if it
# names no concept at all.
_LEAST_COVERAGE, _LEAST_WITHOUT_CONCEPT = (0.34, 0.2, 0.0), 0.6
_CUTOFF = 0.8
_LONGEST_WORD = 40
_CONCEPT = "qq"


def _query() -> str:
    """One BM25 for each column, added up."""
    parts: list[str] = []
    for place, weight in enumerate(_COLUMNS.values()):
        only = ", ".join("1.0" if column == place else "0.0" for column in range(len(_COLUMNS)))
        parts.append(f"- {weight} * bm25(sections, {only})")
    return f"SELECT rowid, {' '.join(parts)} FROM sections WHERE sections MATCH ?"


_QUERY = _query()


class Hit(Struct, frozen=True):
    """A section and its score; scores compare only within one question."""

    section: Section
    score: float


class Found(Struct, frozen=True):
    """The answers, best first; if none, the sections with the headings nearest to the question."""

    hits: tuple[Hit, ...]
    nearest: tuple[Section, ...] = ()


class Term(Struct, frozen=True):
    """A word, a pair of signs or a concept of a question, and its weight."""

    text: str
    weight: float
    is_pair: bool = False


class _Score(Struct):
    """How well a section answers: BM25 summed over terms, and the share of the question (by weight) that it holds."""

    total: float = 0.0
    matched: float = 0.0
    coverage: float = 0.0

    def of(self, section: Section, per_rule: float = _PER_RULE) -> float:
        """The score: holding much of the question is worth more than repeating one word of it."""
        prior = _GENERAL if section.is_core or section.is_first else 1.0
        return prior * self.total * self.coverage / (1 + per_rule * len(section.rules))


class _QuestionWeights(Struct, frozen=True):
    """The weight of the terms that some section holds, and of all; the share that an answer must hold."""

    known: float
    all: float
    least_coverage: float


class SearchIndex(Struct, frozen=True):
    """The sections of a base, ready to be searched."""

    base: KnowledgeBase
    connection: sqlite3.Connection
    vocabulary: frozenset[str]
    # Candidates for a misspelt word: the words of titles, keywords and the glossary.
    spellings: tuple[str, ...]
    # The one connection answers every thread, one statement at a time.
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def search(self, question: str, limit: int = 5) -> Found:
        """At most `limit` sections that answer `question`, best first."""
        scores, asked = self._scores(question)
        sections = self.base.sections
        asked_title = " ".join(question.lower().split())
        total = self._with_wording(question, {place: score.of(sections[place]) for place, score in scores.items()})
        ranked = sorted(total, key=lambda place: (sections[place].title.lower() != asked_title, -total[place], place))
        if not ranked or scores[ranked[0]].coverage * asked.known < asked.least_coverage * asked.all:
            return Found((), self._nearest(question, [sections[place] for place in ranked]))
        return Found(tuple(Hit(sections[place], total[place]) for place in ranked[:limit]))

    def _with_wording(self, question: str, scores: dict[int, float]) -> dict[int, float]:
        """The scores, increased by a share of the best score for similar wording."""
        share = _WORDING * max(scores.values(), default=0.0)
        with self._turn:
            alike = phrases.likeness(self.connection, question[:MAX_QUESTION_CHARACTERS])
        return {place: score + share * alike.get(place, 0.0) for place, score in scores.items()}

    def teaching(self, rule_id: str) -> tuple[Section, ...]:
        """The sections that teach a rule, those that say most of it first.

        Raises:
            UnknownNameError: no such rule.
        """
        # Imported here: the rules load the plan's models, which a search does not need.
        from ..tools.rules.registry import find_rule

        rule = find_rule(rule_id)
        scores, _ = self._scores(f"{rule.name}; {rule.requirement}")
        matches = [(place, section) for place, section in enumerate(self.base.sections) if rule.id in section.rules]
        no_score = _Score()
        matches.sort(key=lambda match: (-scores.get(match[0], no_score).of(match[1], _PER_RULE_TAUGHT), match[0]))
        return tuple(section for _, section in matches)

    def _scores(self, question: str) -> tuple[dict[int, _Score], _QuestionWeights]:
        """The score of each section that holds any term of the question, and the weight of its terms."""
        scores: dict[int, _Score] = {}
        known = unknown = 0.0
        terms = self._terms(question[:MAX_QUESTION_CHARACTERS])
        for term in terms:
            rows = self._rows(term.text)
            weight = term.weight * self._rarity(len(rows))
            if not rows:
                # Sections are in English: that they lack a pair of Chinese signs means nothing.
                unknown += 0.0 if term.is_pair else weight
                continue
            known += weight
            for place, strength in rows:
                score = scores.setdefault(place, _Score())
                score.total += weight * strength
                score.matched += weight
        for score in scores.values():
            score.coverage = score.matched / known
        return scores, _QuestionWeights(known, known + unknown, _least_coverage(reading(question).concepts))

    def _rows(self, term: str) -> list[tuple[int, float]]:
        """Place of each section with `term`, and its strength: BM25 of its columns over the term's rarity."""
        quoted = '"' + term.replace('"', "") + '"'
        with self._turn:
            rows = self.connection.execute(_QUERY, (quoted,)).fetchall()
        # FTS5 gives a word of more than half of the sections almost no weight; "TP or PP?" has no other words.
        rarity = max(log((len(self.base.sections) - len(rows) + 0.5) / (len(rows) + 0.5)), 1e-6)
        return [(int(place), float(score) / rarity) for place, score in rows]

    def _rarity(self, count: int) -> float:
        sections = len(self.base.sections)
        count = max(1, count)
        return log(1 + (sections - count + 0.5) / (count + 0.5)) ** _RARITY_POWER

    def _terms(self, question: str) -> list[Term]:
        """The terms of the question, each once, with its weight."""
        read = atoms(question)
        respelled = {atom.text: self._respelled(atom) for atom in read}
        parsed: Reading = reading_of([atom._replace(text=respelled[atom.text]) for atom in read])
        changed = {new for old, new in respelled.items() if new != old}
        terms = {text: Term(text, 1.0) for text in (_token(concept) for concept in parsed.concepts)}
        for word in parsed.words:
            weight = _COVERED if word in parsed.covered else 1.0
            terms.setdefault(word, Term(word, weight * (_RESPELLED if word in changed else 1.0)))
        for pair in parsed.pairs:
            weight = _PAIR * (_COVERED if pair in parsed.covered else 1.0)
            terms.setdefault(pair, Term(pair, weight, is_pair=True))
        return list(terms.values())[:MAX_TERMS]

    def _respelled(self, atom: Atom) -> str:
        """The word, or the nearest known one if no section has it."""
        word = atom.text
        if atom.is_sign or not 4 <= len(word) <= _LONGEST_WORD or not word.isalpha():
            return word
        if word in self.vocabulary or says_nothing(word):
            return word
        # A first letter is seldom wrong; another first letter means another word.
        alike = [known for known in self.spellings if known[0] == word[0]]
        close = get_close_matches(word, alike, n=1, cutoff=_CUTOFF)
        return close[0] if close else word

    def _nearest(self, question: str, ranked: Sequence[Section]) -> tuple[Section, ...]:
        if ranked:
            return tuple(ranked[:3])
        titles = {section.title.lower(): section for section in self.base.sections}
        close = get_close_matches(question.lower()[:200], titles, n=3, cutoff=0.0)
        return tuple(titles[title] for title in close)


def _least_coverage(concepts: Sequence[str]) -> float:
    """The share of a question that an answer must hold, by weight."""
    if not concepts:
        return _LEAST_WITHOUT_CONCEPT
    return _LEAST_COVERAGE[min(special_concepts(concepts), len(_LEAST_COVERAGE) - 1)]


def _token(concept: str) -> str:
    """A concept as a word of the index; no English word begins like that."""
    return _CONCEPT + concept.replace("-", "")


def _column(text: str) -> str:
    """Text as indexed: its words, its pairs of signs and its concepts."""
    parsed = reading(text)
    return " ".join((*parsed.words, *parsed.pairs, *map(_token, parsed.concepts)))


def build_index(base: KnowledgeBase) -> SearchIndex:
    """The index of all sections of `base`."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    columns = ", ".join(_COLUMNS)
    connection.execute(f"CREATE VIRTUAL TABLE sections USING fts5({columns}, tokenize = 'porter unicode61')")
    titles = {document.file: document.title for document in base.documents}
    rows = ((place, *_fields(section, titles[section.file])) for place, section in enumerate(base.sections))
    marks = ", ".join("?" for _ in range(len(_COLUMNS) + 1))
    connection.executemany(f"INSERT INTO sections (rowid, {columns}) VALUES ({marks})", rows)
    wordings = [list(runs_of_atoms(_all_text(section))) for section in base.sections]
    phrases.create(connection, wordings)
    words = {word for runs in wordings for run in runs for word in run}
    telling = {atom.text for section in base.sections for atom in atoms(_telling_text(section)) if not atom.is_sign}
    spellings = sorted(word for word in telling | form_words() if not says_nothing(word))
    return SearchIndex(base, connection, frozenset(words), tuple(spellings))


def _passage(section: Section) -> str:
    """The passage without example documents, whose node ids answer no question."""
    parts = section.text.partition("\n")[2].split("```")
    return "".join(part for place, part in enumerate(parts) if place % 2 == 0 or not part.startswith("json"))


def _telling_text(section: Section) -> str:
    return " ".join((section.title, *section.keywords))


def _all_text(section: Section) -> str:
    """All text of a section, with breaks between its parts."""
    return " ; ".join((section.title, *section.keywords, *section.asked, _passage(section)))


def _fields(section: Section, file_title: str) -> Iterable[str]:
    return (
        _column(section.title),
        # The break keeps two keywords from forming a phrase.
        _column(" ; ".join(section.keywords)),
        _column(" ; ".join(section.asked)),
        " ".join(section.rules).lower(),
        _column(f"{file_title} ; {section.id.replace('.', ' ')}"),
        _column(_passage(section)),
    )


@cache
def search_index() -> SearchIndex:
    """The index of the knowledge base that ships with the package, built when it is first asked for."""
    return build_index(knowledge())


def search_sections(question: str, limit: int = 5) -> Found:
    """The at most `limit` sections that answer `question`, best first; none where the base does not speak of it."""
    return search_index().search(question, limit)
