"""A rate and length percentiles as options are used to plan, search and estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.cli.app import run

DEPLOYED = ("--model", "llama-3.1-8b", "--hardware", "1x2:h100-sxm")
SPREAD = ("--input-percentiles", "p50=1k,p95=8k")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planned") / "plan.json"
    assert run(["plan", *DEPLOYED, *SPREAD, "--request-rate", "3", "-o", str(path)]) == 0
    return path


@pytest.mark.thorough
def test_a_plan_is_for_the_rate_and_the_spread(planned: Path) -> None:
    workload = json.loads(planned.read_text(encoding="utf-8"))["workload"]
    assert workload["request_rate"] == 3.0
    assert workload["lengths"] == {"input": {"percentiles": [[50.0, 1024], [95.0, 8192]]}}
    assert workload["input_tokens"] > 2 * 1024 and workload["output_tokens"] == 256


def test_a_search_is_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", *DEPLOYED, "--request-rate", "2.5", "--output-percentiles", "50=100, p99=1500"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "2.5 requests/s at random" in shown and "out p50 100" in shown


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("options", "load"),
    [
        (("--request-rate", "9"), "open loop, 9 requests/s"),
        (("--output-percentiles", "p50=100,p99=2k"), "open loop, 3 requests/s"),
        (("--concurrency", "7"), "closed loop, 7 users"),
        (("--request-rate", "0.5", "--input-percentiles", "p0=10,p100=20"), "open loop, 0.5 requests/s"),
    ],
)
def test_a_plan_is_estimated_under_another_load(
    planned: Path, options: tuple[str, ...], load: str, capsys: pytest.CaptureFixture[str]
) -> None:
    estimates: list[dict[str, Any]] = []
    for more in ((), options):
        assert run(["estimate", str(planned), "--format", "json", *more]) == 0
        estimates.append(json.loads(capsys.readouterr().out))
    before, after = estimates
    assert after["load"]["load"].startswith(load)
    assert after["latency"]["end_to_end_ms"] != before["latency"]["end_to_end_ms"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--input-percentiles", "p50=1k"), "'--input-percentiles'"),
        (("--input-percentiles", "1k"), "percentiles such as p50=1k,p95=8k are expected"),
        (("--input-percentiles", "p50=1.5,p95=3"), "percentiles such as p50=1k,p95=8k are expected"),
        (("--output-percentiles", "p50=9k,p95=1k"), "a higher percentile cannot be shorter"),
        (("--request-rate", "0"), "is not between 1e-06 and 1e+06"),
        (("--turns", "1"), "'--turns'"),
        (("--kv-offload", "much"), "GB of host memory per GPU, such as 200, or 200@50 over 50 GB/s"),
        (("--kv-offload", "0"), "--kv-offload"),
        (("--system-prompt", "a few"), "a number of tokens such as 6000 or 6k is expected"),
        (("--turns", "5", "--trace", "requests.csv"), "--trace has its own requests; leave out --system-prompt"),
        (("--system-prompt", "6k", "--turns", "5", *SPREAD), "leave lengths and ranges out"),
        ((*SPREAD, "--trace", "requests.csv"), "--trace has its own lengths; leave out --input-percentiles"),
    ],
)
def test_what_is_no_load_is_refused_in_a_line(
    options: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("plan", "search"):
        assert run([command, *DEPLOYED, *options]) == 2
        out, err = capsys.readouterr()
        assert out == "" and says in err and err.count("\n") == 1


@pytest.mark.thorough
def test_what_prompts_share_is_stated_and_the_lengths_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run(["plan", *DEPLOYED, "--system-prompt", "2k", "--turns", "3", "-o", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "a system prompt of 2,048 tokens shared by all; conversations of 3 turns" in " ".join(shown.split())
    workload = json.loads(path.read_text(encoding="utf-8"))["workload"]
    assert workload["prefixes"] == {"system_tokens": 2048, "turns": 3}
    # On average over three turns: the system prompt, two inputs of 1,024 tokens and one answer of 256.
    assert workload["input_tokens"] == 2048 + 2 * 1024 + 256
    assert run(["estimate", str(path), "--turns", "5", "--format", "json"]) == 0
    cache = json.loads(capsys.readouterr().out)["load"]["prefix_cache"]
    assert 0.4 < cache["hit_share"] < 0.9 and cache["source"].startswith("simulated: blocks of 16 tokens of vLLM")
    assert run(["estimate", str(path)]) == 0
    assert "prefix caches have" in capsys.readouterr().out


@pytest.mark.thorough
def test_memory_of_the_host_is_stated_and_changes_what_a_trace_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Twenty documents of 12,288 tokens, asked about by turns, ten times each: an L4 has room for three.
    lines = (
        {
            "timestamp": 8000 * place,
            "input_length": 12_288,
            "output_length": 60,
            "hash_ids": [100 * (place % 20) + block for block in range(24)],
        }
        for place in range(200)
    )
    trace, path = tmp_path / "trace.jsonl", tmp_path / "plan.json"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    arguments = ("plan", "--model", "llama-3.1-8b", "--hardware", "1x1:l4", "--trace", str(trace))
    plans: list[dict[str, Any]] = []
    ttft_ms: list[float] = []
    for more, gb_s in (((), None), (("--kv-offload", "60"), 32), (("--kv-offload", "60@4"), 4)):
        assert run([*arguments, *more, "-o", str(path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        cached = f"GPU memory has 0% and host memory (60 GB per GPU, at {gb_s} GB/s)"
        assert (cached in shown) == ("without host memory caches would have 0%" in shown) == (gb_s is not None)
        plans.append(json.loads(path.read_text(encoding="utf-8")))
        assert run(["estimate", str(path), "--format", "json"]) == 0
        ttft_ms.append(json.loads(capsys.readouterr().out)["latency"]["ttft_ms"])
    cold, warm, slow = ttft_ms
    # 12,272 tokens of 131,072 bytes are 1.6 GB: 50 ms over the link, 400 ms at 4 GB/s; a prompt takes seconds.
    assert warm + 300 < slow < 0.3 * cold
    stated = [plan.get("serving", {}).get("kv_offload") for plan in plans]
    assert stated == [None, {"bytes_per_gpu": 60_000_000_000}, {"bytes_per_gpu": 60_000_000_000, "host_bw_gb_s": 4.0}]
    assert run(["estimate", str(path), "--format", "json", "--kv-offload", "60"]) == 0
    assert json.loads(capsys.readouterr().out)["latency"]["ttft_ms"] == pytest.approx(warm, rel=1e-3)
