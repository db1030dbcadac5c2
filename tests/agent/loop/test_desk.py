"""The desk keeps documents by handle within bounds, and knows the best valid plan."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.loop.against import REFERENCE
from shardwright.agent.loop.desk import MOST_DOCUMENTS, Desk
from shardwright.agent.loop.judge import judge_document, judge_handle
from shardwright.tools.errors import InputError
from shardwright.tools.language.said import StatedDegrees, StatedStrategy

from .questions import OPEN, SMALL, STATED, desk, judge_strategy, reference_document


def full_desk(request: str = SMALL) -> Desk:
    """A desk that takes no further document."""
    model_desk = desk(request)
    for number in range(MOST_DOCUMENTS - len(model_desk.documents)):
        model_desk.put({"number": number})
    return model_desk


def test_a_document_is_got_by_the_handle_that_it_was_given() -> None:
    model_desk = desk()
    first, second = model_desk.put({"a": 1}), model_desk.put({"a": 2})
    assert first != second
    assert model_desk.get(first) == {"a": 1}
    assert model_desk.get(second) == {"a": 2}


def test_the_same_document_keeps_its_handle_and_one_that_only_looks_like_it_does_not() -> None:
    model_desk = desk()
    first = model_desk.put({"nodes": [{"index": 1}]})
    assert model_desk.put({"nodes": [{"index": 1}]}) == first
    assert model_desk.put({"nodes": [{"index": True}]}) != first
    assert model_desk.put({"nodes": [{"index": 1.0}]}) != first


def test_what_is_put_on_the_desk_is_not_changed_with_what_was_given() -> None:
    model_desk = desk()
    document: dict[str, Any] = {"a": 1}
    handle = model_desk.put(document)
    document["a"] = 2
    assert model_desk.get(handle) == {"a": 1}


def test_an_unknown_handle_is_refused_with_those_that_there_are() -> None:
    model_desk = desk()
    with pytest.raises(InputError, match="there are: reference"):
        model_desk.get("d1")
    model_desk.put({})
    with pytest.raises(InputError, match="there are: reference, d1"):
        model_desk.get("x" * 10_000)


def test_a_full_desk_takes_no_other_document() -> None:
    model_desk = full_desk()
    with pytest.raises(InputError, match="submit one of them by its handle"):
        model_desk.put({"one": "more"})
    assert model_desk.put({"number": 3}) == "d4"


def test_documents_that_are_large_together_fill_the_desk() -> None:
    model_desk = desk()
    model_desk.put({"nodes": [0] * 1_500_000})
    with pytest.raises(InputError, match="too large"):
        model_desk.put({"edges": [0] * 500_001})


def test_on_a_full_desk_proposals_are_refused_in_words_and_kept_ones_can_still_be_submitted() -> None:
    model_desk = desk()
    judgement = judge_document(model_desk, reference_document())
    for number in range(MOST_DOCUMENTS - len(model_desk.documents)):
        model_desk.put({"number": number})
    refused = judge_strategy(model_desk, StatedStrategy(dp=1, prefill=StatedDegrees(tp=1)))
    assert refused.verdict == "invalid"
    assert refused.refusal is not None and "by its handle" in refused.refusal
    again = judge_document(model_desk, model_desk.get(judgement.handle or ""))
    assert again.verdict == "valid"
    assert again.handle == judgement.handle


@pytest.mark.thorough
def test_the_best_plan_is_the_best_by_the_objective_whatever_came_first() -> None:
    model_desk = desk(OPEN)
    assert model_desk.best is None
    for dp in (1, 4, 2):
        assert judge_strategy(model_desk, StatedStrategy(dp=dp, prefill=StatedDegrees(tp=1))).standing is not None
    best = max(model_desk.standing, key=lambda plan: plan.estimate.throughput.dp_scaled_tokens_per_s)
    assert model_desk.best is best
    assert best.plan.strategy.dp == 4


def test_the_built_in_plan_lies_on_the_desk_and_is_never_the_models_best() -> None:
    model_desk = desk(OPEN)
    assert model_desk.get(REFERENCE) == reference_document(OPEN)
    judged = judge_handle(model_desk, REFERENCE)
    assert judged.is_acceptable and judged.standing is not None and judged.standing.maker == "builtin"
    assert model_desk.best is None
    assert Desk(model_desk.question, has_reference=False).documents == {}


def test_a_plan_without_the_degrees_asked_for_is_never_the_best() -> None:
    model_desk = desk(STATED)
    without = judge_strategy(model_desk, StatedStrategy(dp=1, prefill=StatedDegrees(tp=2)))
    assert without.standing is not None and not without.standing.is_kept
    assert model_desk.best is None
    judgement = judge_strategy(model_desk, StatedStrategy(dp=2, prefill=StatedDegrees(tp=1)))
    assert model_desk.best is judgement.standing
