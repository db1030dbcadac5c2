"""The reference page of all rules, written from the rule files alone; `./check` regenerates it.

What it says of relaxations is found by trying: the relaxed base plans without their permission, and what then fires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...knowledge.generated.markdown import plain, table
from ..citations import public_sources
from .edits import edit_facts, edit_text

if TYPE_CHECKING:
    from ...tools.rules.base import Example, Rule

FAMILY_TITLES = {
    "ST": "The document",
    "CO": "Combination and nesting",
    "DP": "Data parallelism",
    "PP": "Pipeline parallelism",
    "TP": "Tensor parallelism",
    "EP": "Expert parallelism",
    "SP": "Sequence parallelism",
    "PH": "Phases",
    "DE": "Decode and communication",
    "GP": "GPUs",
    "ME": "Memory",
    "PE": "Performance",
    "EN": "Serving engines",
}
_FIXES = {
    "local": "mended in the graph, the strategy kept",
    "re-plan": "needs another strategy, as near as can be",
    "report": "cannot be mended by itself: the finding says why",
    "none": "nothing is changed by itself",
}
_HEAD = """# The rules

Generated from `tools/rules/` by `./check --write`; change the rule's file, not this page.

Every plan must keep every rule; an *error* makes it invalid, a *warning* does not. `shardwright rules ID` shows one
rule with its examples drawn. An example is a valid base plan (`tools/rules/examples.py`) and the edits that are made
to it.

Each finding carries the id of its message (`message_id`), one of those that its rule lists. Beside these any rule may
report `not-checked` (it failed on a damaged document), `not-judged` (the plan lacks what it needs) and
`further-findings` (there are more than a report lists).

How a finding can be mended:
"""


def rule_reference() -> str:
    """The page as Markdown."""
    from ...knowledge.generated.relaxations import relaxed_rules
    from ...tools.rules.registry import all_rules

    relaxed = relaxed_rules()
    parts = [_HEAD, *(f"- `{kind}`: {meaning}" for kind, meaning in _FIXES.items()), ""]
    parts += ["## Relaxations", "", "Named in `policy.relaxations`, off by default, shown in every report.", ""]
    parts += table(("relaxation", "lifts"), [(f"`{name}`", _links(rules)) for name, rules in relaxed.items()])
    for family, members in groupby(all_rules(), key=lambda rule: rule.id[:2]):
        parts += _family(family, tuple(members), relaxed)
    return "\n".join(parts) + "\n"


def _family(family: str, rules: Sequence[Rule], relaxed: dict[str, tuple[str, ...]]) -> Iterator[str]:
    yield f"\n## {family}: {FAMILY_TITLES.get(family, family)}\n"
    rows = [(f"[{rule.id}](#{rule.id.lower()})", rule.name, rule.severity, rule.fix) for rule in rules]
    yield from table(("rule", "offence", "severity", "fix"), rows)
    for rule in rules:
        yield from _rule(rule, [name for name, touched in relaxed.items() if rule.id in touched])


def _rule(rule: Rule, relaxations: Sequence[str]) -> Iterator[str]:
    from ...tools.rules.messages import message_ids

    yield f'\n### <a id="{rule.id.lower()}"></a>{rule.id} {plain(rule.name)}\n'
    yield f"{plain(rule.requirement)}\n"
    yield f"- **Why:** {plain(rule.rationale)}"
    sources = public_sources([rule.source])
    yield f"- **Severity:** {rule.severity}" + (f". **Source:** {plain(sources)}" if sources else "")
    yield f"- **To mend:** {plain(rule.remedy)} (`{rule.fix}`: {_FIXES[rule.fix]})"
    yield f"- **Messages:** {', '.join(f'`{name}`' for name in message_ids(rule))}"
    if relaxations:
        yield f"- **Relaxed by:** {', '.join(f'`{name}`' for name in relaxations)}"
    yield from _example("Breaks it", rule.bad)
    yield from _example("Passes", rule.good)


def _example(title: str, example: Example) -> Iterator[str]:
    yield f"- **{title}:** base plan `{example.base}`" + (":" if example.edits else " as it is")
    for edit in example.edits:
        yield f"  - {plain(edit_text(edit_facts(edit)))}"


def _links(rules: Sequence[str]) -> str:
    return ", ".join(f"[{rule}](#{rule.lower()})" for rule in rules)
