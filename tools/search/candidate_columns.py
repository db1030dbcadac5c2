"""Candidates as columns again, to be ordered and to find their front among candidates of other searches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..plan.document import WorkloadBlock
from .candidate import Candidate
from .columns import Columns, columns, order
from .ranking import complexity, warning_bits

# What is missed at a percentile alone.
_LEAST_EXCESS = 1e-9


def columns_of(candidates: Sequence[Candidate], workload: WorkloadBlock) -> Columns:
    """Candidates with figures as rows; their option is their place."""
    numbers = np.arange(len(candidates))
    found = columns(
        workload,
        prefill=numbers, decode=numbers, prefill_replicas=numbers, decode_replicas=numbers,
        concurrency=np.array([one.concurrency for one in candidates]),
        gpus=np.array([one.gpus for one in candidates]),
        billed=np.array([one.billed_gpus or one.gpus for one in candidates]),
        ttft=np.array([one.ttft_ms or 0.0 for one in candidates]) / 1e3,
        tpot=np.array([one.tpot_ms or 0.0 for one in candidates]) / 1e3,
        rate=np.array([one.output_tokens_per_s or 0.0 for one in candidates]),
        memory=np.array([one.memory_per_gpu_bytes or 0 for one in candidates]),
        complexity=np.array([complexity(one.strategy) for one in candidates]),
        warned=np.array([warning_bits(one.warnings) for one in candidates]),
    )  # fmt: skip
    # Limits were judged by the statistics that they name; these are means.
    holds = np.array([one.feasible for one in candidates], dtype=np.bool_)
    return replace(found, over=np.where(holds, 0.0, np.maximum(found.over, _LEAST_EXCESS)))


def reordered(candidates: Sequence[Candidate], workload: WorkloadBlock) -> list[Candidate]:
    """Candidates with figures, best first."""
    return [candidates[int(place)] for place in order(columns_of(candidates, workload))]
