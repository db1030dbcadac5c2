"""A small sweep with every kind of row, and rows for journals and tables."""

from __future__ import annotations

import json
from typing import Any

from shardwright.agent.sweep.case import Row
from shardwright.agent.sweep.document import Sweep, read_sweep

from ..plan.tiny import DENSE, MOE

# 2 models x 3 clusters x 2 workloads: plans, too little memory, a missed limit, an unknown link.
SMALL: dict[str, Any] = {
    "models": [{**DENSE, "name": "tiny-dense"}, "llama-3.1-8b"],
    "hardware": [
        "1x2:h100-sxm",
        "2x1:rtx-4090",
        {"name": "one T4", "accelerator": "t4", "nodes": 1, "gpus_per_node": 1},
    ],
    "workloads": [
        {"name": "chat", "input_tokens": 512, "output_tokens": 64, "objective": "latency"},
        {"name": "fast", "input_tokens": 256, "output_tokens": 64, "objective": "throughput", "tpot_ms_max": 0.01},
    ],
}
CASES = 12
TINY: dict[str, Any] = {
    "models": [{**DENSE, "name": "tiny-dense"}, {**MOE, "name": "tiny-moe"}],
    "hardware": ["1x2:h100-sxm", "1x1:l4"],
    "workloads": [{"name": "chat", "input_tokens": 512, "output_tokens": 64}],
}


def sweep_of(content: dict[str, Any]) -> Sweep:
    """The sweep of a file with this content."""
    return read_sweep(json.dumps(content), "the sweep")


def row(number: int) -> Row:
    """A row that `number` identifies."""
    return Row(
        model=f"model-{number}",
        hardware="1x1:h100-sxm",
        workload="chat, “quoted”",
        feasible=True,
        strategy="TP8",
        gpus=number,
        ttft_ms=0.1 + number / 3,
    )
