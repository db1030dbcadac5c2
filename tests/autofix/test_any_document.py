"""For any document repair never raises, its verdict is true, and a second repair changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.errors import InputError
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

from ..examples import examples
from ..rules.corruptions import damaged_plans, foreign_plans
from .corrupted import piled, replayed

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = ("format", "version", "model", "hardware", "workload", "precision", "policy", "strategy", "nodes", "edges")


WITHOUT_EDGES = Path(__file__).parents[1] / "cases" / "without_edges.json"


def holds_true(result: FixResult) -> None:
    """Check that the verdict is true, that the patches lead to the document, and that nothing is left to repair."""
    report = validate(result.document) if result.document is not None else None
    assert result.valid == (report is not None and report.valid)
    assert replayed(result) == result.document
    assert result.valid or result.remaining
    if result.document is not None:
        again = autofix(result.document)
        assert (again.fixes, again.document) == ((), result.document)


@examples(30, suppress_health_check=_SLOW, derandomize=True)
@given(damaged_plans())
def test_a_damaged_plan_is_mended_or_told_why_not(document: dict[str, Any]) -> None:
    holds_true(autofix(document))


@examples(40, suppress_health_check=_SLOW)
@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=8))
def test_random_json_is_answered(document: dict[str, Any]) -> None:
    holds_true(autofix(document))


@examples(10, suppress_health_check=_SLOW)
@given(foreign_plans())
def test_a_valid_plan_in_any_style_is_left_alone(document: dict[str, Any]) -> None:
    result = autofix(document)
    assert result.valid and not result.fixes and result.document == document


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_what_was_mended_needs_no_mending(seed: int) -> None:
    result = autofix(piled(seed, 8))
    assert autofix(result.document or {}).fixes == ()


@pytest.mark.parametrize("seed", [2])
def test_repair_says_the_same_twice(seed: int) -> None:
    assert autofix(piled(seed, 6)).model_dump_json() == autofix(piled(seed, 6)).model_dump_json()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"nodes": 1}', "[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000])
def test_text_that_is_no_plan_is_answered(text: str) -> None:
    result = autofix(text)
    assert not result.valid and result.remaining and not result.fixes


def test_a_document_nested_too_deeply_is_answered() -> None:
    document = base_plan("dense-tp2")
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    document["model"]["config"]["strange"] = deep
    document["nodes"][3]["devices"] = deep
    result = autofix(document)
    assert result.document is not None and result.document["model"]["config"]["strange"]
    assert any("nested too deeply" in note and "/model/config/strange" in note for note in result.notes)
    json.dumps(result.document)


@pytest.mark.timeout(60)
def test_garbage_of_a_great_size_is_answered_soon() -> None:
    junk: dict[str, Any] = {"id": "x", "type": "ShardNode", "parent": "y", "rank": {"tp": 10**9}, "devices": ["q"] * 9}
    document = {**base_plan("dense-tp2")}
    document["nodes"] = [*document["nodes"], *({**junk, "id": f"{i % 97}"} for i in range(1000)), *range(500)]
    document["edges"] = [*document["edges"], *({"source": f"{i}", "target": "x", "type": "z"} for i in range(1000))]
    result = autofix(document)
    assert result.valid and content_hash(result.document) == content_hash(base_plan("dense-tp2"))


def test_numbers_as_text_and_names_in_other_words_are_read() -> None:
    document = base_plan("dense-tp2")
    words = json.dumps(document).replace('"AllReduceNode"', '"all_reduce"').replace('"synchronization"', '"sync"')
    document = json.loads(words.replace('"prefill"', '"Prefill"', 1).replace('"tp": 1', '"tp": "1"'))
    document["workload"]["inputTokens"] = str(document["workload"].pop("input_tokens"))
    result = autofix(document)
    assert result.valid and content_hash(result.document) == content_hash(base_plan("dense-tp2"))


def test_nothing_that_was_decided_is_changed_where_only_safe_fixes_are_wanted() -> None:
    document = base_plan("dense-tp2")
    document["strategy"]["decode"]["tp"] = 4
    del document["edges"][3]
    result = autofix(document, safe_only=True)
    assert not result.valid and all(fix.safety != "strategy" for fix in result.fixes)
    assert (result.document or {})["strategy"] == document["strategy"] and result.fixes


def test_a_file_that_cannot_be_opened_is_refused() -> None:
    with pytest.raises(InputError):
        autofix("no such file")


def test_a_list_that_is_missing_is_begun_before_anything_is_put_into_it() -> None:
    result = autofix(json.loads(WITHOUT_EDGES.read_text(encoding="utf-8")))
    assert result.valid
    holds_true(result)
