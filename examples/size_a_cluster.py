"""Finds the least hardware of several kinds that serves a request rate within limits, and what it costs.

python examples/size_a_cluster.py
"""

from __future__ import annotations

import shardwright

MODEL = "Qwen3-8B"
KINDS = ("l40s", "a100-80gb-sxm", "h100-sxm")


def main() -> None:
    """Print a line for each kind of accelerator: how many, in which split, how fast, at which cost."""
    print(f"{'accelerator':<16}{'GPUs':>5}  {'TTFT p99':>9}  {'TPOT p99':>9}  {'USD per million tokens':>23}")
    for kind in KINDS:
        result = shardwright.plan(
            model=MODEL,
            # A kind without a number: the least that does.
            hardware=kind,
            input_tokens=1024,
            output_tokens=256,
            request_rate=6,
            # A limit holds for the mean unless a percentile is named.
            workload={"ttft_ms_max": 1000, "ttft_statistic": "p99", "tpot_ms_max": 60, "tpot_statistic": "p99"},
        )
        if result.plan is None or result.estimate is None:
            print(f"{kind:<16}{result.infeasible.reason if result.infeasible else 'no plan'}")
            continue
        tails, cost = result.estimate.latency.percentiles, result.estimate.cost
        # Without a price the catalogue's is taken; where it has none, cost is in GPU-seconds.
        price = f"{cost.per_million_output_tokens:.2f}" if cost and cost.unit == "usd" else "no price known"
        times = f"{tails.ttft_ms.p99:>6.0f} ms  {tails.tpot_ms.p99:>6.1f} ms" if tails else "not simulated"
        print(f"{kind:<16}{result.plan.strategy.gpu_count:>5}  {times}  {price:>23}")


if __name__ == "__main__":
    main()
