"""A cached judgement equals a new one, and is never that of another document."""

from __future__ import annotations

import copy

from shardwright.agent.evaluation.isomorphism import same_dag
from shardwright.agent.evaluation.judged import errors_of, violations_of
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate


def test_a_document_that_is_changed_in_place_is_judged_anew() -> None:
    document = copy.deepcopy(dict(base_plan("dense-tp2")))
    assert errors_of(document) == ()
    document["strategy"]["gpu_count"] = 3
    assert violations_of(document) == validate(document).violations
    assert errors_of(document)
    document["strategy"]["gpu_count"] = 2
    assert errors_of(document) == ()


def test_numbers_and_truths_that_python_calls_equal_are_told_apart() -> None:
    sound = copy.deepcopy(dict(base_plan("dense-1")))
    assert errors_of(sound) == ()
    for odd in (True, "1"):
        other = {**sound, "strategy": {**sound["strategy"], "gpu_count": odd}}
        assert violations_of(other) == validate(other).violations
        assert errors_of(other)


def test_a_graph_that_is_changed_in_place_is_compared_anew() -> None:
    golden = copy.deepcopy(dict(base_plan("dense-tp2")))
    other = copy.deepcopy(golden)
    assert same_dag(other, golden)
    edge = other["edges"].pop()
    assert not same_dag(other, golden)
    other["edges"].insert(0, edge)
    assert same_dag(other, golden)


def test_a_text_that_is_no_unicode_is_judged_too() -> None:
    document = {**base_plan("dense-1"), "reasoning": "\ud800"}
    assert violations_of(document) == validate(document).violations
