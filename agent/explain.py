"""`explain`: the passage of the knowledge base that answers a topic, a rule or a question, with its citation.

It needs no language model: a rule's id or a section's id is looked up, everything else is searched. What the base does
not speak of gets no answer, only the nearest headings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from ..knowledge.index import knowledge
from ..knowledge.search import MAX_QUESTION_CHARACTERS, search_index, search_sections
from ..knowledge.section import Section
from ..tools.errors import InputError
from ..tools.frozen import Frozen, Sparse
from ..tools.input.arguments import checks_arguments
from ..tools.input.strict_values import check_text

if TYPE_CHECKING:
    from ..tools.rules.base import Example

MAX_ANSWERS = 50
# The id of a rule, alone or with words that only ask for it ("rule PP003", "explain pp003?").
_RULE = re.compile(r"(?:(?:explain|rule|what is|规则|解释)\s*)*([a-z]{2})[-_ ]?([0-9]{3})\s*[?？。.]?", re.IGNORECASE)


class Passage(Sparse):
    """A section that answers: where it stands, what it says, which rules follow from it, what it rests on."""

    citation: str
    section: str
    title: str
    text: str
    rules: tuple[str, ...]
    sources: tuple[str, ...]


class RuleExample(Frozen):
    """A base plan and the edits that make the example out of it."""

    base: str
    edits: tuple[str, ...]


class RulePage(Frozen):
    """A rule in short; `shardwright rules ID` draws its examples."""

    id: str
    name: str
    severity: str
    requirement: str
    rationale: str
    fix: str
    remedy: str
    source: str
    bad: RuleExample
    good: RuleExample


class Explanation(Sparse):
    """The answer to a question: the rule, where one was asked for, and the passages, best first.

    Where there is no answer, `nearest` cites what comes closest.
    """

    question: str
    rule: RulePage | None = None
    answers: tuple[Passage, ...]
    nearest: tuple[str, ...] = ()

    @property
    def exit_status(self) -> Literal[0, 1]:
        """0: answered; 1: the knowledge base does not speak of it."""
        return 0 if self.answers or self.rule is not None else 1


@checks_arguments
def explain(question: str, limit: int = 1) -> Explanation:
    """The passage of the knowledge base that answers a topic, a rule's id or a question, with its citation.

    Args:
        question: In English or Chinese.
        limit: At most so many passages.

    Returns:
        The passages, best first; where there is none `nearest` cites what comes closest.

    Raises:
        InputError: The question is empty or too long, or the limit is none that can be.

    Example:
        >>> import shardwright
        >>> shardwright.explain("PP003").rule.id
        'PP003'
    """
    asked = check_text(question, "the question").strip()
    if not asked:
        raise InputError("nothing was asked: give a topic, the id of a rule or a question")
    if len(asked) > MAX_QUESTION_CHARACTERS:
        raise InputError(f"the question is longer than {MAX_QUESTION_CHARACTERS:,} characters; ask in fewer words")
    if not 1 <= limit <= MAX_ANSWERS:
        raise InputError(f"limit: from 1 to {MAX_ANSWERS} answers can be asked for")
    rule_id = _rule_asked_for(asked)
    if rule_id is not None:
        return _rule_explained(asked, rule_id, limit)
    if knowledge().has(asked.lower()):
        return Explanation(question=asked, answers=(_passage(knowledge().section(asked.lower())),))
    results = search_sections(asked, limit)
    return Explanation(
        question=asked,
        answers=tuple(_passage(hit.section) for hit in results.hits),
        nearest=tuple(section.citation for section in results.nearest),
    )


def _rule_asked_for(question: str) -> str | None:
    """The id of the rule that is asked for; `None` if it is no rule ("GB200" is an accelerator)."""
    match = _RULE.fullmatch(question)
    if match is None:
        return None
    # The rules load what a plan is made of; most questions need none of it.
    from ..tools.rules.registry import FAMILIES

    family = match[1].upper()
    return f"{family}{match[2]}" if family in FAMILIES else None


def _rule_explained(question: str, rule_id: str, limit: int) -> Explanation:
    from ..tools.rules.registry import find_rule
    from .facts import rule_facts

    rule = find_rule(rule_id)
    facts = rule_facts(rule).model_dump(include=RulePage.model_fields.keys() - {"bad", "good"})
    page = RulePage(**facts, bad=_example(rule.bad), good=_example(rule.good))
    teaching = search_index().teaching(rule_id)[:limit]
    return Explanation(question=question, rule=page, answers=tuple(_passage(section) for section in teaching))


def _example(example: Example) -> RuleExample:
    from .report.edits import edit_facts, edit_text

    return RuleExample(base=example.base, edits=tuple(edit_text(edit_facts(edit)) for edit in example.edits))


def _passage(section: Section) -> Passage:
    return Passage(
        citation=section.citation,
        section=section.id,
        title=section.title,
        text=section.text.partition("\n")[2].strip(),
        rules=section.rules,
        sources=section.sources,
    )
