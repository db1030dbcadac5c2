"""Numbers with units are read the same way everywhere, and digits inside words are no numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.language.patterns.quantities import find_quantities, read_number
from shardwright.tools.language.writing.normal_form import normalise

CASES = json.loads((Path(__file__).parent.parent / "cases" / "quantities.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "value", "upper", "unit"), CASES, ids=[case[0] for case in CASES])
def test_a_value_cell_is_read_with_its_unit(text: str, value: float, upper: float | None, unit: str) -> None:
    (quantity,) = find_quantities(normalise(text).strip())
    assert quantity.unit == unit
    assert quantity.value == pytest.approx(value)
    assert quantity.upper == (None if upper is None else pytest.approx(upper))


@pytest.mark.parametrize("text", ["70B", "A22B", "H100", "v3.1", "Qwen3", "统一", "一个模型", "人工智能", "fp8"])
def test_digits_and_numerals_inside_words_are_no_quantity(text: str) -> None:
    assert find_quantities(text) == ()


@pytest.mark.parametrize("text", ["", "4k/1k", "no number here"])
def test_a_cell_without_exactly_one_number_has_no_value(text: str) -> None:
    assert len(find_quantities(normalise(text).strip())) != 1


def test_a_full_width_comma_separates_and_does_not_group_digits() -> None:
    assert [q.value for q in find_quantities(normalise("并发8，100毫秒"))] == [8, 100]


@given(st.integers(min_value=0, max_value=10**12))
def test_grouped_digits_mean_the_same_number(number: int) -> None:
    assert read_number(f"{number:,}") == read_number(str(number)) == number


@given(st.text(max_size=300))
def test_quantities_stand_in_order_at_their_places(text: str) -> None:
    text = normalise(text)
    end = 0
    for quantity in find_quantities(text):
        assert end <= quantity.start < quantity.end <= len(text)
        assert quantity.words == text[quantity.start : quantity.end].strip()
        end = quantity.end
