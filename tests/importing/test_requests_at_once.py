"""A running deployment is judged at as many requests as its commands allow, if no concurrency is stated."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.importing.api import Imported, import_plan
from shardwright.agent.report.importing import render_import

VLLM = "vllm serve Qwen/Qwen3-8B -tp 2"
SGLANG = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"
TRTLLM = "trtllm-serve Qwen/Qwen3-8B --tp_size 2"
EXPERTS = "vllm serve Qwen/Qwen3-30B-A3B --data-parallel-size 4 --enable-expert-parallel"


def reason_of(imported: Imported) -> str:
    return next((entry.reason for entry in imported.assumptions if entry.field == "concurrency"), "stated")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("command", "count", "reason"),
    [
        (f"{VLLM} --max-num-seqs 64", 64, "--max-num-seqs: so many are run at once"),
        (f"{VLLM} --max_num_seqs=24", 24, "--max_num_seqs: so many are run at once"),
        (f"{VLLM} -dp 2 --max-num-seqs 64", 128, "--max-num-seqs: 64 by each of 2 schedulers"),
        (f"{EXPERTS} --max-num-seqs 8", 32, "--max-num-seqs: 8 by each of 4 schedulers"),
        (f"{SGLANG} --max-running-requests 48", 48, "--max-running-requests: so many are run at once"),
        (
            "python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4 --dp 4 --enable-dp-attention "
            "--max-running-requests 100",
            100,
            "--max-running-requests: 25 by each of 4 schedulers",
        ),
        (f"{TRTLLM} --max_batch_size 16", 16, "--max_batch_size: so many are run at once"),
        (f"{VLLM} --max-num-seqs $N", None, ""),
        (VLLM, 1, "no concurrency was named and the objective is latency: one request in flight"),
    ],
)
def test_as_many_as_the_command_lets_run(command: str, count: int | None, reason: str) -> None:
    if count is None:
        with pytest.raises(ValueError, match="put the number in"):
            import_plan(command, hardware="1x4:h100-sxm")
        return
    imported = import_plan(command, hardware="1x4:h100-sxm")
    assert imported.valid and imported.plan.workload.concurrency == count
    assert reason_of(imported) == reason


def test_no_more_than_fit_into_memory() -> None:
    imported = import_plan(f"{VLLM} --max-num-seqs 5000", hardware="1x2:h100-sxm", input_tokens=4000)
    count = imported.plan.workload.concurrency
    assert imported.estimate is not None and imported.estimate.memory.max_concurrency == count < 300
    assert reason_of(imported).endswith("5,000 in all, of which so many fit into memory") and imported.valid


@pytest.mark.parametrize("stated", [{"concurrency": 7}, {"request_rate": 2.0}])
def test_what_is_stated_counts_more(stated: dict[str, Any]) -> None:
    imported = import_plan(f"{VLLM} --max-num-seqs 64", hardware="1x2:h100-sxm", **stated)
    assert imported.plan.workload.concurrency == stated.get("concurrency", 1)
    assert "max-num-seqs" not in reason_of(imported)


SMALL = "vllm serve meta-llama/Llama-3.1-8B --max-model-len 8192"


@pytest.mark.parametrize(
    ("command", "keeps_rules", "holds"),
    [
        (SMALL, False, "The KV cache holds"),
        ("python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B", False, "The KV cache holds"),
        ("trtllm-serve meta-llama/Llama-3.1-8B --max_seq_len 8192", False, "The KV cache holds"),
        # A command that lets fewer run keeps the rules at a load that its cache would hold.
        (f"{SMALL} --max-num-seqs 2", True, "Its largest batch has"),
    ],
)
def test_what_serves_fewer_at_a_time_than_come_runs_and_lets_the_others_wait(
    command: str, keeps_rules: bool, holds: str
) -> None:
    users = 8 if keeps_rules else 64
    imported = import_plan(command, hardware="1x1:l4", input_tokens=2000, output_tokens=200, concurrency=users)
    waiting, head = imported.waiting, " ".join(render_import(imported, width=1000).split("\n\n")[0].split())
    assert waiting is not None and waiting.requests == users > waiting.at_once > 0
    assert head.startswith(f"Runs, {waiting.at_once} of {users} requests at a time: one device of")
    assert f"{holds} {waiting.at_once} of the {users} requests at a time, and more wait in line" in head
    # The rule wants room for all of them; the headline and the exit status say what happens.
    assert imported.valid == keeps_rules and imported.exit_status == 0
    assert imported.estimate is not None and waiting.ttft_ms == imported.estimate.latency.ttft_ms
    alone = import_plan(command, hardware="1x1:l4", input_tokens=2000, output_tokens=200, concurrency=waiting.at_once)
    assert alone.waiting is None and alone.estimate is not None
    assert waiting.ttft_ms_without == pytest.approx(alone.estimate.latency.ttft_ms)
    assert waiting.ttft_ms_without < waiting.ttft_ms / 2


@pytest.mark.parametrize(
    ("command", "hardware", "state"),
    [
        # Not one request fits; another rule is broken too; all fit.
        ("vllm serve Qwen/Qwen2.5-32B --max-model-len 4096", "1x1:l40s", "NOT valid as it runs"),
        ("vllm serve Qwen/Qwen3-8B -tp 3 --max-model-len 4096", "1x4:l4", "NOT valid as it runs"),
        ("vllm serve Qwen/Qwen3-8B --max-model-len 4096", "1x1:h100-sxm", "Runs"),
    ],
)
def test_what_cannot_serve_is_not_said_to_run(command: str, hardware: str, state: str) -> None:
    imported = import_plan(command, hardware=hardware, input_tokens=2000, output_tokens=200, concurrency=100)
    assert imported.waiting is None and render_import(imported, width=1000).startswith(f"{state}: ")


@pytest.mark.parametrize(
    ("command", "own"),
    [
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4 --dp 4 --enable-dp-attention", 2048),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4", 8192),
        (EXPERTS, 8192),
    ],
)
def test_the_tokens_of_a_step_are_those_that_the_engine_takes_by_itself(command: str, own: int) -> None:
    """Stating the engine's default changes nothing, and half of it is half for each scheduler."""
    option = "--max-num-batched-tokens" if command == EXPERTS else "--chunked-prefill-size"
    imported, restated, halved = (
        import_plan(text, hardware="1x4:h100-sxm", input_tokens=4096, output_tokens=64, concurrency=16)
        for text in (command, f"{command} {option} 8192", f"{command} {option} 4096")
    )
    assert imported.plan == restated.plan and imported.estimate is not None and halved.plan.serving is not None
    assert any(f"take up to {own:,} tokens" in note for note in imported.estimate.notes)
    assert halved.plan.serving.prefill_chunk_tokens == own // 2


def test_a_chunk_that_groups_share_takes_its_part_of_memory_alone() -> None:
    # SGLang gives each of the four attention groups a quarter of the chunk, whether stated or the default.
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 4 --dp 4 --enable-dp-attention"
    chunks = (f"{command} --chunked-prefill-size {tokens}" for tokens in (4096, 8192, 16384))
    results = [import_plan(text, hardware="1x4:h100-sxm", input_tokens=8000, concurrency=4) for text in chunks]
    activations = [
        result.estimate.memory.per_device[0].activation_bytes for result in results if result.estimate is not None
    ]
    assert activations[1] == pytest.approx(2 * activations[0], rel=0.01)
    assert activations[2] == pytest.approx(2 * activations[1], rel=0.01)
