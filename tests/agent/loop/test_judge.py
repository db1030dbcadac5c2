"""The judge is the only way from a model's words to a plan: whatever is proposed, a standing plan was validated."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.loop.against import REFERENCE
from shardwright.agent.loop.feedback import feedback
from shardwright.agent.loop.judge import Judgement, judge_document, judge_text, stand
from shardwright.tools.language.said import StatedDegrees, StatedStrategy
from shardwright.tools.validate import validate

from ...examples import examples
from .questions import LONG, OPEN, SMALL, STATED, desk, judge_strategy, node, question, reference_document

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["RequestNode", "ShardNode", "r0", "prefill", "n0.g0", "shardwright/plan", "{i}"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["strategy", "nodes", "edges", "tp", "prefill", "id", "type", "parent", "devices", "repeat"]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=16,
)


def stands_rightly(judgement: Judgement, request: str = SMALL) -> None:
    """Assert that a standing plan passes a fresh validation and answers the question."""
    if judgement.standing is None:
        assert not judgement.is_acceptable
        return
    document = judgement.standing.plan.model_dump(mode="json")
    assert validate(document).valid
    assert question(request).answers(document)
    assert judgement.verdict != "invalid"


@given(st.dictionaries(st.sampled_from(["strategy", "nodes", "edges", "model", "format", "x"]), JSON, max_size=5))
@examples(40)
def test_any_object_is_judged_and_told_of_without_an_exception(proposed: dict[str, Any]) -> None:
    before = copy.deepcopy(proposed)
    judgement = judge_document(desk(), proposed)
    stands_rightly(judgement)
    json.dumps(feedback(judgement, "patch"), allow_nan=False)
    assert repr(proposed) == repr(before)


@given(
    st.text(max_size=200) | JSON.map(lambda value: json.dumps(value)) | JSON.map(lambda v: f"```json\n{json.dumps(v)}")
)
@examples(40)
def test_any_text_is_judged_without_an_exception(text: str) -> None:
    stands_rightly(judge_text(desk(), text))


MUTANT_VALUES = st.sampled_from([None, True, -1, 0, 7, 1.5, "", "x", "n9.g9", [], {}, ["n0.g0", "n0.g0"], {"tp": 9}])


@given(st.data())
@examples(25)
def test_any_field_of_a_good_document_may_be_spoilt_and_only_valid_plans_stand(data: st.DataObject) -> None:
    document = reference_document()
    for _ in range(data.draw(st.integers(1, 3))):
        spoilt = data.draw(st.sampled_from(document["nodes"] + document["edges"]))
        if spoilt:
            spoilt[data.draw(st.sampled_from(sorted(spoilt)))] = data.draw(MUTANT_VALUES)
    stands_rightly(judge_document(desk(), document))


DEGREE = st.none() | st.integers(1, 4096)
DEGREES = st.builds(StatedDegrees, tp=DEGREE, pp=DEGREE, ep=DEGREE, sp=DEGREE, attention_dp=DEGREE, replicas=DEGREE)


@given(st.builds(StatedStrategy, dp=DEGREE, prefill=DEGREES, decode=DEGREES))
@examples(25)
def test_any_strategy_is_judged_without_an_exception(stated: StatedStrategy) -> None:
    stands_rightly(judge_strategy(desk(), stated))


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_a_proposal_nested_deeply_is_judged_like_any_other(depth: int) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = {"a": [deep]} if depth < 500 else [deep]
    for proposed in (
        {"strategy": {"dp": 1}, "model": {"name": deep}},
        {"format": "shardwright/plan", "strategy": {"dp": 1}, "nodes": [{"id": "x", "rank": deep}], "edges": []},
    ):
        judgement = judge_document(desk(), proposed)
        stands_rightly(judgement)
        json.dumps(feedback(judgement, "patch"))


def test_a_good_document_is_valid_as_it_stands() -> None:
    judgement = judge_document(desk(), reference_document())
    assert judgement.verdict == "valid"
    assert judgement.is_acceptable
    assert judgement.standing is not None and judgement.standing.maker == "model"


def test_a_local_fault_is_repaired_with_every_decision_kept() -> None:
    document = reference_document()
    document["edges"] = document["edges"][:-1]
    document["strategy"]["gpu_count"] = 7
    judgement = judge_document(desk(), document)
    assert judgement.verdict == "repaired"
    assert judgement.is_acceptable
    assert judgement.rules
    assert judgement.standing is not None and judgement.standing.maker == "repair"
    wanted = question(SMALL).reference_plan.strategy
    assert judgement.standing.plan.strategy == wanted


def test_without_repairs_a_faulty_proposal_is_only_told_of() -> None:
    document = reference_document()
    document["strategy"]["gpu_count"] = 7
    for judgement in (
        judge_document(desk(), document, repairs=False),
        judge_text(desk(), json.dumps(document), repairs=False),
        judge_strategy(desk(), StatedStrategy(prefill=StatedDegrees(tp=3)), repairs=False),
    ):
        assert judgement.verdict == "invalid"
        assert judgement.standing is None
        assert not judgement.fixes
        assert judgement.rules


def test_an_illegal_strategy_is_replanned_and_not_accepted_by_itself() -> None:
    judgement = judge_strategy(desk(), StatedStrategy(dp=1, prefill=StatedDegrees(tp=3)))
    assert judgement.verdict == "replanned"
    assert "TP005" in judgement.rules
    assert judgement.standing is not None
    assert not judgement.is_acceptable


@pytest.mark.one_in(2)
@pytest.mark.parametrize("repairs", [True, False])
def test_what_the_assumed_engine_cannot_start_is_no_plan_though_the_format_allows_it(repairs: bool) -> None:
    # vLLM loads attention weights once: sequence ranks in prefill need other weights than tensor ranks in decode.
    stated = StatedStrategy(dp=1, prefill=StatedDegrees(sp=4, tp=1), decode=StatedDegrees(tp=4))
    judgement = judge_strategy(desk(LONG), stated, repairs=repairs)
    assert "EN010" in judgement.rules and all(rule.startswith("EN") for rule in judgement.rules)
    assert judgement.standing is None and not judgement.is_acceptable
    on_paper = judge_strategy(desk(f"{LONG}, --engine none"), stated, repairs=repairs)
    assert on_paper.rules == () and on_paper.standing is not None


def test_a_strategy_far_larger_than_the_hardware_is_refused_by_name_and_not_laid_out() -> None:
    model_desk = desk()
    judgement = judge_strategy(model_desk, StatedStrategy(dp=1, prefill=StatedDegrees(tp=4096)))
    assert judgement.refusal is not None and judgement.refusal.startswith("GP004")
    assert "nodes" not in model_desk.get(judgement.handle or "")


def test_a_strategy_a_little_larger_than_the_hardware_is_laid_out_and_its_devices_are_found_missing() -> None:
    assert "GP004" in judge_strategy(desk(), StatedStrategy(dp=1, prefill=StatedDegrees(tp=4))).rules


def test_a_strategy_alone_is_a_proposal_in_words_and_as_an_object() -> None:
    strategy = {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}
    for judgement in (
        judge_document(desk(), {"strategy": strategy}),
        judge_text(
            desk(), f"I would take this:\n```json\n{json.dumps({'strategy': strategy})}\n```\nsince it is fast."
        ),
    ):
        assert judgement.verdict == "valid"
        assert judgement.standing is not None
        assert judgement.standing.plan.strategy.decode.tp == 2


@pytest.mark.parametrize("words", ["", "I cannot say.", "{}", "[1, 2]", '{"plan": null}', "null", "{" * 5000])
def test_words_without_a_proposal_are_unread_and_keep_no_document(words: str) -> None:
    model_desk = desk()
    judgement = judge_text(model_desk, words)
    assert judgement.verdict == "unread"
    assert judgement.refusal
    assert set(model_desk.documents) == {REFERENCE}


PINNED_LIES = {
    "model": ("model", {"name": "gpt-9", "config": {"num_hidden_layers": 1}}),
    "hardware": ("hardware", {"accelerator": "h200-sxm", "nodes": 100, "gpus_per_node": 8}),
    "workload": ("workload", {"input_tokens": 1, "output_tokens": 1, "concurrency": 1, "objective": "cost"}),
    "precision": ("precision", {"weights": "int4", "kv_cache": "int4", "activations": "int4"}),
    "policy": ("policy", {"relaxations": ["vocab_parallel"], "memory_utilization": 1.0}),
}


@pytest.mark.parametrize("name", PINNED_LIES)
def test_a_proposal_cannot_change_what_was_asked_for_and_is_told_so(name: str) -> None:
    block, lie = PINNED_LIES[name]
    document = {**reference_document(), block: lie}
    judgement = judge_document(desk(), document)
    stands_rightly(judgement)
    assert judgement.standing is not None
    assert judgement.standing.plan.model_dump(mode="json")[block] == question(SMALL).header[block]
    assert any(line.startswith(f"{block}.") for line in judgement.contradictions)


def test_claimed_figures_do_not_outlive_validation() -> None:
    document = reference_document()
    document["performance"] = {"latency": {"ttft_ms": 0.001, "tpot_ms": 0.001}}
    judgement = judge_document(desk(), document)
    stands_rightly(judgement)
    assert judgement.rules
    assert judgement.standing is not None
    assert judgement.standing.estimate.latency.ttft_ms > 1


def test_requests_in_flight_are_the_models_only_where_they_were_left_open() -> None:
    replicas = StatedStrategy(dp=4, prefill=StatedDegrees(tp=1))
    for request, stated, taken in ((OPEN, 100, 100), (SMALL, 100, 1)):
        strategy = replicas if request == OPEN else StatedStrategy(dp=1, prefill=StatedDegrees(tp=2))
        judgement = judge_strategy(desk(request), strategy, concurrency=stated)
        assert judgement.standing is not None
        assert judgement.standing.plan.workload.concurrency == taken


def test_degrees_that_the_person_asked_for_must_be_kept_where_they_can_be() -> None:
    model_desk = desk(STATED)
    without = judge_strategy(model_desk, StatedStrategy(dp=1, prefill=StatedDegrees(tp=2)))
    assert without.verdict == "valid"
    assert without.unkept is not None
    assert not without.is_acceptable
    judgement = judge_strategy(model_desk, StatedStrategy(dp=2, prefill=StatedDegrees(tp=1)))
    assert judgement.unkept is None
    assert judgement.is_acceptable


def test_a_document_stands_only_if_it_is_valid_and_answers_the_question() -> None:
    model_desk, good = desk(), reference_document()
    faulty, other = reference_document(), reference_document()
    faulty["strategy"]["gpu_count"] = 7
    other["workload"]["input_tokens"] = 1
    assert stand(model_desk, faulty, "d1") is None
    assert stand(model_desk, other, "d2") is None
    assert not model_desk.standing
    assert stand(model_desk, good, "d3") is model_desk.best


def test_findings_come_from_the_root_downwards_and_say_what_is_right() -> None:
    document = reference_document()
    document["nodes"].reverse()
    node(document, "r0.decode.s0.b0.attn.tp0")["rank"] = {"tp": 5}
    node(document, "r0.decode.s0.b0.ffn.tp1")["rank"] = {"tp": 5}
    judgement = judge_document(desk(), document, repairs=False)
    assert judgement.right is not None
    assert "nothing in prefill is faulty" in judgement.right
    assert f"of {len(document['nodes'])} nodes" in judgement.right


APART = "Serve Llama-3.1-8B on 4 H100, disaggregated prefill and decode, 2k in / 256 out, lowest latency"
TOGETHER = "Serve Llama-3.1-8B on 4 H100, no disaggregation, 2k in / 256 out, lowest latency"
ONE_BLOCK = StatedStrategy(dp=1, prefill=StatedDegrees(tp=4), decode=StatedDegrees(tp=4))
TWO_SIDES = StatedStrategy(prefill=StatedDegrees(tp=2, replicas=1), decode=StatedDegrees(tp=2, replicas=1))


@pytest.mark.parametrize(
    ("request_text", "good", "bad"), [(APART, TWO_SIDES, ONE_BLOCK), (TOGETHER, ONE_BLOCK, TWO_SIDES)]
)
def test_phases_lie_apart_or_together_as_the_person_asked(
    request_text: str, good: StatedStrategy, bad: StatedStrategy
) -> None:
    model_desk = desk(request_text)
    refused = judge_strategy(model_desk, bad)
    assert refused.verdict == "valid"
    assert refused.unkept is not None and not refused.is_acceptable
    assert "asked_for" in feedback(refused, "patch")
    assert model_desk.best is None
    assert judge_strategy(model_desk, good).is_acceptable
    assert model_desk.best is not None and model_desk.best.is_kept
