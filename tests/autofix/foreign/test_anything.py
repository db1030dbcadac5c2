"""The reader of proposals answers any input in bounded time without changing it, and passes over plan documents."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tests.rules.corruptions import Corruption, corruptions
from shardwright.tools.autofix.foreign.reader import read_proposal
from shardwright.tools.plan.compact import expand
from shardwright.tools.rules.examples import apply

from ...examples import examples

pytestmark = pytest.mark.thorough

_FAMILIES = ("ST", "CO", "DP", "PP", "TP", "EP", "SP", "PH", "DE", "GP", "ME", "PE", "EN")
_KEYS = st.sampled_from(
    ["model", "tp", "pp", "prefill", "decode", "stages", "nodes", "edges", "children", "gpus", "devices", "layers",
     "experts", "type", "id", "parent", "replicas", "hardware", "strategy", "attention", "moe", "ranks", "phases",
     "placement", "rank", "tensor_parallel", "workers", "data", "config", "dp_attention", "index", "x"]
)  # fmt: skip
_LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=12)
    | st.sampled_from(["0-39", "gpu0-7", "TP8 PP2", "H100", "Llama-3.1-70B", "attention", "shard", "stage", "a -> b",
                       "prefill", "all_reduce", "expert", "2x8 H100", "node0:gpu1", "replica", "--tp 8"])
)  # fmt: skip
_ANYTHING = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=6), max_leaves=40
)
# Long texts: a reader that takes quadratic time would need minutes for them.
_GARBAGE = (
    "{", "[", '{"a":', '"', "{} ", '{"tp":8,', "tp=8 ", "```\n", "a -> ", "--tp 8 ", "|a|b|\n", "8x H100 ", "/*", "\\",
    "- a:\n  ", "llama 70b ", "digraph {", "(", "[0,", '{"nodes":[{"id":1,"children":[', "dict(", "A=1\n", "[t]\n",
    "2k in / ", "in fp8 or ", "16 users ", "two H100 nodes ", "-tp 8 ", "speculation no ",
)  # fmt: skip


_ROW_CHARS = 200_000


@examples(100)
@given(st.dictionaries(_KEYS, _ANYTHING, max_size=6))
def test_any_object_is_read_without_being_changed(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    read = read_proposal(document)
    assert repr(document) == repr(before)
    if read.document is not None:
        assert repr(read_proposal(read.document).document) == repr(read.document)


@examples(80)
@given(st.text(alphabet="{}[]()\",:'-> \n=#|/*\\tpx08abcdeg", max_size=300))
def test_any_text_is_read(text: str) -> None:
    read_proposal(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", _GARBAGE, ids=repr)
def test_a_long_row_of_anything_is_answered_soon(piece: str) -> None:
    text = piece * (_ROW_CHARS // len(piece))
    read_proposal(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [100_000, 10_000_000])
def test_garbage_of_any_size_gets_a_clear_answer(size: int) -> None:
    rng = random.Random(size)
    unit = "".join(rng.choices('{}[]",:abc123 \n', k=100_000))
    read = read_proposal(unit * (size // len(unit)))
    assert read.document is None
    assert any(note.kind == "not_understood" for note in read.notes)


def test_nesting_without_end_is_answered() -> None:
    document: dict[str, Any] = {"tp": 8}
    for _ in range(50_000):
        document = {"children": [document]}
    assert read_proposal(document).document is None
    assert any("deep" in note.what for note in read_proposal("[" * 1_000_000).notes)


def _all_corruptions() -> list[Corruption]:
    return [row for family in _FAMILIES for row in corruptions(family)]


def test_a_plan_of_our_own_comes_through_untouched_however_damaged() -> None:
    for row in _all_corruptions():
        document = apply(row.example)
        before = copy.deepcopy(document)
        assert read_proposal(document).document == expand(document)[0], row
        assert document == before, row
