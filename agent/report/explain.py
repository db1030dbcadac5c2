"""An explanation as text: the rule in short, then each passage with its citation, its rules and its sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..citations import public_sources
from .safe import harmless
from .text import Bullets, render, section

if TYPE_CHECKING:
    from ..explain import Explanation, Passage, RuleExample, RulePage


def render_explanation(explanation: Explanation, *, width: int, bold: bool = False) -> str:
    """The answer, or what comes nearest where there is none."""
    parts: list[str] = []
    if explanation.rule is not None:
        parts.append(_rule(explanation.rule, width, bold))
    parts += [_passage(passage, bold) for passage in explanation.answers]
    if parts:
        return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
    nothing = f"The knowledge base does not speak of “{explanation.question}”."
    nearest = section("The nearest headings", Bullets(explanation.nearest))
    return render([section("", nothing), nearest], width=width, bold=bold)


def _rule(rule: RulePage, width: int, bold: bool) -> str:
    sections = [
        section("", f"{rule.id} {rule.name} ({rule.severity})"),
        section("What must hold", rule.requirement),
        section("Why", rule.rationale),
        section("How to mend it", rule.remedy, f"Kind of fix: {rule.fix}"),
        section("Breaks it", *_example(rule.bad)),
        section("Passes", *_example(rule.good)),
        section("Source", public_sources([rule.source])),
    ]
    return render(sections, width=width, bold=bold)


def _example(example: RuleExample) -> Iterator[str | Bullets]:
    yield f"The valid base plan “{example.base}”" + (", changed:" if example.edits else ", as it is.")
    yield Bullets(example.edits)


def _passage(passage: Passage, bold: bool) -> str:
    title = f"\x1b[1m{passage.title}\x1b[0m" if bold else passage.title
    # Tables, formulas and code stand as they are written: wrapped, they could not be read.
    lines = [title, "", harmless(passage.text), ""]
    if passage.rules:
        lines.append(f"Rules: {', '.join(passage.rules)}")
    sources = public_sources(passage.sources)
    return "\n".join([*lines, *([f"Sources: {sources}"] if sources else []), f"From: {passage.citation}"])
