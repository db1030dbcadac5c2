"""Proposals in other formats are read for their model, hardware, degrees, devices and load."""

from __future__ import annotations

import json

import pytest

from shardwright.tools.autofix.foreign.reader import read_proposal
from shardwright.tools.plan.view import PlanView
from shardwright.tools.rules.registry import find_rule

from .proposals import Proposal, differences, proposals


@pytest.mark.one_in(3)
@pytest.mark.parametrize("proposal", proposals(), ids=str)
def test_a_foreign_proposal_is_read_for_what_it_says(proposal: Proposal) -> None:
    assert differences(read_proposal(proposal.text), proposal.expected) == []


@pytest.mark.one_in(4)
@pytest.mark.parametrize("proposal", proposals(), ids=str)
def test_reading_what_was_read_changes_nothing(proposal: Proposal) -> None:
    first = read_proposal(proposal.text).document
    assert first is not None
    assert read_proposal(first).document == first
    assert read_proposal(json.dumps(first)).document == first


@pytest.mark.parametrize("proposal", [proposal for proposal in proposals() if proposal.says_a_graph], ids=str)
def test_what_is_read_into_a_graph_stands_where_the_format_has_it(proposal: Proposal) -> None:
    document = read_proposal(proposal.text).document
    view = PlanView(document)
    assert view.nodes
    for rule in ("ST003", "ST006", "ST007"):
        assert list(find_rule(rule).run(view)) == []
    assert len(view.by_id) == len(view.nodes)


def test_what_is_ambiguous_is_noted_and_not_guessed() -> None:
    read = read_proposal({"model": "Llama-3.1-8B", "tp": 4, "parallelism": {"tp": 8}})
    assert "tp" not in (read.document or {}).get("strategy", {}).get("prefill", {})
    assert any(note.kind == "not_understood" and "tp" in note.what for note in read.notes)


def test_an_unknown_key_is_said_to_be_unknown() -> None:
    read = read_proposal({"model": "Llama-3.1-8B", "tp": 2, "sparkle_factor": 3})
    assert any(note.kind == "not_understood" and note.where == "/sparkle_factor" for note in read.notes)


def test_a_phase_of_its_own_counts_before_what_is_said_of_both() -> None:
    strategy = (read_proposal({"model": "Llama-3.1-70B", "tp": 8, "decode": {"tp": 4}}).document or {})["strategy"]
    assert (strategy["prefill"]["tp"], strategy["decode"]["tp"]) == (8, 4)


def test_half_open_layer_ranges_are_read_as_such_only_where_they_fit_the_model() -> None:
    stages = [{"layers": [0, 40], "gpus": "0-3"}, {"layers": [40, 80], "gpus": "4-7"}]
    read = read_proposal({"model": "Llama-3.1-70B", "stages": stages}).document or {}
    spans = [node["layers"] for node in read["nodes"] if node["type"] == "PipelineStageNode"]
    assert sorted(spans) == [[0, 39], [0, 39], [40, 79], [40, 79]]


def test_an_empty_list_of_nodes_counts_no_hardware() -> None:
    read = read_proposal({"model": "Llama-3.1-8B", "hardware": {"nodes": [], "gpu_count": 8}}).document or {}
    assert read["hardware"] == {"nodes": 1, "gpus_per_node": 8}


def test_edges_are_kept_between_siblings_with_the_type_that_they_call_for() -> None:
    read = read_proposal(
        {
            "model": "Llama-3.1-8B",
            "prefill": {
                "nodes": [
                    {"id": "attn", "type": "attention"},
                    {"id": "a", "type": "shard", "parent": "attn", "gpu": 0},
                    {"id": "b", "type": "shard", "parent": "attn", "gpu": 1},
                    {"id": "sum", "type": "all_reduce", "parent": "attn", "gpus": [0, 1]},
                ],
                "edges": ["{a b} -> sum", "sum -> nowhere"],
            },
        }
    )
    edges = (read.document or {})["edges"]
    assert [(edge["source"], edge["target"], edge["type"]) for edge in edges] == [
        ("a", "sum", "synchronization"),
        ("b", "sum", "synchronization"),
    ]
    assert any("nowhere" in note.what for note in read.notes)


def test_nothing_is_counted_in_a_text_that_breaks_off() -> None:
    whole = (
        '{"model": "Llama-3.1-70B", "stages": [{"layers": "0-39", "gpus": "0-3"}, {"layers": "40-79", "gpus": "4-7"}]}'
    )
    strategies = [(read_proposal(text).document or {}).get("strategy", {}) for text in (whole, whole[:80])]
    assert [strategy.get("prefill", {}).get("pp") for strategy in strategies] == [2, None]


def test_parts_of_one_proposal_are_not_several() -> None:
    text = "Here:\n```yaml\nmodel: Llama-3.1-70B\nprefill: {tp: 4, pp: 2}\ndecode: {tp: 8, pp: 1}\n```\n"
    assert not any("proposals" in note.what for note in read_proposal(text).notes)
