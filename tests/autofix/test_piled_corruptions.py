"""Many corruptions at once: repair always ends, soon, in the same plan however the document is ordered."""

from __future__ import annotations

import random

import pytest

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.validate import validate

from .corrupted import piled, replayed


@pytest.mark.timeout(60)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(8))
def test_piled_corruptions_end_in_a_valid_plan(seed: int) -> None:
    document = piled(seed)
    result = autofix(document)
    assert result.valid and validate(result.document or {}).valid
    assert replayed(result) == result.document


@pytest.mark.parametrize("seed", range(100, 104))
def test_the_order_of_nodes_and_edges_means_nothing(seed: int) -> None:
    document, shuffled = piled(seed, 6), piled(seed, 6)
    rng = random.Random(seed)
    rng.shuffle(shuffled["nodes"])
    rng.shuffle(shuffled["edges"])
    assert content_hash(autofix(document).document) == content_hash(autofix(shuffled).document)


def test_two_fixes_of_one_place_wait_for_one_another() -> None:
    document = base_plan("dense-dp2-tp2")
    claim = {"step": "data_parallelism", "decision": "2 replicas, to halve the latency of each request"}
    document["reasoning"] = [claim, *document["reasoning"][:3], claim]
    assert {violation.rule for violation in validate(document).violations} == {"CO006", "DP004"}
    result = autofix(document)
    assert result.valid and replayed(result) == result.document
    assert [step["step"] for step in (result.document or {})["reasoning"]][-1] == "data_parallelism"


def test_figures_that_lack_something_and_cannot_be_computed_again_are_taken_away() -> None:
    document = base_plan("dense-tp2")
    # Its links have no stated bandwidth: the plan is valid, and its collectives cannot be timed.
    card = {"id": "mine", "memory_bytes_reported": 80 * 10**9, "memory_bandwidth_gb_s": 2000}
    document["hardware"]["accelerator"] = {**card, "dense_peak_tflops": {"bf16": 300}}
    document["performance"] = {"memory": {"kv_cache_bytes_total": 1}}
    result = autofix(document)
    assert result.valid and replayed(result) == result.document
    assert "performance" not in (result.document or {})
