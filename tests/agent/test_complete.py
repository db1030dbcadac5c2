"""Later statements win, counts fill nodes by the stated rule, and every unstated figure is an assumption."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.intent.complete import complete
from shardwright.agent.intent.intent import Intent
from shardwright.tools.catalog.accelerators import Accelerator, DensePeakTFLOPS
from shardwright.tools.catalog.models import load_model
from shardwright.tools.errors import UnknownNameError
from shardwright.tools.language.errors import RequestError
from shardwright.tools.language.request import read_request
from shardwright.tools.language.said import Said
from shardwright.tools.plan.document import ServingBlock

MODEL = "Llama-3.1-8B"


def assumed(intent: Intent) -> set[str]:
    return {assumption.field for assumption in intent.assumptions}


def test_a_flag_wins_over_the_request_and_the_override_is_reported() -> None:
    request = read_request("Llama-3.1-70B on 2x8 H100, 4k/1k, TTFT p99 < 2s")
    intent = complete(request, Said(gpus=4, input_tokens=2048, ttft_ms_max=500.0))
    assert intent.hardware is not None
    assert (intent.hardware.nodes, intent.hardware.gpus_per_node) == (1, 4)
    assert (intent.workload.input_tokens, intent.workload.output_tokens) == (2048, 1024)
    assert (intent.workload.ttft_ms_max, intent.workload.ttft_statistic) == (500.0, "p99")
    assert any("input length in tokens" in note and "4096" in note for note in intent.readings)


def test_a_model_config_given_later_replaces_the_named_model() -> None:
    config = dict(load_model("Llama-3.1-8B").config)
    intent = complete(Said(model="Llama-3.1-70B", gpus=8, accelerator="h100-sxm"), Said(model_config_object=config))
    assert intent.model.config == config


def test_relaxations_add_up() -> None:
    statements = (Said(model=MODEL, relaxations=("attention_dp",)), Said(relaxations=("vocab_parallel",)))
    assert complete(*statements).relaxations == ("attention_dp", "vocab_parallel")


@pytest.mark.parametrize(
    ("gpus", "nodes", "per_node"), [(1, 1, 1), (4, 1, 4), (8, 1, 8), (12, 2, 6), (13, 13, 1), (16, 2, 8), (64, 8, 8)]
)
def test_a_bare_count_fills_usual_nodes_or_shares_them_evenly(gpus: int, nodes: int, per_node: int) -> None:
    intent = complete(Said(model=MODEL, accelerator="h100-sxm", gpus=gpus))
    assert intent.hardware is not None
    assert (intent.hardware.nodes, intent.hardware.gpus_per_node) == (nodes, per_node)
    assert "hardware.nodes" in assumed(intent)


@given(st.integers(min_value=1, max_value=2000))
def test_no_accelerator_is_lost_or_invented_when_a_count_is_split(gpus: int) -> None:
    intent = complete(Said(model=MODEL, accelerator="gb200", gpus=gpus))
    assert intent.hardware is not None
    assert intent.hardware.gpus == gpus
    assert intent.hardware.gpus_per_node <= 4


def test_no_accelerator_leaves_the_hardware_to_the_planner() -> None:
    intent = complete(Said(model=MODEL))
    assert intent.hardware is None
    assert "hardware" in assumed(intent)


def test_a_kind_without_a_count_is_open() -> None:
    intent = complete(Said(model=MODEL, accelerator="h100-sxm"))
    assert intent.hardware is not None
    assert (intent.hardware.nodes, intent.hardware.gpus_per_node) == (None, 8)


def test_a_card_of_ones_own_is_carried_whole() -> None:
    card = Accelerator(
        id="own", memory_gb_marketing=64, memory_bandwidth_gb_s=1600, dense_peak_tflops=DensePeakTFLOPS(bf16=320)
    )
    intent = complete(Said(model=MODEL, accelerator_object=card, gpus=4, weights="fp8"))
    assert intent.hardware is not None
    assert intent.hardware.accelerator == card
    assert intent.precision.activations == "bf16"  # the card states no fp8 units
    assert "hardware.typical_node" in assumed(intent)


@pytest.mark.parametrize(("objective", "is_open"), [("latency", False), ("throughput", True), ("cost", True)])
def test_no_concurrency_is_one_for_latency_and_else_the_most_that_fits(objective: str, is_open: bool) -> None:
    intent = complete(Said.model_validate({"model": MODEL, "objective": objective}))
    assert (intent.concurrency_open, intent.workload.concurrency) == (is_open, 1)


def test_lengths_beyond_the_model_are_refused_with_the_limit() -> None:
    with pytest.raises(RequestError, match="131072"):
        complete(Said(model="Llama-3.1-70B", input_tokens=131072, output_tokens=1))
    complete(Said(model="Llama-3.1-70B", input_tokens=131071, output_tokens=1))


def test_the_upper_end_of_a_range_must_fit_too() -> None:
    with pytest.raises(RequestError, match="max_position_embeddings"):
        complete(Said(model="Llama-3.1-70B", input_tokens=512, input_tokens_range=(512, 200_000)))


def test_counts_that_do_not_divide_are_refused() -> None:
    with pytest.raises(RequestError, match="divide"):
        complete(Said(model=MODEL, accelerator="h100-sxm", gpus=12, gpus_per_node=8))


def test_no_model_is_refused() -> None:
    with pytest.raises(RequestError, match="no model"):
        complete(Said(gpus=8))


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Llama-3"):
        complete(Said(model="llama 3.1 80b"))


def test_an_engine_keeps_its_version_until_another_engine_is_named() -> None:
    said = Said(model="Llama-3.1-8B", engine="vllm", engine_version="0.11.0")
    same, other = complete(said, Said(engine="vllm")), complete(said, Said(engine="sglang"))
    assert same.serving == ServingBlock(engine="vllm", engine_version="0.11.0")
    assert other.serving == ServingBlock(engine="sglang")


@pytest.mark.parametrize(("stated", "planned"), [("1k", 7_168), ("7k", 7_168), ("8k", 8_192)])
def test_a_length_that_cannot_hold_the_system_prompt_is_what_each_request_adds(stated: str, planned: int) -> None:
    intent = complete(read_request(f"Llama-3.1-8B on 2 H100, {stated} in, 128 out, a 6k system prompt shared by all"))
    assert intent.workload.input_tokens == planned
    assert any(assumption.field == "input_tokens" for assumption in intent.assumptions) == (stated == "1k")
