"""The work of a repair for each strategy or fix is bounded, and quick distances equal the plain ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.autofix.autofix import autofix
from shardwright.tools.autofix.distance import pair_preference, phase_distance, preference, stages_distance
from shardwright.tools.plan.document import PhaseStrategy, Strategy
from shardwright.tools.plan.placement import is_disaggregated
from shardwright.tools.rules.examples import base_plan

from .settings import any_strategies, phases


@given(author=any_strategies(), other=any_strategies(), has_ffn=st.booleans())
def test_replicas_of_one_pair_are_as_far_as_the_strategies_that_they_make(
    author: Strategy, other: Strategy, has_ffn: bool
) -> None:
    is_apart = is_disaggregated(other)
    pair = tuple(phase.model_copy(update={"replicas": None}) for phase in (other.prefill, other.decode))
    degrees = sum(
        phase_distance(side, degrees, phase, has_ffn=has_ffn)
        for side, degrees, phase in zip((author.prefill, author.decode), pair, ("prefill", "decode"), strict=True)
    )
    counts = (other.prefill.replicas or 0, other.decode.replicas or 0) if is_apart else (other.dp, other.dp)
    quick_preference = pair_preference(author, pair[0], pair[1], degrees, is_apart=is_apart)(*counts)
    assert quick_preference == preference(author, other, has_ffn=has_ffn)[:3]


@given(author=phases(), stage=phases(), stages=st.integers(1, 16))
def test_stages_add_what_they_count_alone(author: PhaseStrategy, stage: PhaseStrategy, stages: int) -> None:
    same_stages, other_stages = (
        phase_distance(author, stage.model_copy(update={"pp": pp, "stage_layers": None}), "prefill")
        for pp in (author.pp, stages)
    )
    assert other_stages == pytest.approx(same_stages + stages_distance(author, stages), abs=1e-12)


@pytest.mark.thorough
def test_fixes_of_many_elements_are_told_as_few() -> None:
    document, count = base_plan("dense-tp2"), 300
    document["hardware"]["nodes"] = document["strategy"]["dp"] = count + 1
    # Each replica is like the one before, which says nothing: none can be written out, and all are to be filled.
    document["nodes"] += [
        {
            "type": "ReplicaNode",
            "parent": "request",
            "id": f"L{index}",
            "index": index,
            "like": "r0" if index == 1 else f"L{index - 1}",
        }
        for index in range(1, count + 1)
    ]
    result = autofix(document)
    assert result.valid and len((result.document or {})["nodes"]) > 100 * count / 10
    assert len(result.fixes) <= 4
