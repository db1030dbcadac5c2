"""Layouts that a structured brief lists to be weighed: {"candidates": [{"tp": 8}, {"tp": 4, "replicas": 2}]}."""

from __future__ import annotations

from typing import Any

from ..input.shapes import is_object
from .brief_keys import DEGREE
from .brief_statements import key_words
from .gated import Gated

_WEIGHED = Gated(
    r"(?:to )?compare[ds]?|comparisons?|options?|对比|比较|(?:候选|备选)(?:方案|布局)?|"
    r"(?:candidate )?(?:candidates?|layouts?|strateg(?:y|ies)|parallelisms?|variants?|configurations?)"
    r"(?: (?:to )?(?:compare|judge|try|weigh|choose from))?"
)
_DEGREE = Gated(rf"{DEGREE.pattern}|replicas?|(?:attention|attn) (?:dp|data parallel\w*)(?: size)?")
_LABEL = Gated(r"name|label|id|key|note|comment|名称|编号|备注")


def weighed_layouts(key: str, items: list[Any]) -> str | None:
    """The words that weigh the layouts in a list under `key`, in plain words; `None` where it is no list of layouts."""
    if len(items) < 2 or not _WEIGHED.fullmatch(key):
        return None
    layouts = [item if isinstance(item, str) else _layout(item) for item in items]
    return f"compare {' or '.join(filter(None, layouts))}" if all(layouts) else None


def _layout(item: Any) -> str | None:
    """The degrees of a layout as words; `None` where it has something else than whole degrees and labels."""
    degrees = {key_words(name): value for name, value in item.items()} if is_object(item) else {}
    degrees = {name: value for name, value in degrees.items() if not _LABEL.fullmatch(name)}
    if not all(_DEGREE.fullmatch(name) and isinstance(value, int) for name, value in degrees.items()):
        return None
    return " ".join(f"{name} {value}" for name, value in degrees.items()) or None
