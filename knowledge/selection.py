"""Which sections a proposer gets for a request, within a token budget, and why each of them.

The order is fixed: the core, which is the same for every request (a prefix that a service can cache); then the
sections whose conditions hold; then those that broken rules call for. Where the budget does not do, broken rules go
before conditions, and what was left out is named. Nothing is random and nothing depends on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..tools.errors import InputError
from .index import KnowledgeBase
from .search import SearchIndex, search_index
from .section import CORE, REFERENCE, Section
from .situation import Situation
from .tokens import estimate_tokens

DEFAULT_BUDGET_TOKENS = 16_000
# Of the sections from which one broken rule follows, at most this many: those that say most of it.
SECTIONS_PER_RULE = 2


@dataclass(frozen=True, slots=True)
class Chosen:
    """A section and the reason why it was chosen (or would have been, had the budget done)."""

    section: Section
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen sections in reading order, what the budget left out, and the tokens of `text`."""

    chosen: tuple[Chosen, ...]
    left_out: tuple[Chosen, ...]
    core_tokens: int
    tokens: int
    budget_tokens: int

    @property
    def core_text(self) -> str:
        """The part of `text` that is the same for every request; `text` begins with it."""
        return _joined(one.section for one in self.chosen if one.section.is_core)

    @property
    def text(self) -> str:
        """What the proposer reads."""
        return _joined(one.section for one in self.chosen)

    @property
    def citations(self) -> tuple[str, ...]:
        """Every chosen section as file § heading."""
        return tuple(one.section.citation for one in self.chosen)


def rendered(section: Section) -> str:
    """A section as a proposer reads it: the passage, and the ids by which violations name what it says."""
    return f"{section.text}\n\nRules: {', '.join(section.rules)}" if section.rules else section.text


def _joined(sections: Iterable[Section]) -> str:
    return "".join(f"{rendered(section)}\n\n" for section in sections)


def _cost_tokens(section: Section) -> int:
    # The estimate is a sum over pieces and a line break ends a piece, so that costs of sections add up.
    return estimate_tokens(f"{rendered(section)}\n\n")


def reason_of(section: Section, situation: Situation) -> str | None:
    """Why the situation calls for the section, or `None` where it does not."""
    if section.is_core:
        return CORE
    holding = set(situation.holding())
    for condition in section.when:
        parts = condition.split("+")
        if condition != REFERENCE and holding.issuperset(parts):
            return f"because {' and '.join(parts)} {'holds' if len(parts) == 1 else 'hold'}"
    return None


def _called_for_by_rules(index: SearchIndex, rules: Iterable[str]) -> dict[str, list[str]]:
    """Section id → the broken rules that call for it, in the order in which these were given."""
    found: dict[str, list[str]] = {}
    for rule in dict.fromkeys(rules):
        for section in index.teaching(rule)[:SECTIONS_PER_RULE]:
            found.setdefault(section.id, []).append(rule)
    return found


def _wanted(base: KnowledgeBase, situation: Situation, by_rule: dict[str, list[str]]) -> Iterator[Chosen]:
    """Core, then by conditions, then by rules alone; each in reading order but rules in the order of the offences."""
    alone: list[Section] = []
    rest: list[Chosen] = []
    for section in base.sections:
        reason = reason_of(section, situation)
        if reason is None:
            alone += [section] if section.id in by_rule else []
        elif reason == CORE:
            yield Chosen(section, _with_rules(reason, by_rule.get(section.id)))
        else:
            rest.append(Chosen(section, _with_rules(reason, by_rule.get(section.id))))
    yield from rest
    order = list(by_rule)
    for section in sorted(alone, key=lambda one: order.index(one.id)):
        yield Chosen(section, _broken(by_rule[section.id]))


def _broken(rules: list[str]) -> str:
    return f"rule {rules[0]} was broken" if len(rules) == 1 else f"rules {', '.join(rules)} were broken"


def _with_rules(reason: str, rules: list[str] | None) -> str:
    return reason if rules is None else f"{reason}; {_broken(rules)}"


def select(
    situation: Situation,
    budget_tokens: int = DEFAULT_BUDGET_TOKENS,
    rules: Iterable[str] = (),
    index: SearchIndex | None = None,
) -> Selection:
    """The sections for a request in `situation` whose last proposal broke `rules`.

    Raises:
        InputError: the budget is less than the core, which nothing can be proposed without; a rule does not exist.
    """
    index = index or search_index()
    by_rule = _called_for_by_rules(index, rules)
    wanted = list(_wanted(index.base, situation, by_rule))
    core_tokens = sum(_cost_tokens(one.section) for one in wanted if one.section.is_core)
    if core_tokens > budget_tokens:
        raise InputError(f"a budget of {budget_tokens:,} tokens is less than the core of {core_tokens:,}; raise it")
    left_tokens = budget_tokens - core_tokens
    taken = {one.section.id for one in wanted if one.section.is_core}
    # What a broken rule calls for matters more than what might matter.
    for one in sorted(wanted, key=lambda one: one.section.id not in by_rule):
        cost_tokens = _cost_tokens(one.section)
        if one.section.id not in taken and cost_tokens <= left_tokens:
            taken.add(one.section.id)
            left_tokens -= cost_tokens
    return Selection(
        chosen=tuple(one for one in wanted if one.section.id in taken),
        left_out=tuple(one for one in wanted if one.section.id not in taken),
        core_tokens=core_tokens,
        tokens=budget_tokens - left_tokens,
        budget_tokens=budget_tokens,
    )
