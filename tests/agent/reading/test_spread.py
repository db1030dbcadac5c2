"""Length percentiles that a model reads give the same spread as read by the rules, and are never ends of a range."""

from __future__ import annotations

from typing import Any

import pytest

from ..model.fault_server import text
from .test_reading import by, fact, read

PROMPTS = "the log has prompts of median 900 and, at the 95th percentile, 6,000"
ANSWERS = "answers of 200 (p50) to 1,500 (p99)"


def by_percentiles(side: str, words: str, *points: tuple[float, float], **more: Any) -> list[dict[str, Any]]:
    return [fact(f"{side}_tokens", tokens, words, percentile=percent, **more) for percent, tokens in points]


def test_percentiles_of_both_sides_are_one_spread() -> None:
    facts = [
        *by_percentiles("input", "median 900 and, at the 95th percentile, 6,000", (50, 900), (95, 6000)),
        *by_percentiles("output", ANSWERS, (50, 200), (99, 1500)),
    ]
    said = by(f"Llama-3.1-8B on 2 H100; {PROMPTS}; {ANSWERS}", *facts)
    assert said.lengths is not None
    assert said.lengths.model_dump(exclude_none=True) == {
        "input": {"percentiles": ((50.0, 900), (95.0, 6000))},
        "output": {"percentiles": ((50.0, 200), (99.0, 1500))},
    }
    assert said.input_tokens is said.output_tokens is said.input_tokens_range is said.output_tokens_range is None


def test_a_mean_beside_one_percentile_gives_the_spread_that_has_both() -> None:
    words = "a mean of 1,000, 3,000 at p95"
    facts = [fact("input_tokens", 1000, words), *by_percentiles("input", words, (95, 3000))]
    said = by(f"Llama-3.1-8B on 2 H100, {words}, 200 out", *facts)
    assert said.lengths is not None
    assert said.lengths.input is not None
    assert said.lengths.input.quantiles().at(0.95) == pytest.approx(3000, rel=0.02)
    assert said.input_tokens == 1000


def test_a_median_alone_is_the_usual_length_and_another_percentile_alone_is_told() -> None:
    said = by(
        "Llama-3.1-8B on 2 H100, half of the texts below 700",
        *by_percentiles("input", "half of the texts below 700", (50, 700)),
    )
    assert (said.input_tokens, said.lengths) == (700, None)
    words = "nineteen in twenty of them below 700 tokens of text"
    said = by(f"Llama-3.1-8B on 2 H100, {words}", *by_percentiles("input", words, (95, 700)))
    assert said.lengths is None
    assert any("says not how long most are" in line for line in said.readings)


def test_percentiles_that_are_given_as_the_ends_of_a_range_are_dropped() -> None:
    said = by(f"Llama-3.1-8B on 2 H100; {PROMPTS}", fact("input_tokens", 900, PROMPTS, upper=6000))
    assert said.input_tokens_range is None
    assert any("percentiles are no ends of a range" in line for line in said.readings)


@pytest.mark.parametrize("points", [((50, 900), (500, 6000)), ((95, 900), (50, 6000)), ((50, 900), (50, 6000))])
def test_percentiles_that_no_spread_has_are_told(points: tuple[tuple[float, float], ...]) -> None:
    said = by(f"Llama-3.1-8B on 2 H100; {PROMPTS}", *by_percentiles("input", PROMPTS, *points))
    assert any("no spread has these" in line for line in said.readings)


def test_what_the_rules_read_of_the_other_side_stays() -> None:
    words = "Llama-3.1-8B on 2 H100, prompt length p50 900 and p95 6,000 tokens, output p50 200 and p95 900 tokens"
    alone = read(words, text("no"))[0].lengths
    said = by(words, *by_percentiles("input", "p50 900 and p95 6,000", (50, 900), (95, 6000)))
    assert said.lengths == alone
