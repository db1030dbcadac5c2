"""A row becomes a situation to predict, or the reason why it cannot: nothing undocumented is guessed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.fidelity.deployment import layout_of
from shardwright.tools.fidelity.load import arrivals_of, conversations, lengths_of
from shardwright.tools.fidelity.situation import Refused, Situation, known_accelerator, situation_of
from shardwright.tools.performance.serving.load import Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from shardwright.tools.plan.document import Strategy

from .rows import CASES, measured_rows, row_of

LOADS: list[dict[str, Any]] = json.loads((CASES / "fidelity_loads.json").read_text())["cases"]
ARRIVALS = {"ClosedLoop": ClosedLoop, "Burst": Burst, "OpenLoop": OpenLoop, "StaticBatch": StaticBatch}


def situation(**changes: str) -> Situation:
    modelled = situation_of(row_of(**changes))
    assert isinstance(modelled, Situation), modelled
    return modelled


def refusal(**changes: str) -> str:
    refused = situation_of(row_of(**changes))
    assert isinstance(refused, Refused), refused
    return refused.reason


def strategy(**changes: str) -> Strategy:
    return situation(**changes).deployment.strategy


def text_of(number: int | None) -> str:
    return "" if number is None else str(number)


@pytest.mark.parametrize("case", LOADS, ids=lambda case: f"{case['load']} {case['notes'][:30]}")
def test_a_load_means_what_cell_and_notes_say_together(case: dict[str, Any]) -> None:
    row = row_of(
        concurrency_or_batch=case["load"], notes=case["notes"], isl=text_of(case["isl"]), osl=text_of(case["osl"])
    )
    wanted: Sequence[Any] | None = case["arrivals"]
    assert arrivals_of(row) == (None if wanted is None else ARRIVALS[wanted[0]](*wanted[1:]))
    lengths = lengths_of(row)
    if case["lengths"] is None:
        assert lengths is None
    else:
        sent, received, spread = case["lengths"]
        stated = conversations(sent, received) if "conversations" in case else None
        assert lengths is not None and lengths == Lengths(sent, received, pytest.approx(spread), stated)


def test_rows_of_the_own_table_are_all_modelled_on_the_gpus_that_they_state() -> None:
    for row in measured_rows():
        modelled = situation_of(row)
        assert isinstance(modelled, Situation), (row.id, modelled)
        assert len(layout_of(modelled).devices) == modelled.deployment.strategy.gpu_count == row.gpus, row.id


def test_dp_of_a_dense_model_is_replicas() -> None:
    degrees = strategy(tp="2", dp="4", gpus="8")
    assert (degrees.dp, degrees.prefill.tp, degrees.decode.attention_dp, degrees.gpu_count) == (4, 2, None, 8)


def test_dp_of_a_mixture_is_attention_groups_over_one_set_of_experts() -> None:
    modelled = situation(model="deepseek-ai/DeepSeek-R1", weights_dtype="fp8", tp="1", ep="8", dp="8", gpus="8")
    phase = modelled.deployment.strategy.decode
    assert (modelled.deployment.strategy.dp, phase.attention_dp, phase.ep, phase.tp_expert) == (1, 8, 8, None)
    assert modelled.deployment.relaxations == ("attention_dp",)


@pytest.mark.parametrize(("ep", "slices"), [("1", 8), ("", 8), ("4", 2), ("8", None)])
def test_experts_that_ep_does_not_deal_out_are_cut(ep: str, slices: int | None) -> None:
    modelled = situation(model="deepseek-ai/DeepSeek-R1", weights_dtype="fp8", tp="8", ep=ep, gpus="8")
    assert modelled.deployment.strategy.decode.tp_expert == slices
    assert ("tp_in_expert" in modelled.deployment.relaxations) == (slices is not None)


@pytest.mark.parametrize(("tp", "relaxed"), [("1", False), ("2", True)])
def test_the_vocabulary_is_cut_wherever_tp_is_above_1(tp: str, *, relaxed: bool) -> None:
    assert ("vocab_parallel" in situation(tp=tp, gpus=tp).deployment.relaxations) is relaxed


def test_workers_of_each_phase_are_counted_in_the_notes() -> None:
    notes = "tier=C; prefill 2 workers x (tp4 dp1 moe_tp1 ep4); decode 1 workers x (tp16 dp1 moe_tp1 ep16); closed loop"
    cells = {"tp": "P4/D16", "ep": "P4/D16", "dp": "1", "gpus": "24", "disaggregated": "1", "notes": notes}
    modelled = situation(model="deepseek-ai/DeepSeek-R1", weights_dtype="nvfp4", gpu="GB200-NVL72", **cells)
    degrees = modelled.deployment.strategy
    assert (degrees.prefill.replicas, degrees.decode.replicas, degrees.prefill.tp, degrees.decode.ep) == (2, 1, 4, 16)
    assert (modelled.deployment.nodes, modelled.deployment.gpus_per_node) == (6, 4)


@pytest.mark.parametrize(
    ("changes", "formats"),
    [
        ({"weights_dtype": "fp8", "kv_dtype": "unstated"}, ("fp8", "bf16", "fp8")),
        ({"weights_dtype": "fp8", "kv_dtype": "unstated", "framework": "TensorRT-LLM"}, ("fp8", "fp8", "fp8")),
        ({"weights_dtype": "fp8", "kv_dtype": "unstated", "framework": "NIM (TensorRT-LLM)"}, ("fp8", "fp8", "fp8")),
        ({"weights_dtype": "fp16", "kv_dtype": "unstated", "framework": "trtllm"}, ("fp16", "fp16", "fp16")),
        ({"weights_dtype": "bf16 (default)", "kv_dtype": "bf16 (default)"}, ("bf16", "bf16", "bf16")),
        ({"weights_dtype": "fp8", "kv_dtype": "fp8", "gpu": "A100-80GB"}, ("fp8", "fp8", "bf16")),
        ({"weights_dtype": "mxfp4", "kv_dtype": "auto"}, ("mxfp4", "bf16", "bf16")),
        ({"weights_dtype": "mxfp4", "kv_dtype": "auto", "gpu": "B200-SXM"}, ("mxfp4", "bf16", "mxfp8")),
        ({"weights_dtype": "nvfp4 MoE / bf16 attention", "gpu": "B200-SXM"}, ("nvfp4", "bf16", "nvfp4")),
    ],
)
def test_formats_that_a_row_leaves_out_are_the_engines_own(
    changes: dict[str, str], formats: tuple[str, str, str]
) -> None:
    precision = situation(**changes).deployment.precision
    assert (precision.weights, precision.kv_cache, precision.activations) == formats


@pytest.mark.parametrize(
    ("changes", "engine"),
    [
        ({"framework": "vLLM (ROCm)", "framework_version": "0.6.6"}, ("vllm", "v0.6")),
        ({"framework": "vllm", "framework_version": "0.6.1"}, ("vllm", "v0")),
        ({"framework": "vllm", "framework_version": "", "published": "2024-11"}, ("vllm", "v0")),
        ({"framework": "vllm", "framework_version": "", "published": "2025-11"}, ("vllm", "v1")),
        ({"framework": "TensorRT-LLM + Triton", "framework_version": "0.14.0"}, ("trtllm", "cpp")),
        ({"framework": "trtllm", "framework_version": "1.0.0rc3"}, ("trtllm", "1.0")),
        ({"framework": "NIM (TensorRT-LLM)", "framework_version": "1.8.0"}, ("nim", "any")),
        ({"framework": "LMDeploy (TurboMind)", "framework_version": "0.2.0"}, ("lmdeploy", "any")),
        (
            {
                "framework": "trtllm", "framework_version": "0.8.1.post2", "published": "2026-02",
                "notes": "closed loop; image=nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post2; row=x",
            },
            ("trtllm", "pytorch"),
        ),
    ],
)  # fmt: skip
def test_the_engine_and_its_generation_are_told_from_name_version_and_year(
    changes: dict[str, str], engine: tuple[str, str]
) -> None:
    detected = situation(**changes).deployment.engine
    assert (detected.name, detected.generation) == engine


def test_the_latency_of_a_batch_is_that_of_its_last_request() -> None:
    assert situation(metric="e2e_latency_ms", notes="static batch").figure == "makespan_ms"
    assert situation(metric="e2e_latency_ms", notes="closed loop").figure == "e2e_ms"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "acme/Nonesuch-9B"}, "is not in the catalogue"),
        ({"gpu": "Nonesuch-1"}, "unknown accelerator"),
        ({"framework": "homemade"}, "framework"),
        ({"framework": ""}, "framework"),
        ({"weights_dtype": "3bit"}, "weights_dtype"),
        ({"tp": ""}, "tp is not stated"),
        ({"tp": "4", "gpus": "8"}, "make 4 GPUs, gpus says 8"),
        ({"ep": "2"}, "without experts"),
        ({"pp": "33", "gpus": "33"}, "more than the model's 32 layers"),
        ({"tp": "100000", "dp": "100000", "gpus": ""}, "more than 100,000 GPUs"),
        ({"model": "deepseek-ai/DeepSeek-R1", "tp": "8", "ep": "3", "gpus": "8"}, "ep 3 does not divide"),
        ({"model": "mistralai/Mixtral-8x7B-v0.1", "tp": "16", "ep": "16", "gpus": "16"}, "8 experts"),
        ({"disaggregated": "1"}, "do not count the workers"),
        ({"disaggregated": "1", "notes": "prefill 0 workers; decode 3 workers"}, "one phase"),
        ({"disaggregated": "1", "notes": "prefill 999999 workers; decode 999999 workers"}, "more than 100,000 GPUs"),
        ({"metric": "joules"}, "metric"),
        ({"isl": ""}, "isl or osl"),
        ({"osl": "0"}, "isl or osl"),
        ({"osl": "1"}, "two output tokens"),
        ({"concurrency_or_batch": "lots"}, "load 'lots'"),
        ({"concurrency_or_batch": "999999999"}, "load '999999999'"),
        ({"concurrency_or_batch": "999999999", "notes": "static batch"}, "load '999999999'"),
        ({"concurrency_or_batch": "inf(999999999)"}, "load 'inf(999999999)'"),
        ({"isl": "900000000"}, "longer than any model's"),
        ({"isl": "200000"}, "positions"),
    ],
)
def test_what_cannot_be_modelled_is_refused_with_its_reason(changes: dict[str, str], words: str) -> None:
    assert words in refusal(**changes)


def test_longer_requests_than_the_models_positions_are_modelled_where_the_engine_runs_them() -> None:
    modelled = situation(isl="200000", framework="SGLang")
    assert layout_of(modelled).setting.prompt_tokens == 200_000


def test_memory_that_is_unstated_is_the_least_of_the_family_and_form() -> None:
    accelerator = known_accelerator("A100-SXM-unstated")
    assert accelerator.id == "a100-40gb-sxm"


@given(st.dictionaries(st.sampled_from(["tp", "pp", "ep", "dp"]), st.integers(1, 4096).map(str), min_size=1))
def test_no_degrees_break_the_reader(degrees: dict[str, str]) -> None:
    for model in ("meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-R1"):
        outcome = situation_of(row_of(model=model, gpus="", **degrees))
        assert isinstance(outcome, Refused) or outcome.deployment.strategy.gpu_count >= 1


def test_a_statistic_that_is_not_known_is_refused_not_taken_for_the_mean() -> None:
    refused = situation_of(row_of(metric="ttft_ms", statistic="p99.9"))
    assert isinstance(refused, Refused) and "'p99.9' is none of mean, p50, p90, p95, p99" in refused.reason
