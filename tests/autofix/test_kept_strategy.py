"""A repair writes no field of the strategy that no finding needs, and its declared size wins against a lone field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.plan.document import PHASES, PhaseStrategy
from shardwright.tools.plan.view import as_mapping
from shardwright.tools.rules.base import Edit
from shardwright.tools.rules.examples import base_plan, edited
from shardwright.tools.validate import validate

from .corrupted import piled
from .settings import below, without
from .test_majority import layers

# Base plan, a field of a phase, and a value for it that means the same as leaving it out.
NEEDLESS: list[tuple[str, str, Any]] = [
    ("dense-tp2", "prefill/sp_kind", "ulysses"),
    ("disaggregated-moe", "prefill/sp_kind", "ulysses"),
    ("dense-tp2", "decode/sp_kind", "all_gather"),
    ("dense-sp2-tp2", "prefill/sp_kind", "all_gather"),
    ("dense-dp2-tp2", "prefill/replicas", 2),
    ("dense-1", "decode/replicas", 1),
    ("dense-pp2-tp2", "decode/stage_layers", [4, 4]),
    ("dense-pp3", "prefill/stage_layers", [3, 3, 2]),
    ("dense-tp2", "prefill/attention_dp", 1),
    ("dense-tp2", "decode/kv_sp", 1),
    ("moe-ep4", "prefill/tp_expert", 1),
]
# Seeds of piled corruptions; the last four once had a field changed needlessly.
PILED = [*range(20_000, 20_016), 10_017, 10_308, 10_334, 11_270]
APART = ["disaggregated-moe", "disaggregated-tp2", "disaggregated-pp2"]
NOWHERE = Edit("add_edge", value={"source": "nowhere", "target": "r0", "type": "data"})
MISNAMED = Edit("set", "r0.prefill", "phase", "decode")
NAMELESS = Edit("remove_node", "r0.prefill")
# Two nodes of an accelerator; only the network between them is known.
OWN_CLUSTER = [
    Edit("set_top", field="/hardware/nodes", value=2),
    Edit(
        "set_top",
        field="/hardware/accelerator",
        value={
            "id": "mine",
            "memory_bytes_reported": 80_000_000_000,
            "memory_bandwidth_gb_s": 2000,
            "dense_peak_tflops": {"bf16": 300},
            "typical_nic_gb_s_unidirectional_per_accelerator": 12.5,
        },
    ),
]
# Damage to the stage cut of a plan that states none: repair ends with the even cut.
RECUT: dict[str, tuple[str, list[Edit]]] = {
    "stages overlap": ("dense-pp2-tp2", layers("r0.decode.s1", 3, 7)),
    "stages and blocks suggest three cuts": (
        "dense-pp2-tp2",
        [*layers("r0.decode.s0", 0, 6), Edit("set", "r0.decode.s1", "layers", [5, 7])],
    ),
    "stages share the layers out, their blocks otherwise": (
        "dense-pp2-tp2",
        [Edit("set", "r0.decode.s0", "layers", [0, 4]), Edit("set", "r0.decode.s1", "layers", [5, 7])],
    ),
    "a block of one stage holds layers of the next": (
        "dense-pp4",
        [Edit("set", "r0.prefill.s1.b0", "layers", [4, 6])],
    ),
    "one of two branches is lost, the other is uneven": (
        "dense-dp2-pp2",
        [MISNAMED, *layers("r1.prefill.s0", 0, 4), *layers("r1.prefill.s1", 5, 7)],
    ),
}


def _plan(name: str, *edits: Edit) -> dict[str, Any]:
    return edited(base_plan(name), edits)


def _strategy(result: FixResult) -> dict[str, Any]:
    assert result.valid and result.document is not None
    return result.document["strategy"]


@pytest.mark.parametrize(("name", "field", "value"), NEEDLESS)
def test_what_is_stated_beyond_need_stays_whatever_else_is_mended(name: str, field: str, value: Any) -> None:
    stated = Edit("set_top", field=f"/strategy/{field}", value=value)
    phase = field.split("/")[0]
    wrong = Edit("set_top", field=f"/strategy/{phase}/colour", value="red")
    wanted = _plan(name, stated)["strategy"]
    assert _strategy(autofix(_plan(name, stated, NOWHERE))) == wanted
    assert _strategy(autofix(_plan(name, stated, wrong))) == wanted


def test_an_exchange_goes_with_the_split_of_the_sequence_that_it_was_for() -> None:
    plan = base_plan("dense-ulysses2-tp2")
    swapped = {**plan["strategy"], "prefill": plan["strategy"]["decode"], "decode": plan["strategy"]["prefill"]}
    assert _strategy(autofix({**plan, "strategy": swapped})) == plan["strategy"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("seed", PILED)
def test_no_field_of_a_phase_is_changed_without_which_the_plan_is_valid(seed: int) -> None:
    read = piled(seed)
    result = autofix(copy.deepcopy(read))
    before, after = as_mapping(read.get("strategy")), _strategy(result)
    for phase in PHASES:
        stated = as_mapping(before.get(phase))
        for field in PhaseStrategy.model_fields if stated else ():
            if stated.get(field) != after[phase].get(field):
                with_stated = {**after[phase], field: stated.get(field)}
                assert not validate({**(result.document or {}), "strategy": {**after, phase: with_stated}}).valid, field


@pytest.mark.parametrize("name", APART)
def test_replicas_that_the_graph_shows_are_not_written_down(name: str) -> None:
    document = _plan(name, NOWHERE)
    for phase in ("prefill", "decode"):
        del document["strategy"][phase]["replicas"]
    assert _strategy(autofix(document)) == document["strategy"]


@pytest.mark.parametrize("name", APART)
def test_a_strategy_that_is_written_anew_says_its_replicas(name: str) -> None:
    document = _plan(name)
    del document["strategy"]
    assert _strategy(autofix(document)) == base_plan(name)["strategy"]


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("fault", [MISNAMED, NAMELESS], ids=["misnamed", "missing"])
@pytest.mark.parametrize("name", ["dense-1", "dense-tp2", "dense-pp2-tp2", "moe-ep4"])
def test_declared_replicas_and_gpus_win_against_those_of_one_phase(name: str, fault: Edit, phase: str) -> None:
    lone = Edit("set_top", field=f"/strategy/{phase}/replicas", value=2)
    assert _strategy(autofix(_plan(name, fault, lone))) == base_plan(name)["strategy"]


def test_replicas_of_one_phase_win_where_the_declared_number_is_theirs() -> None:
    document = without(base_plan("disaggregated-moe"), below(base_plan("disaggregated-moe"), "r2"))
    del document["strategy"]["decode"]["replicas"]
    assert _strategy(autofix(document)) == base_plan("disaggregated-moe")["strategy"]


@pytest.mark.parametrize("name", RECUT)
def test_a_cut_that_nobody_stated_and_little_shows_is_the_even_one(name: str) -> None:
    base, damage = RECUT[name]
    result = autofix(_plan(base, *damage))
    assert _strategy(result) == base_plan(base)["strategy"]
    assert result.replanned is None


def test_an_uneven_cut_that_the_graph_shows_stays_and_is_not_written_down() -> None:
    document = _plan("dense-pp3-uneven", NOWHERE)
    del document["strategy"]["decode"]["stage_layers"]
    result = autofix(document)
    assert _strategy(result) == document["strategy"]
    assert [step["path"] for fix in result.fixes for step in fix.patch if step["op"] != "test"] == [
        f"/edges/{len(document['edges']) - 1}"
    ]


@pytest.mark.parametrize("fault", [(), (MISNAMED,)], ids=["whole", "a phase misnamed"])
def test_stages_that_straddle_nodes_stay_where_they_are(fault: tuple[Edit, ...]) -> None:
    document = _plan("dense-tp2", *OWN_CLUSTER, *fault, NOWHERE)
    for node in document["nodes"]:
        if "devices" in node:
            node["devices"] = ["n1.g7" if device == "n0.g1" else device for device in node["devices"]]
    result = autofix(document)
    assert _strategy(result) == base_plan("dense-tp2")["strategy"]
    assert result.replanned is None
    assert not any("devices" in str(step["path"]) for fix in result.fixes for step in fix.patch)


@pytest.mark.parametrize("name", ["dense-1", "dense-tp2", "moe-ep4"])
def test_a_linear_layer_on_a_gpu_of_its_own_adds_none_to_the_plan(name: str) -> None:
    twin = {"id": "twin", "type": "LinearNode", "parent": "r0.decode.s0.b0.attn", "rank": {}}
    edits = [Edit("add_node", value={**twin, "devices": [device]}) for device in ("n0.g0", "n0.g7")]
    result = autofix(_plan(name, *edits))
    assert _strategy(result) == base_plan(name)["strategy"]
    assert result.replanned is None
