"""Nodes with an unknown network between them: what is planned for them, and what is refused."""

from __future__ import annotations

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.report.plan import render_plan
from shardwright.tools.errors import MissingFieldError
from shardwright.tools.plan.placement import is_disaggregated, stage_width


@pytest.mark.thorough
def test_replicas_stay_in_a_node_and_the_first_lines_say_what_is_not_known() -> None:
    result = plan("Llama-3.1-8B on 2 nodes of 6 L40S, 8 requests/s, 1000 in 200 out")
    assert result.plan is not None and result.report is not None
    strategy = result.plan.strategy
    assert not is_disaggregated(strategy)
    assert 6 % (stage_width(strategy.decode) * strategy.decode.pp) == 0
    assert "how fast nodes of l40s send to each other is not known" in render_plan(result, width=2000).split("\n\n")[0]


@pytest.mark.thorough
def test_an_open_number_of_gpus_is_found_in_nodes_that_replicas_stay_in() -> None:
    result = plan("Llama-3.1-8B on L4, 1000 in 100 out, 40 requests/s")
    assert result.plan is not None and result.valid
    hardware, strategy = result.plan.hardware, result.plan.strategy
    assert hardware.nodes > 1 and not is_disaggregated(strategy)
    assert hardware.gpus_per_node % (stage_width(strategy.decode) * strategy.decode.pp) == 0
    head = render_plan(result, width=2000).split("\n\n")[0]
    assert "how fast nodes of l4 send to each other is not known" in head
    assert "planned for the fewest that hold every limit" in head


def test_what_no_node_holds_is_an_error_that_names_the_field_and_how_to_say_it() -> None:
    request = "Llama-3.1-70B in bf16 on 4 nodes of 2 L40S"
    with pytest.raises(MissingFieldError, match=r"'inter_node_bw_gb_s' is missing.*say it \(100 Gbit/s between"):
        plan(request)
    assert plan(f"{request}, 100 gig ethernet between them").plan is not None


def test_of_cards_to_choose_from_one_whose_network_is_not_known_leaves_the_others_answered() -> None:
    result = plan("Qwen3-32B in bf16 on 4 nodes of 1 L40S or H100, 512 in 64 out, 2 users")
    assert result.plan is not None and result.plan.hardware.accelerator == "h100-sxm" and result.report is not None
    chosen = next(fact.reason for fact in result.report.assumptions if fact.field == "hardware.accelerator")
    assert "left out: hardware (l40s): field 'inter_node_bw_gb_s' is missing" in chosen
    with pytest.raises(MissingFieldError, match=r"l40s.*elsewhere no strategy on 4 × h100-sxm.*0\.1 ms"):
        plan("Qwen3-32B in bf16 on 4 nodes of 1 L40S or H100, 512 in 64 out, 2 users, TPOT at most 0.1 ms")


def test_what_is_said_to_lie_apart_needs_the_network() -> None:
    with pytest.raises(MissingFieldError, match=r"inter_node_bw_gb_s.*or have prefill and decode share replicas"):
        plan("Llama-3.1-8B on 2 nodes of 4 L40S, prefill and decode disaggregated, 1000 in 200 out")


@pytest.mark.thorough
def test_every_way_to_name_hardware_knows_of_nodes_that_replicas_stay_in() -> None:
    """Sixteen GPUs hold the first rate: where the number is open, and where one node of eight is named."""
    asked = "Llama-3.2-1B on {}, {} requests/s, 512 in, 64 out, TTFT under 4 s, without disaggregation"
    named = plan(asked.format("8 L4", 300)).infeasible
    opened = plan(asked.format("L4", 300)).plan
    assert opened is not None and named is not None and named.needs.gpus == opened.strategy.gpu_count == 16
    with pytest.raises(MissingFieldError, match=r"replicas stay in a node does \(\d+ GPUs would do so\), and traffic"):
        plan(asked.format("2 nodes of 8 L4", 600))
