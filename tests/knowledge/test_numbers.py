"""Every worked number of the knowledge base is the one that the project's functions compute."""

from __future__ import annotations

import pytest

from . import numbers  # noqa: F401 - registers the computations
from .markers import WorkedNumber, worked_numbers
from .registry import computation_names, computed, number

NUMBERS = worked_numbers()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "worked", NUMBERS, ids=[f"{worked.place}-{worked.name}-{'-'.join(worked.arguments)}" for worked in NUMBERS]
)
def test_a_figure_in_the_text_is_the_figure_that_the_code_computes(worked: WorkedNumber) -> None:
    assert worked.name in computation_names(), f"{worked.place}: nothing computes {worked.name!r}"
    assert computed(worked.name, *worked.arguments) == worked.figure, worked.place


def test_no_computation_is_left_that_no_text_uses() -> None:
    assert sorted(set(computation_names()) - {worked.name for worked in NUMBERS}) == []


def test_two_computations_of_one_name_are_refused() -> None:
    name = computation_names()[0]
    with pytest.raises(ValueError, match="computed twice"):
        number(name)(lambda: "0")
