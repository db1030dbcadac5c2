"""Every example document in the knowledge base is what the text says of it: valid, or breaking the rule named."""

from __future__ import annotations

import pytest

from shardwright.tools.plan.reader import read_text
from shardwright.tools.validate import validate_read

from .markers import ExampleDocument, example_documents

EXAMPLES = example_documents()


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{one.place}-{'-'.join(one.breaks) or 'valid'}" for one in EXAMPLES]
)
def test_an_example_document_breaks_exactly_the_rules_named_beside_it(example: ExampleDocument) -> None:
    document = read_text(example.json)
    assert document.raw is not None, example.place
    report = validate_read(document)
    found = {violation.rule for violation in report.violations}
    assert found == set(example.breaks), [f"{one.rule}: {one.message}" for one in report.violations]


def test_there_are_valid_examples_and_broken_ones() -> None:
    assert {bool(example.breaks) for example in EXAMPLES} == {True, False}
