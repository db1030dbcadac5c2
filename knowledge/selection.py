"""Which sections a proposer gets for a request, within a token budget, and why each of them.

The order is fixed: the core, which is the same for every request (a prefix that a service can cache); then the
sections whose conditions hold; then those that broken rules call for. Where the budget does not do, broken rules go
before conditions, and conditions take turns, so that none of them goes without; what was left out is named. Nothing is
random and nothing depends on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..tools.errors import InputError
from .index import KnowledgeBase
from .search import SearchIndex, search_index
from .section import CORE, REFERENCE, Section
from .situation import Situation
from .tokens import estimate_tokens

DEFAULT_BUDGET_TOKENS = 5_300
# Of the sections from which one broken rule follows, at most this many: those that say most of it.
SECTIONS_PER_RULE = 2
# How many sections a condition gets in a round: what makes a document legal before what makes it serve well.
_PER_ROUND = {
    **dict.fromkeys(("moe", "dense"), 6),
    **dict.fromkeys(("relaxations", "disaggregated", "mla", "sliding-window", "linear-attention"), 3),
    **dict.fromkeys(("latency", "throughput", "cost", "tight-memory", "long-context"), 2),
}


class Chosen(Struct, frozen=True):
    """A section and the reason why it was chosen (or would have been, had the budget done)."""

    section: Section
    reason: str


class Selection(Struct, frozen=True):
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
    for parts in _met(section, situation):
        return f"because {' and '.join(parts)} {'holds' if len(parts) == 1 else 'hold'}"
    return None


def _met(section: Section, situation: Situation) -> list[list[str]]:
    """The conditions of the section that hold, each as its parts."""
    holding = set(situation.holding())
    each = [condition.split("+") for condition in section.when if condition != REFERENCE]
    return [parts for parts in each if holding.issuperset(parts)]


def _rounds(wanted: Sequence[Chosen], situation: Situation) -> dict[str, float]:
    """Section id → the round in which its turn comes; every condition has sections in each round, in their order."""
    turns: dict[str, float] = {}
    taken: dict[str, int] = {}
    for one in wanted:
        for parts in _met(one.section, situation):
            condition = "+".join(parts)
            place = taken[condition] = taken.get(condition, -1) + 1
            turn = place / max(_PER_ROUND.get(part, 1) for part in parts)
            turns[one.section.id] = min(turn, turns.get(one.section.id, turn))
    return turns


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
    turns = _rounds([one for one in wanted if not one.section.is_core], situation)
    for one in sorted(wanted, key=lambda one: (one.section.id not in by_rule, turns.get(one.section.id, 0))):
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
