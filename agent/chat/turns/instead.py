"""What is said of a strategy in place of the current plan's: which one is meant, the verdict, why it is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....tools.comparison.result import Comparison
from ....tools.language.said import StatedStrategy
from ....tools.plan.describe import describe
from ....tools.plan.document import Plan
from ....tools.plan.placement import gpu_count
from ...languages.say import say
from ...planning.keeping import BestWith
from ...planning.reasons import figures, named
from ...report.text import render, section
from ...report.validation import violation_blocks
from ...stated.search_request import architecture_of
from ..outcome import Outcome
from .compare import told_of as told_of_comparison

# What these find depends on degrees that were left open, and on how many GPUs there are.
_OF_OPEN_DEGREES = ("ME", "EN", "GP")


def wants_experts(stated: StatedStrategy) -> bool:
    """Whether experts in groups are asked for."""
    return any((phase.ep or 1) > 1 for phase in (stated.prefill, stated.decode))


def has_experts(plan: Plan) -> bool:
    """Whether the model of `plan` has experts."""
    return architecture_of(plan.model).is_moe


def no_experts(plan: Plan, text: str) -> Outcome:
    """The answer where experts are asked for of a model that has none."""
    line = say(
        "{model} has no experts, so EP does not apply to it (EP001): all its layers are dense.", model=plan.model.name
    )
    now = say("The current plan is {layout}.", layout=describe(plan.strategy))
    return Outcome("why", f"{line}\n{now}\n", told={"asked": text, "reasons": [line]})


def completed(found: BestWith, asked: str, literal: Plan) -> Iterator[str]:
    """Which strategy stands for degrees that were `asked` for, if not `literal`, and what attention DP would add."""
    if found.best is not None and describe(found.best.strategy) != describe(literal.strategy):
        yield say("The best with {asked} is {layout}.", asked=asked, layout=named(found.best))
    elif found.best is None and found.in_groups is not None:
        best = "No layout with {asked} fits without attention DP; the best with it is {layout}."
        yield say(best, asked=asked, layout=named(found.in_groups))
    if found.best is not None and found.in_groups is not None:
        groups = 'With attention DP, which was not allowed (say "allow attention dp"), {layout} is better: {figures}.'
        yield say(groups, layout=named(found.in_groups), figures=figures(found.in_groups))


def too_large(other: Plan, sides: Comparison, text: str, width: int) -> Outcome:
    """A strategy that needs more GPUs than there are, in one line instead of a finding for each missing device."""
    line = say(
        "{layout} is not legal here: it needs {needed:,} GPUs, you have {there:,} (GP004).",
        layout=describe(other.strategy),
        needed=gpu_count(other.strategy),
        there=gpus_of(other),
    )
    errors = (finding for finding in sides.b.violations if finding.severity == "error")
    others = [finding for finding in errors if not finding.rule.startswith(_OF_OPEN_DEGREES)]
    title = say("More GPUs alone would not make it legal; it breaks besides")
    sections = [section("", line), *([section(title, *violation_blocks(others))] if others else [])]
    return Outcome(
        "why",
        render(sections, width=width),
        comparison=sides,
        told={"asked": text, "reasons": [line], **told_of_comparison(sides)},
    )


def gpus_of(plan: Plan) -> int:
    """How many GPUs there are for `plan`."""
    return plan.hardware.nodes * plan.hardware.gpus_per_node


def in_short(sides: Comparison, needed: list[str]) -> str:
    """The verdict on the other strategy in a sentence; `needed`: relaxations that it takes beside those in force."""
    summary = sides.b.summary
    if not sides.b.valid:
        rules = ", ".join(dict.fromkeys(finding.rule for finding in sides.b.violations if finding.severity == "error"))
        return say("{layout} is not legal here: it breaks {rules}.", layout=summary, rules=rules)
    missed = [limit.name for limit in sides.b.limits if limit.holds is False]
    if needed:
        return say(
            '{layout} needs {needed}, which was not allowed; say "allow {first}" to let it in.',
            layout=summary,
            needed=", ".join(needed),
            first=needed[0],
        )
    if missed:
        return say("{layout} is legal, but misses a limit: {limits}.", layout=summary, limits=", ".join(missed))
    warned = ", ".join(dict.fromkeys(finding.rule for finding in sides.b.violations))
    if warned:
        legal = say("{layout} is legal, but warned of {rules}.", layout=summary, rules=warned)
    else:
        legal = say("{layout} is legal.", layout=summary)
    by_figures = {
        "b": say("By its figures it is better."),
        "undecided": say("By its figures no difference can be told:"),
    }
    return f"{legal} {by_figures.get(sides.better or '', say('The figures decide:'))}"


def verdict(sides: Comparison) -> tuple[str, ...]:
    """The sentences of a comparison, with the plans called by what they are."""
    return tuple(
        re.sub(r"\bA\b", "the current plan", re.sub(r"\bB\b", sides.b.summary, line)) for line in sides.verdict
    )
