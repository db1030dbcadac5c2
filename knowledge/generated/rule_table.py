"""The rules of one family as a table: id, what must hold, severity, how it is mended."""

from __future__ import annotations

import re

from ...tools.rules.registry import FAMILIES, all_rules
from ..reader import KnowledgeError
from .markdown import plain, table

# A full stop that ends a sentence: what follows is a blank and a capital letter or a backquote.
_SENTENCE_END = re.compile(r"(?<=[^.])\.(?=\s+[A-Z`])")


def first_sentence(text: str) -> str:
    """The first sentence of `text`, without its full stop."""
    return _SENTENCE_END.split(text, maxsplit=1)[0].strip().rstrip(".")


def generate(*families: str) -> str:
    """The table of the rules of `families`.

    Raises:
        KnowledgeError: no family is named, or one that does not exist.
    """
    unknown = [family for family in families if family not in FAMILIES]
    if unknown or not families:
        raise KnowledgeError(f"no family of rules {' '.join(unknown)!r}; there are {', '.join(FAMILIES)}")
    rows = [
        (rule.id, plain(first_sentence(rule.requirement)), rule.severity, rule.fix)
        for rule in all_rules()
        if rule.id[:2] in families
    ]
    return "\n".join(table(("rule", "what must hold", "severity", "fix"), rows))
