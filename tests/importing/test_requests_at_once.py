"""How many requests what runs today is judged by: as many as its commands let it run, where nobody said."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.import_api import Imported, import_plan

VLLM = "vllm serve Qwen/Qwen3-8B -tp 2"
SGLANG = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2"
TRTLLM = "trtllm-serve Qwen/Qwen3-8B --tp_size 2"
EXPERTS = "vllm serve Qwen/Qwen3-30B-A3B --data-parallel-size 4 --enable-expert-parallel"


def reason_of(found: Imported) -> str:
    return next((one.reason for one in found.assumptions if one.field == "concurrency"), "stated")


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
    found = import_plan(command, hardware="1x4:h100-sxm")
    assert found.valid and found.plan.workload.concurrency == count
    assert reason_of(found) == reason


def test_no_more_than_fit_into_memory() -> None:
    found = import_plan(f"{VLLM} --max-num-seqs 5000", hardware="1x2:h100-sxm", input_tokens=4000)
    count = found.plan.workload.concurrency
    assert found.estimate is not None and found.estimate.memory.max_concurrency == count < 300
    assert reason_of(found).endswith("5,000 in all, of which so many fit into memory") and found.valid


@pytest.mark.parametrize("stated", [{"concurrency": 7}, {"request_rate": 2.0}])
def test_what_is_stated_counts_more(stated: dict[str, Any]) -> None:
    found = import_plan(f"{VLLM} --max-num-seqs 64", hardware="1x2:h100-sxm", **stated)
    assert found.plan.workload.concurrency == stated.get("concurrency", 1)
    assert "max-num-seqs" not in reason_of(found)
