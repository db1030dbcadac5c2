"""Plans a deployment and prints its figures.

python examples/first_plan.py
"""

from __future__ import annotations

import shardwright


def main() -> None:
    """Plan, and print what was decided, what it brings, and what was assumed on the way."""
    # No English is needed: everything can be stated as arguments. A sentence as the first argument does as well.
    result = shardwright.plan(
        model="Llama-3.1-8B",
        hardware="1x2:l40s",
        input_tokens=1024,
        output_tokens=128,
        concurrency=8,
        objective="latency",
    )
    # "No" is an answer, not an error: without a plan `infeasible` says what binds and what would do.
    if result.plan is None or result.estimate is None:
        print(result.infeasible.reason if result.infeasible else "no plan")
        return

    strategy, estimate = result.plan.strategy, result.estimate
    print(f"prefill with TP {strategy.prefill.tp}, decode with TP {strategy.decode.tp}, on {strategy.gpu_count} GPUs")
    print(f"TTFT {estimate.latency.ttft_ms:.0f} ms")
    # 90% of measurements of such deployments lay in the range; None where too few were measured.
    tpot = estimate.ranges.tpot_ms if estimate.ranges else None
    between = f" (90% range {tpot[0]:.1f} to {tpot[1]:.1f} ms)" if tpot else ""
    print(f"TPOT {estimate.latency.tpot_ms:.1f} ms{between}")
    print(f"{estimate.throughput.dp_scaled_tokens_per_s:.0f} output tokens/s")

    # The plan is one document. Its JSON is the file that every command reads.
    print(f"the document has {len(result.plan.nodes)} nodes, {len(result.plan.model_dump_json()):,} characters")
    for assumption in result.report.assumptions if result.report else ():
        print(f"assumed: {assumption.field} is {assumption.value}, {assumption.reason}")


if __name__ == "__main__":
    main()
