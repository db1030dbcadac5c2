"""Figures are readable, bars are proportional, and no line is wider than allowed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from shardwright.agent.report.text import (
    Bullets,
    Column,
    Table,
    bar,
    bytes_text,
    figure,
    ms_text,
    render,
    section,
    value_text,
)
from shardwright.tools.plan.devices import devices_text


@pytest.mark.parametrize(
    ("count_bytes", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (17_640_000_000, "17.6 GB"), (141_107_412_992, "141 GB"),
     (999_600_000, "1.000 GB"), (2.5e12, "2.50 TB"), (8e15, "8,000 TB")],
)  # fmt: skip
def test_bytes_are_shown_in_decimal_units(count_bytes: float, shown: str) -> None:
    assert bytes_text(count_bytes) == shown


@pytest.mark.parametrize(
    ("value_ms", "shown"),
    [(0, "0 ms"), (0.0123, "12.3 µs"), (0.5, "0.500 ms"), (9.81, "9.81 ms"), (231.4, "231 ms"), (12_345, "12.3 s")],
)
def test_times_are_shown_in_the_unit_that_reads_best(value_ms: float, shown: str) -> None:
    assert ms_text(value_ms) == shown


@given(st.floats(min_value=1e-6, max_value=1e15))
def test_a_figure_is_within_half_a_percent_of_the_number(value: float) -> None:
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


@given(st.lists(st.floats(min_value=0, max_value=1), max_size=4), st.integers(min_value=8, max_value=60))
def test_a_bar_has_its_width_and_shows_every_part_and_every_excess(shares: list[float], width: int) -> None:
    drawn = bar([(mark, share) for mark, share in zip("█▓▒░", shares, strict=False)], width)
    assert len(drawn) == width
    if sum(shares) > 1:
        assert drawn.endswith("!")
    elif sum(max(1, round(share * width)) for share in shares if share) <= width:
        for mark, share in zip("█▓▒░", shares, strict=False):
            assert (mark in drawn) == (share > 0)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["n0.g0"], "n0.g0"),
        ([f"n0.g{g}" for g in range(8)], "n0.g0–7"),
        ([f"n{n}.g{g}" for n in range(4) for g in range(8)], "n0–3.g0–7"),
        (["n0.g0", "n0.g2", "n0.g3"], "n0.g0,2–3"),
        (["n0.g0", "n1.g1"], "n0.g0, n1.g1"),
        (["n0.g0", "n2.g0"], "n0.g0, n2.g0"),
        (["elsewhere"], "elsewhere"),
    ],
)
def test_device_lists_are_folded_into_runs(names: list[str], shown: str) -> None:
    assert devices_text(names) == shown


ANY_TEXT = st.text(max_size=200)


@given(ANY_TEXT, st.lists(ANY_TEXT, min_size=1, max_size=3), st.integers(min_value=60, max_value=140))
def test_no_line_is_wider_than_the_report_and_no_control_character_survives(
    title: str, cells: list[str], width: int
) -> None:
    table = Table((Column("one", wraps=True), Column("two", figures=True)), tuple((cell, "1 ms") for cell in cells))
    text = render([section("Heading", title, table, Bullets(tuple(cells)))], width=width)
    assert all(cell_len(line) <= width for line in text.split("\n"))
    assert not any(ord(char) < 0x20 and char != "\n" for char in text)
    assert "\x1b" not in text


def test_square_brackets_and_emoji_codes_are_text_like_any_other() -> None:
    assert "[bold]x[/bold] :smile:" in render([section("", "[bold]x[/bold] :smile:")], width=80)


def test_bold_marks_only_the_heading() -> None:
    text = render([section("Heading", "body")], width=80, bold=True)
    assert text == "\x1b[1mHeading\x1b[0m\n  body\n"


def test_a_section_of_nothing_is_not_printed() -> None:
    assert render([section("Empty", "", Bullets(()), None), section("Full", "x")], width=80) == "Full\n  x\n"


def test_a_long_value_is_cut_to_one_line() -> None:
    shown = value_text({"a": "x" * 500})
    assert len(shown) == 120
    assert shown.endswith("…")


@pytest.mark.parametrize("shares", [(0.1, 0.2, 0.7), (0.3, 0.3, 0.4), (1 / 3, 1 / 3, 1 / 3), (0.6, 0.1, 0.2, 0.1)])
def test_a_bar_of_all_parts_of_a_whole_is_full_and_has_no_mark(shares: tuple[float, ...]) -> None:
    assert "!" not in bar([("x", share) for share in shares], 20)
    assert bar([("x", share + 0.01) for share in shares], 20).endswith("!")
