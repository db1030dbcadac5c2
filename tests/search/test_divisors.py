"""A stage is split into degrees that divide its width: all divisors, found without counting up to it."""

from __future__ import annotations

from shardwright.tools.search.space import divisors


def test_divisors_are_all_numbers_that_divide_in_ascending_order() -> None:
    for number in range(1, 500):
        assert divisors(number) == tuple(value for value in range(1, number + 1) if number % value == 0)
