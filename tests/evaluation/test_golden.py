"""A golden's strategy as people write it is read as one strategy, or refused in one line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.evaluation.case import Case, Golden
from shardwright.agent.evaluation.golden import golden_strategy
from shardwright.agent.evaluation.posed import pose
from shardwright.agent.loop.question import Question
from shardwright.tools.errors import InputError
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import Strategy

from ..examples import examples

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "goldens_stated.json").read_text(encoding="utf-8")
)
BASES = {"dense": "dense-tp2", "moe": "moe-ep4"}


@cache
def question(kind: str) -> Question:
    """The question that a small plan on one node of eight GPUs answers."""
    posed = pose(Case(id="a", family="a", goldens=(Golden(base=BASES[kind]),))).question
    assert posed is not None
    return posed


def named(row: dict[str, Any]) -> str:
    return json.dumps(row["said"], ensure_ascii=False)


@pytest.mark.parametrize("row", [row for row in ROWS if "fault" not in row], ids=named)
def test_what_is_stated_is_read_as_it_is_meant(row: dict[str, Any]) -> None:
    kinds = [kind for kind in BASES if kind in row]
    assert kinds
    for kind in kinds:
        assert describe(golden_strategy(row["said"], question(kind))) == row[kind]


@pytest.mark.parametrize("row", [row for row in ROWS if "fault" in row], ids=named)
def test_what_is_none_is_said_in_one_line(row: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        golden_strategy(row["said"], question("dense"))
    assert row["fault"] in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


_NAMES = st.sampled_from(
    ["tp", "pp", "ep", "sp", "dp", "gpus", "tp_ffn", "tp_expert", "attention_dp", "kv_sp", "replicas", "stage_layers",
     "prefill", "decode", "tensor_parallel_size", "strategy", "x"]
)  # fmt: skip
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5000) | st.floats() | st.text(max_size=5) | st.just(10**30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=8,
)


@examples(80)
@given(st.dictionaries(_NAMES, _VALUES, max_size=5) | st.text(max_size=60))
def test_whatever_is_stated_gives_a_strategy_that_can_be_laid_out_or_one_line(stated: dict[str, Any] | str) -> None:
    try:
        strategy = golden_strategy(stated, question("moe"))
    except InputError:
        return
    assert isinstance(strategy, Strategy)
    assert strategy.dp <= 4096
