"""The picture of a sweep has every field and the same bytes each time, and refuses what is too large."""

from __future__ import annotations

import pytest

from shardwright.agent.report.sweep_plot import MOST_FIELDS, check_size, sweep_picture
from shardwright.agent.sweep.case import Row
from shardwright.tools.errors import InputError

pytest.importorskip("matplotlib")


def a_row(model: str, hardware: str, rate: float | None, **others: object) -> Row:
    return Row(
        model=model, hardware=hardware, workload="chat $x$", output_tokens_per_s_per_gpu=rate, **others
    )  # fmt: skip


ROWS = (
    a_row("org/first", "1x8:h100-sxm", 123.0, feasible=True),
    a_row("org/first", "2x8:h100-sxm", None, feasible=False, rule="ME001"),
    a_row("org/second", "1x8:h100-sxm", 4567.0, feasible=True),
    a_row("org/second", "1x8:h100-sxm", 5678.0, feasible=True),
    a_row("org/second", "2x8:h100-sxm", None, error="unknown"),
)


@pytest.fixture(scope="module")
def drawn() -> str:
    return sweep_picture(ROWS, ".svg").decode()


def test_every_field_says_its_figure_its_rule_or_that_it_is_unknown(drawn: str) -> None:
    for text in ("first", "second", "1x8:h100-sxm", "chat $x$", ">123<", ">5,678<", ">ME001<", ">?<"):
        assert text in drawn, text
    assert ">4,567<" not in drawn  # of two rows in one field the better one


def test_the_same_rows_give_the_same_file(drawn: str) -> None:
    assert sweep_picture(ROWS, ".svg").decode() == drawn
    assert sweep_picture(ROWS, ".png").startswith(b"\x89PNG")


def test_a_sweep_without_any_plan_is_drawn_too() -> None:
    assert b"ME001" in sweep_picture(ROWS[1:2], ".svg")


def test_too_large_a_picture_is_refused_before_anything_runs() -> None:
    check_size(100, 20, 10)
    with pytest.raises(InputError, match="fields"):
        check_size(MOST_FIELDS, 2, 1)
