"""More hardware is never worse, and a tighter limit never better."""

from __future__ import annotations

from itertools import islice

import pytest

from shardwright.benchmarks.metamorphic import faults_of

from .questions import Question, drawn_questions


@pytest.mark.thorough
@pytest.mark.parametrize("question", list(islice(drawn_questions(1, 4), 12)), ids=lambda question: question.name)
def test_twice_the_nodes_is_no_worse_and_a_tighter_limit_no_better(question: Question) -> None:
    assert faults_of(question) == []
