"""A plan compared with a strategy in words: their meaning, refusals, and the layout that they describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardwright
from shardwright.agent.planning.plan_of_words import plan_of_words, strategy_of_words
from shardwright.tools.errors import InputError
from shardwright.tools.plan.constraints import ReplicasConstraint
from shardwright.tools.plan.describe import describe
from shardwright.tools.plan.document import PhaseStrategy

from ..comparison.plans import dense, moe
from ..examples import examples

CASES = json.loads((Path(__file__).parents[1] / "cases" / "strategies_in_words.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["read"], ids=lambda case: case["words"])
def test_words_mean_their_degrees(case: dict[str, Any]) -> None:
    assert strategy_of_words(case["words"]).model_dump(exclude_defaults=True) == case["means"]


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["words"] or "nothing")
def test_words_that_are_no_strategy_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        strategy_of_words(case["words"])
    assert case["because"] in str(refusal.value)
    assert "\n" not in str(refusal.value)


@examples(100)
@given(st.text(max_size=600))
def test_any_text_is_a_strategy_or_one_line(text: str) -> None:
    try:
        strategy_of_words(text)
    except InputError as error:
        assert len(str(error)) < 500


DEGREES = st.sampled_from([1, 2, 4])
PHASES = st.builds(lambda pp, tp: PhaseStrategy(pp=pp, tp=tp, tp_ffn=tp), st.sampled_from([1, 2]), DEGREES)


@examples(40)
@given(PHASES, PHASES, st.sampled_from([2, 3]), st.booleans())
def test_what_a_report_calls_a_strategy_reads_back_as_it(
    prefill: PhaseStrategy, decode: PhaseStrategy, dp: int, apart: bool
) -> None:
    base = dense()
    if apart:
        prefill, decode = (phase.model_copy(update={"replicas": dp}) for phase in (prefill, decode))
        dp *= 2
    strategy = base.strategy.model_copy(update={"dp": dp, "prefill": prefill, "decode": decode})
    wide = base.model_copy(update={"hardware": base.hardware.model_copy(update={"nodes": 16})})
    read = plan_of_words(describe(strategy), wide).strategy
    assert (read.dp, read.prefill, read.decode) == (dp, prefill, decode)


def test_a_text_is_a_file_where_there_is_one_and_words_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = shardwright.compare(dense(), "DP2 of TP2")
    assert words.b.strategy.dp == 2
    Path("DP2 of TP2").write_text(dense("TP4 DP1").model_dump_json())
    assert shardwright.compare(dense(), "DP2 of TP2").b.strategy.prefill.tp == 4
    with pytest.raises(InputError, match="No such file"):
        shardwright.compare(dense(), "missing.json")


def test_words_are_laid_out_under_the_plan_s_own_model_hardware_and_load() -> None:
    comparison = shardwright.compare(dense(output_tokens=96), "TP4 DP1")
    assert comparison.question == ()
    assert comparison.b.workload.output_tokens == 96
    assert comparison.b.valid


@pytest.mark.parametrize(
    ("words", "is_told"),
    [("DP2 of TP2", True), ("DP2 of TP2, no EP", False), ("DP2 of EP2 × TP2", False), ("TP1", False)],
)
def test_where_words_leave_the_experts_open_it_is_told_how_they_were_taken(words: str, is_told: bool) -> None:
    comparison = shardwright.compare(moe(), words)
    assert (
        any("do not say how experts lie" in line and 'add "no EP"' in line for line in comparison.b.caveats) == is_told
    )
    assert comparison.a.caveats == () and shardwright.compare(dense(), "DP1 of TP2").b.caveats == ()


def test_a_strategy_larger_than_the_hardware_is_judged_not_refused() -> None:
    comparison = shardwright.compare(dense(), "DP16 of TP4")
    assert not comparison.b.valid
    assert "GP004" in {violation.rule for violation in comparison.b.violations}


def test_a_relaxation_named_by_its_degree_is_in_force() -> None:
    comparison = shardwright.compare(moe(), "attention-DP2 × TP1 DP1")
    assert comparison.b.relaxations == ("attention_dp",)
    assert comparison.b.valid, comparison.b.violations
    assert {"what": "relaxations", "a": None, "b": "attention_dp"} in [row.model_dump() for row in comparison.question]


def test_words_with_a_relaxation_of_their_own_are_judged_by_the_constraints_of_the_plan() -> None:
    constraint = ReplicasConstraint(kind="replicas", value=2, words="two replicas")
    plan = moe()
    policy = plan.policy.model_copy(update={"constraints": (constraint,)})
    comparison = shardwright.compare(plan.model_copy(update={"policy": policy}), "attention-DP2 × TP1 DP1")
    assert "CO008" in {violation.rule for violation in comparison.b.violations}
