"""The KV cache that engines set up: as they log it, and what it depends on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.tools.catalog.hardware import all_accelerators
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.capacity import cache_tokens, logged_tokens, longest_held, unheld_request
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.layout import LoadedLayout

CASES = json.loads((Path(__file__).parents[1] / "cases" / "kv_capacity.json").read_text(encoding="utf-8"))
LLAMA = {"model": "Llama-3.1-70B", "degrees": {"tp": 8, "tp_ffn": 8}, "relaxations": ("vocab_parallel",)}


def served_by(layout_of: Any, engine: str, version: str | None = None, **options: Any) -> LoadedLayout:
    serving = {"engine": engine, "engine_version": version, **options.pop("serving", {})}
    return layout_of(serving=serving, **{**LLAMA, **options})


@pytest.mark.parametrize("case", CASES["rows"], ids=lambda case: case["name"])
def test_tokens_are_those_that_the_engine_logged(case: dict[str, Any], layout_of: Any) -> None:
    layout = served_by(
        layout_of,
        case["engine"],
        case["version"],
        model=case["model"],
        degrees=case.get("degrees", {}),
        accelerator=case.get("accelerator", "h100-sxm"),
        weights=case.get("weights", "bf16"),
        memory_utilization=case["share"],
        input_tokens=case["length"] - 1,
        output_tokens=1,
        relaxations=("vocab_parallel", "tp_in_expert"),
        serving=case.get("serving", {}),
    )
    assert logged_tokens(layout) == pytest.approx(case["tokens"], rel=CASES["tolerance"])


def test_a_cache_does_not_depend_on_the_load(layout_of: Any) -> None:
    few, many = (served_by(layout_of, "vllm", concurrency=users) for users in (1, 500))
    assert cache_tokens(few) == cache_tokens(many)


def test_a_plain_model_holds_the_tokens_that_are_logged(layout_of: Any) -> None:
    layout = served_by(layout_of, "vllm")
    assert logged_tokens(layout) == pytest.approx(cache_tokens(layout), abs=1)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("Llama-3.1-70B", {"degrees": {"tp": 2, "tp_ffn": 2}, "memory_utilization": 0.95}),
        ("gemma-3-27b", {"degrees": {}, "memory_utilization": 0.8}),
        (
            "DeepSeek-V3",
            {"degrees": {"tp": 8, "tp_ffn": 8, "tp_expert": 8}, "weights": "fp8", "accelerator": "h200-sxm"},
        ),
    ],
)
def test_the_longest_request_is_the_last_that_fits_by_itself(
    model: str, options: dict[str, Any], layout_of: Any
) -> None:
    def holding(tokens: int) -> LoadedLayout:
        load = {"input_tokens": tokens - 1, "output_tokens": 1}
        return served_by(
            layout_of, "vllm", model=model, relaxations=("vocab_parallel", "tp_in_expert"), **options, **load
        )

    most = longest_held(holding(100), 10**6)
    assert 16 < most <= cache_tokens(holding(most))
    assert most == 10**6 or cache_tokens(holding(most + 1)) < most + 1
    assert longest_held(holding(100), 16) == 16


@pytest.mark.parametrize("engine", [*JUDGED])
def test_a_larger_share_never_leaves_less_room(engine: str, layout_of: Any) -> None:
    tokens = [cache_tokens(served_by(layout_of, engine, memory_utilization=share)) for share in (0.5, 0.7, 0.9, 0.95)]
    assert tokens == sorted(tokens)
    assert tokens[0] < tokens[-1]


def test_a_larger_start_up_batch_leaves_less_room(layout_of: Any) -> None:
    sizes = ({"max_batch": 64}, {"max_batch": 2048}, {"max_batch": 2048, "prefill_chunk_tokens": 65_536})
    tokens = [cache_tokens(served_by(layout_of, "vllm", serving=size)) for size in sizes]
    assert tokens == sorted(tokens, reverse=True)


def test_without_an_engine_the_one_that_is_assumed_sizes_the_cache(layout_of: Any) -> None:
    assert cache_tokens(layout_of(**LLAMA)) == cache_tokens(served_by(layout_of, "vllm"))


def test_an_estimate_shows_what_the_simulation_goes_by(layout_of: Any) -> None:
    layout = served_by(layout_of, "vllm", concurrency=4)
    memory = estimate_layout(layout, ()).memory
    assert memory.kv_cache_capacity_tokens == logged_tokens(layout)
    assert memory.kv_cache_capacity_bytes == pytest.approx(40_960 * cache_tokens(layout), rel=1e-4)


@pytest.mark.parametrize(("engine", "says"), [("vllm", "would not start"), ("sglang", "would refuse requests")])
def test_an_engine_whose_cache_holds_no_request_is_said(engine: str, says: str, layout_of: Any) -> None:
    layout = served_by(layout_of, engine, model="Qwen2.5-72B", degrees={"tp": 2, "tp_ffn": 2}, input_tokens=16_000)
    unheld = estimate_layout(layout, ()).memory.unheld_request
    assert unheld is not None and says in unheld and f"{cache_tokens(layout):,} tokens" in unheld


def test_a_prefill_server_of_its_own_that_holds_no_prompt_is_said(layout_of: Any) -> None:
    phases = {
        "degrees": {"tp": 2, "tp_ffn": 2, "replicas": 1},
        "decode": {"tp": 8, "tp_ffn": 8, "replicas": 1},
    }
    layout = served_by(layout_of, "vllm", model="Qwen2.5-72B", **phases, nodes=2, input_tokens=20_000)
    unheld = unheld_request(layout)
    assert unheld is not None and "of a prefill server" in unheld


def test_no_process_is_told_of_more_memory_than_there_is() -> None:
    for part in all_accelerators():
        if part.memory_gib_to_processes is not None:
            assert 0.95 * part.memory_bytes()[0] < part.memory_bytes_to_processes() <= part.memory_bytes()[0], part.id


# Engine, release and GPU, and the tokens and requests of a step where a plan states none.
BATCHES = [
    ("vllm", "0.11.0", "h100-sxm", 8192, 1024),
    ("vllm", "0.11.0", "a100-80gb-sxm", 2048, 256),
    ("vllm", "0.11.0", "l40s", 2048, 256),
    ("vllm", "0.11.0", "l4", 2048, 256),
    # The old engine takes a prompt of full length whole.
    ("vllm", "0.6.3", "h100-sxm", 4352, 256),
    ("sglang", "0.5.5", "l40s", 4096, 1024),
    ("sglang", "0.5.1", "l40s", 8192, 1024),
    ("sglang", "0.5.5", "rtx-4090", 2048, 1024),
    ("sglang", "0.5.23", "rtx-4090", 4096, 1024),
    ("sglang", "0.5.23", "h100-sxm", 8192, 1024),
    ("sglang", "0.5.23", "b200", 16384, 1024),
    ("sglang", "0.4.1", "h200-sxm", 8192, 1024),
    ("trtllm", "1.0.0", "l40s", 8192, 2048),
]


@pytest.mark.parametrize(("engine", "version", "accelerator", "tokens", "sequences"), BATCHES)
def test_a_step_that_is_simulated_is_the_largest_that_the_engine_sizes_its_cache_by(
    layout_of: Any, engine: str, version: str, accelerator: str, tokens: int, sequences: int
) -> None:
    serving = {"engine": engine, "engine_version": version}
    setting = layout_of("Llama-3.1-8B", accelerator=accelerator, input_tokens=4096, serving=serving).setting
    assert (setting.token_budget(1), setting.max_sequences) == (tokens, sequences)
    stated = layout_of("Llama-3.1-8B", serving={**serving, "max_batch": 7, "prefill_chunk_tokens": 64}).setting
    assert (stated.token_budget(1), stated.max_sequences) == (64, 7)


@pytest.mark.parametrize(
    ("engine", "groups", "tokens"),
    # SGLang's chunk is of all attention groups together (`server_args.py`); vLLM's and TensorRT-LLM's of each.
    [("sglang", 1, 8192), ("sglang", 8, 1024), ("vllm", 8, 8192), ("trtllm", 8, 8192)],
)
def test_the_engine_s_own_tokens_of_a_step_are_shared_by_its_attention_groups_or_not(
    layout_of: Any, engine: str, groups: int, tokens: int
) -> None:
    setting = layout_of("Llama-3.1-8B", accelerator="h100-sxm", serving={"engine": engine}).setting
    assert setting.token_budget(groups) == tokens
    # A number that a plan states is that of one group.
    stated = layout_of("Llama-3.1-8B", serving={"engine": engine, "prefill_chunk_tokens": 64}).setting
    assert stated.token_budget(groups) == 64
