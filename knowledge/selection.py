"""Which sections a proposer gets for a request, within a token budget, and why each of them.

The order is fixed: the core, which is the same for every request (a prefix that a service can cache); then the
sections whose conditions hold; then those for broken rules. If the budget is short, broken rules come before
conditions, and conditions take turns, so that each has some; sections left out are named. The result depends on no
clock and no chance.
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
# The most sections for one broken rule: those that say most of it.
SECTIONS_PER_RULE = 2
# How many sections a condition gets per round: legality of a document before quality of service.
_PER_ROUND = {
    **dict.fromkeys(("moe", "dense"), 6),
    **dict.fromkeys(("relaxations", "disaggregated", "mla", "sliding-window", "linear-attention"), 3),
    **dict.fromkeys(("latency", "throughput", "cost", "tight-memory", "long-context"), 2),
}


class Chosen(Struct, frozen=True):
    """A section and the reason why it was chosen (or would be with a larger budget)."""

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
        return _joined(choice.section for choice in self.chosen if choice.section.is_core)

    @property
    def text(self) -> str:
        """What the proposer reads."""
        return _joined(choice.section for choice in self.chosen)

    @property
    def citations(self) -> tuple[str, ...]:
        """Every chosen section as file § heading."""
        return tuple(choice.section.citation for choice in self.chosen)


def rendered(section: Section) -> str:
    """A section as a proposer reads it: the passage, and the ids of its rules, as violations name them."""
    return f"{section.text}\n\nRules: {', '.join(section.rules)}" if section.rules else section.text


def _joined(sections: Iterable[Section]) -> str:
    return "".join(f"{rendered(section)}\n\n" for section in sections)


def _cost_tokens(section: Section) -> int:
    # The estimate is a sum over pieces and a line break ends a piece, so costs of sections add up.
    return estimate_tokens(f"{rendered(section)}\n\n")


def reason_of(section: Section, situation: Situation) -> str | None:
    """Why the situation includes the section; `None` if it does not."""
    if section.is_core:
        return CORE
    for parts in _holding_conditions(section, situation):
        return f"because {' and '.join(parts)} {'holds' if len(parts) == 1 else 'hold'}"
    return None


def _holding_conditions(section: Section, situation: Situation) -> list[list[str]]:
    """The conditions of the section that hold, each as its parts."""
    holding = set(situation.holding())
    each = [condition.split("+") for condition in section.when if condition != REFERENCE]
    return [parts for parts in each if holding.issuperset(parts)]


def _rounds(wanted: Sequence[Chosen], situation: Situation) -> dict[str, float]:
    """Section id → the round of its turn; every condition has sections in each round, in their order."""
    turns: dict[str, float] = {}
    counts: dict[str, int] = {}
    for choice in wanted:
        for parts in _holding_conditions(choice.section, situation):
            condition = "+".join(parts)
            place = counts[condition] = counts.get(condition, -1) + 1
            turn = place / max(_PER_ROUND.get(part, 1) for part in parts)
            turns[choice.section.id] = min(turn, turns.get(choice.section.id, turn))
    return turns


def _called_for_by_rules(index: SearchIndex, rules: Iterable[str]) -> dict[str, list[str]]:
    """Section id → the broken rules that need it, in the order given."""
    rules_by_section: dict[str, list[str]] = {}
    for rule in dict.fromkeys(rules):
        for section in index.teaching(rule)[:SECTIONS_PER_RULE]:
            rules_by_section.setdefault(section.id, []).append(rule)
    return rules_by_section


def _wanted(base: KnowledgeBase, situation: Situation, by_rule: dict[str, list[str]]) -> Iterator[Chosen]:
    """Core, then by conditions, then by rules alone; each in reading order, but by rules in the order of violations."""
    by_rule_alone: list[Section] = []
    by_condition: list[Chosen] = []
    for section in base.sections:
        reason = reason_of(section, situation)
        if reason is None:
            by_rule_alone += [section] if section.id in by_rule else []
        elif reason == CORE:
            yield Chosen(section, _with_rules(reason, by_rule.get(section.id)))
        else:
            by_condition.append(Chosen(section, _with_rules(reason, by_rule.get(section.id))))
    yield from by_condition
    order = list(by_rule)
    for section in sorted(by_rule_alone, key=lambda section: order.index(section.id)):
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
        InputError: the budget is less than the core, which every proposal needs; a rule does not exist.
    """
    index = index or search_index()
    by_rule = _called_for_by_rules(index, rules)
    wanted = list(_wanted(index.base, situation, by_rule))
    core_tokens = sum(_cost_tokens(choice.section) for choice in wanted if choice.section.is_core)
    if core_tokens > budget_tokens:
        raise InputError(f"a budget of {budget_tokens:,} tokens is less than the core of {core_tokens:,}; raise it")
    remaining_tokens = budget_tokens - core_tokens
    chosen_ids = {choice.section.id for choice in wanted if choice.section.is_core}
    # A section for a broken rule matters more than one that may matter.
    turns = _rounds([choice for choice in wanted if not choice.section.is_core], situation)
    for choice in sorted(
        wanted, key=lambda choice: (choice.section.id not in by_rule, turns.get(choice.section.id, 0))
    ):
        cost_tokens = _cost_tokens(choice.section)
        if choice.section.id not in chosen_ids and cost_tokens <= remaining_tokens:
            chosen_ids.add(choice.section.id)
            remaining_tokens -= cost_tokens
    return Selection(
        chosen=tuple(choice for choice in wanted if choice.section.id in chosen_ids),
        left_out=tuple(choice for choice in wanted if choice.section.id not in chosen_ids),
        core_tokens=core_tokens,
        tokens=budget_tokens - remaining_tokens,
        budget_tokens=budget_tokens,
    )
