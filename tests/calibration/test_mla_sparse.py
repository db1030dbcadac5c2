"""Sparse latent attention takes the measured time at any context, and fewer heads than a block save nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.dtypes import DType
from shardwright.tools.engines.names import ENGINES

from .chips import times_of

TABLE = Path(__file__).parents[1] / "cases" / "calibration" / "sparse_attention_measured.json"
ROWS: list[dict[str, Any]] = json.loads(TABLE.read_text("utf-8"))["rows"]
CHOSEN = 2048


def core(heads: float, *, sequences: float = 1, tokens: int = 1, context: int = 8192, kv: DType = "bf16") -> Any:
    return LatentAttention(sequences, tokens, context, heads, 512, 64, 128, 128, kv, chosen=CHOSEN)


def seconds(name: str, kernel: LatentAttention) -> float:
    return float(times_of(name).seconds(kernel).seconds)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['tokens']} behind {row['context']}")
def test_a_prompt_takes_as_long_as_it_was_measured(row: dict[str, Any]) -> None:
    kernel = core(row["heads"], tokens=row["tokens"], context=row["context"])
    assert seconds("b200-sxm", kernel) * 1e3 == pytest.approx(row["milliseconds"], rel=0.1)


@pytest.mark.parametrize(("name", "heads"), [("h800", 64), ("h200-sxm", 64), ("b200-sxm", 128), ("gb300", 128)])
def test_fewer_heads_than_a_block_has_take_as_long_as_all_of_them(name: str, heads: int) -> None:
    prompt = [seconds(name, core(count, tokens=4096)) for count in (16, heads, 2 * heads)]
    assert prompt[0] == pytest.approx(prompt[1], rel=0.01)
    assert prompt[2] > 1.9 * prompt[1]


def test_a_part_that_nobody_measured_is_timed_by_the_dense_absorbed_form() -> None:
    alone = LatentAttention(64, 1, CHOSEN - 1, 16, 512, 64, 128, 128, "bf16")
    assert seconds("mi300x", core(16, sequences=64)) == pytest.approx(seconds("mi300x", alone))


@given(
    name=st.sampled_from(["h800", "h200-sxm", "b200-sxm", "mi355x"]),
    heads=st.sampled_from([8, 16, 64, 128]),
    tokens=st.integers(1, 4096),
    more=st.integers(1, 4096),
    kv=st.sampled_from(["bf16", "fp8"]),
)
def test_more_tokens_never_take_less(name: str, heads: int, tokens: int, more: int, kv: DType) -> None:
    few, many = (seconds(name, core(heads, sequences=count, kv=kv)) for count in (tokens, tokens + more))
    assert few <= many * (1 + 1e-9)


@pytest.mark.parametrize(
    ("engine", "version", "always"),
    [("vllm", "0.18", True), ("vllm", "v0.24.1", True), ("vllm", "0.25.0", False), ("vllm", None, False),
     ("sglang", "0.5.9", False)],
)  # fmt: skip
def test_short_prompts_run_dense_but_in_old_releases_of_one_engine(
    engine: str, version: str | None, always: bool
) -> None:
    assert ENGINES[engine].chooses_always(version) is always
