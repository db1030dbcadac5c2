"""`docs/traceability.md`: from every rule to what demands it, what teaches it, what checks it and what tests it.

And back: from every normative sentence of the design documents to its rules, or to the reason why it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ...tools.rules.base import Rule
from ...tools.rules.registry import all_rules
from ..index import knowledge
from ..reader import KnowledgeError
from ..traceability import Entry, read_traceability
from .markdown import plain, table

_HEAD = """# From sentence to rule to test

Generated from the rules' files, `knowledge/` and `knowledge/traceability.yaml` by `./check --write`; change those, not
this page. Sentences of the design documents 000–004 are named by section and number (`#2` is the second normative
sentence of its section); `python benchmarks/traceability.py FOLDER` checks the numbers against the documents.
"""


def traceability_page() -> str:
    """The page as Markdown.

    Raises:
        KnowledgeError: a rule has no knowledge section, or a sentence names a rule that does not exist.
    """
    entries = read_traceability()
    known = {rule.id for rule in all_rules()}
    for entry in entries:
        for rule in entry.rules:
            if rule not in known:
                raise KnowledgeError(f"traceability.yaml: {entry.place.source} #{entry.place.ordinal}: no rule {rule}")
    heads = ("rule", "source", "sentences", "knowledge section", "rule file", "test cases")
    lines = [_HEAD, "## Rules\n", *table(heads, [_rule(rule, entries) for rule in all_rules()])]
    lines.append("\n## Sentences\n")
    lines.extend(table(("section", "sentence", "rules, or why none"), list(_sentences(entries))))
    return "\n".join(lines) + "\n"


def rule_file(rule: Rule) -> str:
    """The path of a rule's file from the root of the repository."""
    return "tools" + rule.module.partition(".tools")[2].replace(".", "/") + ".py"


def case_table(rule: Rule) -> str:
    """The path of a rule's test cases from the root of the repository."""
    return f"tests/cases/rules/{rule.id}.json"


def _rule(rule: Rule, entries: tuple[Entry, ...]) -> tuple[str, ...]:
    sections = [section for section in knowledge().sections if rule.id in section.rules]
    if not sections:
        raise KnowledgeError(f"no section of the knowledge base is about rule {rule.id}")
    places = [entry.place for entry in entries if rule.id in entry.rules]
    sentences = (
        f"{source} {' '.join(f'#{place.ordinal}' for place in group)}"
        for source, group in groupby(places, key=lambda place: place.source)
    )
    return (
        f"[{rule.id}](rules.md#{rule.id.lower()})",
        plain(rule.source),
        "; ".join(sentences) or "none: the source says it without a normative word",
        "; ".join(f"[{section.title}](../knowledge/{section.file})" for section in sections),
        f"[{rule_file(rule).rsplit('/', 1)[1]}](../{rule_file(rule)})",
        f"[{rule.id}.json](../{case_table(rule)})",
    )


def _sentences(entries: tuple[Entry, ...]) -> Iterator[tuple[str, str, str]]:
    for entry in entries:
        rules = ", ".join(f"[{rule}](rules.md#{rule.lower()})" for rule in entry.rules)
        yield entry.place.source, f"#{entry.place.ordinal}", rules or plain(entry.reason)
