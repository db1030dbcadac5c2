"""A size of the model that is not stated hides no fault of the graph, and makes none."""

from typing import Any

import pytest

from shardwright.tools.rules.examples import apply, base_names, base_plan
from shardwright.tools.validate import validate

from .corruptions import Corruption, corruptions

# Sizes that no rule on the graph reads.
SIZES = ("vocab_size", "hidden_size")
RULES = ("TP005", "EP001", "EP005", "PP004", "PP005")
ROWS = [row for rule in RULES for row in corruptions(rule) if row.expected == {rule}]


def _found(document: dict[str, Any], size: str, written: str | None = None) -> set[str]:
    config = {**document["model"]["config"], size: written}
    report = validate({**document, "model": {**document["model"], "config": config}})
    return {violation.rule for violation in report.violations if violation.severity == "error"}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_other_rule_still_judges_a_model_with_an_unknown_size(row: Corruption) -> None:
    assert _found(apply(row.example), SIZES[0]) == {row.rule, "ME001"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("base", base_names())
def test_a_legal_graph_of_a_model_with_an_unknown_size_lacks_only_its_memory(base: str, size: str) -> None:
    assert _found(base_plan(base), size) == {"ME001"}
    assert _found(base_plan(base), size, "wide") == {"ME001"}
