"""A repeated search is answered from memory, a different one is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shardwright.tools.checkpoint import StoppedError, best_so_far, stoppable, watched
from shardwright.tools.search.known import KnownAnswers
from shardwright.tools.search.search import search, search_anew

from .requests import search_request

ASKED = search_request("Llama-3.1-8B", (1, 2, "h100-sxm"), input_tokens=1031, output_tokens=17, concurrency=3)


def test_who_asks_again_gets_the_same_without_a_search() -> None:
    first = search(ASKED)
    steps: list[str] = []
    with watched(steps.append):
        assert search(replace(ASKED)) == first
        assert steps == ["taking the layouts that were found before"]
        assert search_anew(ASKED) == first
    assert len(steps) > 2


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, workload=ASKED.workload.model_copy(update={"concurrency": 4})),
        replace(ASKED, disaggregated=True),
        replace(ASKED, precisions=(ASKED.precision,)),
    ],
)
def test_another_question_has_its_own_answer(other: object) -> None:
    known = KnownAnswers()
    known.keep(ASKED, search(ASKED))
    assert known.get(ASKED) == search_anew(ASKED)
    assert known.get(other) is None  # type: ignore[arg-type]


def test_an_answer_that_left_something_out_is_not_kept_and_none_is_given_once_the_time_is_over() -> None:
    known = KnownAnswers()
    with best_so_far(lambda: True):
        known.keep(ASKED, search_anew(ASKED))
    assert known.get(ASKED) is None
    known.keep(ASKED, search_anew(ASKED))
    with best_so_far(lambda: True):
        assert known.get(ASKED) is None
    with pytest.raises(StoppedError), stoppable(lambda: True):
        known.get(ASKED)


def test_the_last_answers_are_kept_and_no_more_than_there_is_room_for() -> None:
    known, answer = KnownAnswers(), search(ASKED)
    questions = [
        replace(ASKED, workload=ASKED.workload.model_copy(update={"input_tokens": place})) for place in range(1, 60)
    ]
    for question in questions:
        known.keep(question, answer)
        assert known.get(questions[0]) is not None
    assert known.get(questions[-1]) is not None and known.get(questions[1]) is None
    assert sum(known.get(question) is not None for question in questions) <= 32
    large = answer.model_copy(update={"candidates": answer.candidates * 5000})
    known.keep(questions[1], large)
    assert known.get(questions[0]) is None and known.get(questions[1]) is not None
