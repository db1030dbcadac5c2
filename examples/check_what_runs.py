"""Reads the launch command that runs today, and sets it beside the best plan for the same GPUs and load.

python examples/check_what_runs.py "vllm serve meta-llama/Llama-3.1-8B -tp 4 --max-num-seqs 64"
"""

from __future__ import annotations

import sys

import shardwright

COMMAND = "vllm serve meta-llama/Llama-3.1-8B -tp 4 --max-num-seqs 64"
# What no command says: the GPUs of the machine, and the load.
HARDWARE = "1x4:l40s"
LOAD = {"input_tokens": 1024, "output_tokens": 128, "concurrency": 32, "objective": "throughput"}


def main(command: str) -> int:
    """Print what runs, what would be better and by how much; 1 where the command breaks a rule."""
    today = shardwright.import_plan(command, hardware=HARDWARE, workload=LOAD)
    # What was not understood, and what the engine itself refuses, comes before any figure.
    for caveat in today.caveats:
        print(f"mind: {caveat}")
    for finding in today.findings:
        print(f"{finding.rule}: {finding.message}")
    if today.exit_status:
        return today.exit_status

    # The same model, GPUs, load and engine, with the strategy left open.
    best = shardwright.plan(model=today.plan.model.name, hardware=HARDWARE, workload=LOAD, engine=today.engine)
    if best.plan is None:
        print("no plan holds the limits")
        return 1

    # A is what runs, B the plan. The last line says where a difference is too small to tell.
    for line in shardwright.compare(today.plan, best.plan, titles=("today", "the plan")).verdict:
        print(line)

    # What starts the plan, and below it the benchmark command that would check the figures.
    print(f"\n{shardwright.export(best.plan, 'vllm').text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else COMMAND))
