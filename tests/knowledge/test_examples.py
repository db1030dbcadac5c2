"""Every example document in the knowledge base is valid or breaks the rules named beside it, as the text says."""

from __future__ import annotations

import pytest

from shardwright.tools.plan.reader import read_text
from shardwright.tools.validate import validate_read

from .markers import ExampleDocument, example_documents

EXAMPLES = example_documents()


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{example.place}-{'-'.join(example.breaks) or 'valid'}" for example in EXAMPLES]
)
def test_an_example_document_breaks_exactly_the_rules_named_beside_it(example: ExampleDocument) -> None:
    document = read_text(example.json)
    assert document.raw is not None, example.place
    report = validate_read(document)
    broken = {finding.rule for finding in report.violations}
    assert broken == set(example.breaks), [f"{finding.rule}: {finding.message}" for finding in report.violations]


def test_there_are_valid_examples_and_broken_ones() -> None:
    assert {bool(example.breaks) for example in EXAMPLES} == {True, False}
