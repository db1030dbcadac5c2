"""Twenty requests whose spaces are too large, too open or too tight to be searched in a moment, each with its time.

    python benchmarks/hard_requests.py [--time-limit 30] [--only TEXT]

Each runs as `shardwright plan` in a process of its own. The table has the seconds by the clock, the exit status (0: a
plan, 1: the answer is no) and whether the answer says that something was not looked at. The exit status is 1 where an
answer took twice the time limit, or was neither.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

REQUESTS = (
    "DeepSeek-V3 on 16 H200, 4k in, 1k out, 20 requests/s, p95 TTFT under 2 s, disaggregated",
    "DeepSeek-V3 on 32 H200, 4k in, 1k out, 10 requests/s, p99 TTFT under 3 s, p99 TPOT under 60 ms, disaggregated",
    "Llama-3.1-405B on 64 H100, 8k in, 1k out, 5 requests/s, p95 TTFT under 4 s, disaggregated",
    "Qwen3-235B-A22B on 16 H200, 2k in, 512 out, 30 requests/s, p90 TPOT under 40 ms, separate prefill and decode",
    "DeepSeek-R1 on 512 H200, 4k in, 1k out, disaggregated, p95 TTFT under 2 s, 100 requests/s",
    "DeepSeek-V3 on 10000 H200, 4k in, 1k out, disaggregated, best throughput",
    "Llama-3.1-405B on 4096 H100, 4k in, 1k out, best throughput",
    "Llama-3.1-70B on 1024 H100, 2k in, 256 out, TTFT under 300 ms, 2000 concurrent",
    "DeepSeek-V3 on 256 H200, 4k in, 1k out, allow attention DP, TPOT under 30 ms, disaggregated, best throughput",
    "Llama-3.1-70B, context 1, TPOT under 1 ms",
    "DeepSeek-V3, TPOT under 3 ms",
    "Llama-3.1-405B, 4k in, 1k out, TTFT under 100 ms, 500 concurrent",
    "Mixtral-8x22B on 128 MI300X, 16k in, 2k out, allow attention DP, cheapest, 300 concurrent",
    "Qwen3-30B-A3B on 64 L40S with 400 Gbit/s InfiniBand, 32k in, 4k out, p99 TTFT under 5 s, 200 concurrent",
    "gpt-oss-120b, 200 requests/s, 1k in, 200 out, p95 TTFT under 500 ms",
    "Llama-3.1-8B on 2000 A100, 100k in, 100 out, 10000 concurrent",
    "DeepSeek-R1 on 64 H800, 128k in, 1k out, 64 concurrent, p99 TTFT under 60 s",
    "Kimi-K2 on 128 H200, 4k in, 1k out, allow attention DP, disaggregated, 50 requests/s, TPOT under 50 ms",
    "Llama-3.1-70B in any precision on 256 H100, 4k in, 512 out, cheapest, 40 requests/s, p95 TTFT under 1 s",
    "DeepSeek-V3 on 96 B200, 4k in, 1k out, allow attention DP, disaggregated, p90 TTFT under 1 s, 4000 concurrent",
)
RUN = "import sys; from shardwright.agent.cli import main; sys.exit(main())"
# A plan of thousands of GPUs is built, checked and written after the search.
MOST_TIMES_THE_LIMIT = 2.0


def main() -> int:
    """Print the table; 1 where a request did not end as it should."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    bad = 0
    for words in REQUESTS:
        if arguments.only not in words:
            continue
        command = [
            sys.executable,
            "-c",
            "import sys; from shardwright.agent.cli import main; sys.exit(main())",
            "plan",
            words,
        ]
        command += ["--format", "json", "--time-limit", f"{arguments.time_limit:g}"]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=10 * arguments.time_limit
            )
        except subprocess.TimeoutExpired:
            print(f"{time.monotonic() - start:7.1f} s  no answer  {words}", flush=True)
            bad += 1
            continue
        seconds = time.monotonic() - start
        left_out = (
            done.returncode in (0, 1)
            and done.stdout
            and bool(json.loads(done.stdout).get("report", {}).get("left_out"))
        )
        is_bad = seconds > MOST_TIMES_THE_LIMIT * arguments.time_limit or done.returncode not in (0, 1)
        bad += is_bad
        extent = "cut" if left_out else "whole"
        print(f"{seconds:7.1f} s  exit {done.returncode}  {extent:5}  {words}{'  <-' if is_bad else ''}", flush=True)
        if done.returncode not in (0, 1):
            print(f"           {done.stderr.strip()[:200]}")
    print(f"{bad} of {len(REQUESTS)} did not end as they should")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
