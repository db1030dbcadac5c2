"""What a search may leave out before it simulates: limits and costs with the room that the screen's error asks for.

The screen is a closed form of the mean (`performance/service.py`). Nine in ten simulated costs were 0.82 to 1.16 of the
screened ones; of 200 random problems one in a hundred lost more than 0.5% by it (`benchmarks/screen.py`, seeds 71, 83).
"""

from __future__ import annotations

from dataclasses import replace

from ..plan.document import WorkloadBlock
from .candidate import SearchRequest

# The least that a simulated time per token, or cost, was as a share of the screen's.
OPTIMISM = 0.8


def screened(request: SearchRequest) -> SearchRequest:
    """The request as it is screened: an open number of requests in flight is fitted to the limits themselves."""
    return request if request.concurrency_open else replace(request, workload=_loosened(request.workload))


def _loosened(workload: WorkloadBlock) -> WorkloadBlock:
    """The workload with limits that no strategy which holds the stated ones misses by the screen."""
    changes = {
        "tpot_ms_max": None if workload.tpot_ms_max is None else workload.tpot_ms_max / OPTIMISM,
        "ttft_ms_max": None if workload.ttft_ms_max is None else workload.ttft_ms_max / OPTIMISM,
        "min_tokens_per_second": (
            None if workload.min_tokens_per_second is None else workload.min_tokens_per_second * OPTIMISM
        ),
        "request_rate": None if workload.request_rate is None else workload.request_rate * OPTIMISM,
    }
    return workload.model_copy(update=changes)
