"""A plan of which much is missing keeps the strategy that it declares: lost nodes are no sign of a smaller one."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from typing import Any

import pytest

from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.autofix.intent import read_intent
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_names, base_plan, edited

from .references import reference_plan
from .settings import below, without

every_base = pytest.mark.parametrize("name", base_names())
LARGE = "Llama-3.1-70B over eight GPUs"
NAMES = [*base_names(), LARGE]


@cache
def _large_plan() -> dict[str, Any]:
    degrees = {"tp": 8, "tp_ffn": 8}
    document: dict[str, Any] = {
        **{key: value for key, value in base_plan("dense-tp2").items() if key in ("format", "version", "precision")},
        "model": {"name": "Llama-3.1-70B"},
        "hardware": {"accelerator": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
        "workload": {"input_tokens": 2048, "output_tokens": 256, "concurrency": 8},
        "strategy": {"dp": 1, "gpu_count": 8, "prefill": degrees, "decode": degrees},
    }
    plan = reference_plan(read_intent(PlanView(document)))
    assert plan is not None
    return plan.model_dump(mode="json")


def _plan(name: str) -> dict[str, Any]:
    return copy.deepcopy(_large_plan()) if name == LARGE else base_plan(name)


def _end_of_strategy(text: str) -> int:
    start = text.index("{", text.index('"strategy"'))
    return json.JSONDecoder().raw_decode(text, start)[1]


def _keeps(result: FixResult, wanted: dict[str, Any]) -> bool:
    return result.valid and result.document is not None and result.document["strategy"] == wanted["strategy"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_breaks_off_keeps_the_strategy_that_it_declares(name: str) -> None:
    wanted = _plan(name)
    text = json.dumps(wanted, indent=1)
    # Where the first cut lies depends on the plan: all plans together are cut at every percent that leaves a strategy.
    percents = range(5 + NAMES.index(name) % 15, 100, 15)
    cuts = [cut for cut in (len(text) * percent // 100 for percent in percents) if cut >= _end_of_strategy(text)]
    assert cuts
    assert [cut for cut in cuts if not _keeps(autofix(text[:cut]), wanted)] == []


@pytest.mark.parametrize("size", [9000, 12000])
def test_the_first_bytes_of_a_large_plan_keep_its_strategy(size: int) -> None:
    text = json.dumps(_plan(LARGE), indent=2)
    assert _end_of_strategy(text) < size
    assert _keeps(autofix(text[:size]), _plan(LARGE))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", NAMES)
def test_a_graph_that_lost_nodes_keeps_the_strategy_that_it_declares(name: str) -> None:
    rng, wanted = random.Random(name), _plan(name)
    for with_edges in (True, False):
        document, share = _plan(name), rng.uniform(0.1, 0.6)
        lost = {node["id"] for node in document["nodes"] if rng.random() < share}
        if with_edges:
            document["nodes"] = [node for node in document["nodes"] if node["id"] not in lost]
        else:
            document = without(document, lost)
        assert _keeps(autofix(document), wanted)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("dense-1", "tp"),
        ("dense-1", "tp_ffn"),
        ("dense-tp2", "tp"),
        ("dense-tp4", "tp_ffn"),
        ("dense-sp2-tp2", "sp"),
        ("moe-ep4", "ep"),
        ("moe-shared-tp2-ep4", "tp"),
    ],
)
def test_a_graph_that_is_whole_overrules_a_larger_declaration(name: str, field: str) -> None:
    wanted = base_plan(name)
    overstated = edited(base_plan(name), [Edit("set_top", field=f"/strategy/prefill/{field}", value=8)])
    assert _keeps(autofix(overstated), wanted)


def test_one_operator_of_another_degree_does_not_overrule_the_rest() -> None:
    document = base_plan("dense-tp4")
    document["strategy"]["decode"]["tp"] = 8
    lost = {node["id"] for node in document["nodes"] if node["id"].startswith("r0.prefill") and "attn." in node["id"]}
    assert _keeps(autofix(without(document, lost)), base_plan("dense-tp4"))


def test_replicas_that_the_gpu_count_does_not_bear_out_are_not_invented() -> None:
    document = base_plan("disaggregated-moe")
    document["strategy"]["prefill"]["replicas"] += 1
    assert _keeps(autofix(document), base_plan("disaggregated-moe"))


@pytest.mark.parametrize("lost", ["r0", "r1", "r2"])
@pytest.mark.parametrize("unsaid", [(), ("prefill",), ("decode",), ("prefill", "decode")], ids=str)
def test_a_lost_replica_is_of_the_kind_that_the_gpu_count_bears_out(lost: str, unsaid: tuple[str, ...]) -> None:
    document = without(base_plan("disaggregated-moe"), below(base_plan("disaggregated-moe"), lost))
    for phase in unsaid:
        del document["strategy"][phase]["replicas"]
    assert _keeps(autofix(document), base_plan("disaggregated-moe"))


def test_a_lost_side_of_which_nothing_is_said_is_no_other_side_of_the_replicas_that_are_left() -> None:
    document = without(base_plan("disaggregated-moe"), below(base_plan("disaggregated-moe"), "r2"))
    del document["strategy"]["decode"]
    result = autofix(document)
    strategy = (result.document or {})["strategy"]
    assert result.valid
    assert [strategy[phase]["replicas"] for phase in ("prefill", "decode")] == [2, 1]
