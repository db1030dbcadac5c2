"""The imbalance of experts is stated in words, an argument or a brief, or taken from measurements."""

from __future__ import annotations

import pytest

import shardwright
from shardwright.agent.stated.request import intent_of
from shardwright.tools.language.brief import read_brief
from shardwright.tools.language.errors import RequestError

LOAD = "Serve Qwen3-30B-A3B on 8 H100, EP8, 1k in, 64 out, 8 users, "
STATED = {
    "expert imbalance of 1.4x": 1.4,
    "expert imbalance 1.4": 1.4,
    "MoE load imbalance: 2": 2.0,
    "expert load imbalance factor is about 1.25": 1.25,
    "the hottest expert rank gets 1.6 times the mean load": 1.6,
    "busiest expert group at 1.5× the average": 1.5,
    "专家负载不均衡系数 1.5": 1.5,
    "专家不均衡度为1.3": 1.3,
    "最热的专家组是平均的 1.5 倍": 1.5,
}
NOT_STATED = (
    "expert imbalance unknown",
    "the model has 128 experts, 8 active",
    "expert imbalance 20%",
    "we saw imbalance of 1.4 between the nodes",
)


@pytest.mark.parametrize(("words", "factor"), STATED.items())
def test_words_state_it(words: str, factor: float) -> None:
    workload = intent_of(LOAD + words).workload
    assert (workload.expert_imbalance, workload.input_tokens, workload.concurrency) == (factor, 1024, 8)


@pytest.mark.parametrize("words", NOT_STATED)
def test_other_words_do_not(words: str) -> None:
    assert intent_of(LOAD + words).workload.expert_imbalance is None


def test_less_than_the_mean_is_refused() -> None:
    with pytest.raises(RequestError, match="from 1 to"):
        intent_of(LOAD + "expert imbalance 0.5")


def test_it_is_an_argument_and_a_row_of_a_brief() -> None:
    brief = "| Model | Qwen3-30B-A3B |\n|---|---|\n| GPUs | 8 H100 |\n| Expert imbalance | 1.4 |\n"
    assert read_brief([("brief.md", brief)]).expert_imbalance == 1.4
    answer = shardwright.search(model="Qwen3-30B-A3B", hardware="1x2:h100-sxm", input_tokens=512, expert_imbalance=1.4)
    assert answer.best is not None


@pytest.mark.thorough
def test_more_of_it_is_no_faster_and_the_estimate_says_where_it_comes_from() -> None:
    times = {}
    for stated in ("", "expert imbalance 1", "expert imbalance 3"):
        estimate = shardwright.plan(LOAD + stated).estimate
        assert estimate is not None
        times[stated] = estimate.latency.prefill_ms
        (note,) = [note for note in estimate.notes if "expert groups" in note]
        assert ("the workload states" in note) == bool(stated)
    assert times["expert imbalance 1"] < times[""] < times["expert imbalance 3"]
