"""Strategies as rows of a table, compared by the thousands or millions at a time, and their order.

A row is a strategy at a number of requests in flight. Rows become candidates only when they are shown, and candidates
become rows again to be ordered among those of other searches.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from ..arrays import FloatArray, IntArray, Table, floats, ints
from ..calibration.forms.elementary import Number
from ..performance.limits import excess_shares
from ..plan.document import WorkloadBlock
from ..plan.placement import is_disaggregated
from .candidate import Candidate
from .ranking import LACKS_CACHE, LACKS_RESERVE, complexity, warning_bits, worth

# Two candidates within this share of each other are a tie (`order`).
TIE_SHARE = 0.005
# Measured figures that are this near say nothing of an order: repeats of one configuration differ as much.
REPEAT_SHARE = 0.02
# Excess of a candidate that misses a limit at a percentile alone.
_LEAST_EXCESS = 1e-9
# Added to the excess where the queue grows: more than that of any steady run.
_GROWING_EXCESS = 1e9
# Bit added to a candidate's warnings, by its `behind`.
_LACKS = (0, LACKS_RESERVE, LACKS_CACHE)


class StrategyRows(Table, frozen=True):
    """R rows: which replicas (numbers in a list), how many of each, requests in flight, and their figures, all [R].

    Replicas that serve both phases count as those that decode: `prefill_replicas` is then 0. `billed_gpus` matter for
    cost alone, `memory_bytes` are those of the fullest GPU, `warnings` are the rules that warn, as bits, and
    `LACKS_RESERVE` or `LACKS_CACHE`, which outweigh all of them. `request_s` is the time of a request from end to end.
    `excess` is the share by which the worst missed limit is missed (0 or less: all hold), `cost` what the objective
    wants small.
    """

    prefill: IntArray
    decode: IntArray
    prefill_replicas: IntArray
    decode_replicas: IntArray
    concurrency: IntArray
    gpus: IntArray
    billed_gpus: IntArray
    ttft_s: FloatArray
    tpot_s: FloatArray
    request_s: FloatArray
    tokens_per_s: FloatArray
    memory_bytes: IntArray
    complexity: IntArray
    warnings: IntArray
    excess: FloatArray
    cost: FloatArray

    @property
    def behind(self) -> IntArray:
        """What ranks each row behind others [R]: 0 nothing, 1 a rule that warns, 2 a lack of reserve, 3 of cache."""
        lacks = ints(self.warnings >= LACKS_RESERVE) + (self.warnings >= LACKS_CACHE)
        return ints(np.where(lacks > 0, 1 + lacks, self.warnings > 0))


def strategy_rows(workload: WorkloadBlock, **values: Number) -> StrategyRows:
    """Rows of values that are broadcast against each other, judged by the limits and the objective of `workload`."""
    columns = dict(zip(values, (array.ravel() for array in np.broadcast_arrays(*values.values())), strict=True))
    ttft_s, tpot_s, tokens_per_s = columns["ttft_s"], columns["tpot_s"], columns["tokens_per_s"]
    excess = floats(excess_shares(workload, ttft_s * 1e3, tpot_s * 1e3, tokens_per_s))
    request_s = cost = ttft_s + (workload.output_tokens - 1) * tpot_s
    if workload.objective != "latency":
        cost = (1.0 if workload.objective == "throughput" else columns["billed_gpus"]) / np.maximum(tokens_per_s, 1e-12)
    return StrategyRows(**columns, request_s=request_s, excess=excess, cost=cost)


def order(rows: StrategyRows, objective: str) -> IntArray:
    """Row numbers [R], best first: those that hold every limit, then those that miss by least.

    Of those that hold, the ones that keep up with a little more than the stated rate lead, then those without warnings,
    then the best by the objective. Ties go to the fewest GPUs, then to the quickest, then to the simplest. Under the
    objective cost idle GPUs are paid for too, so in a tie replicas that serve both phases go first.
    """
    cost = rows.cost
    holds, missing = np.flatnonzero(rows.excess <= 0.0), np.flatnonzero(rows.excess > 0.0)
    missing = missing[np.lexsort((rows.complexity[missing], cost[missing], rows.excess[missing]))]
    if not len(holds):
        return missing
    behind = rows.behind
    clean = behind[holds] == behind[holds].min()
    is_tied = clean & (cost[holds] <= cost[holds][clean].min() * (1 + TIE_SHARE))
    tied, others = holds[is_tied], holds[~is_tied]
    tied = tied[_order_of_tie(rows.take(tied), objective)]
    others = others[np.lexsort((rows.complexity[others], cost[others], behind[others]))]
    return np.concatenate((tied, others, missing))


def _order_of_tie(rows: StrategyRows, objective: str) -> IntArray:
    """Row numbers of `rows`, all as good for the objective, best first."""
    is_apart = (rows.prefill_replicas > 0) & (objective == "cost")
    least = np.lexsort((rows.gpus, is_apart))[:1]
    is_least = (rows.gpus == rows.gpus[least]) & (is_apart == is_apart[least])
    is_slow = ~is_least | (rows.request_s > rows.request_s[is_least].min(initial=np.inf) * (1 + TIE_SHARE))
    return np.lexsort((rows.request_s, rows.complexity, is_slow, rows.gpus, is_apart))


def front(rows: StrategyRows) -> IntArray:
    """Row numbers of the Pareto front, slowest user first: none other is quicker for a user and yields more per GPU.

    Of equal rows the one with fewest GPUs, then the simplest, stands for all.
    """
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    per_gpu = rows.tokens_per_s / rows.gpus
    sequence = np.lexsort((rows.complexity, rows.gpus, rows.warnings > 0, -per_gpu, rows.tpot_s))
    reached = np.maximum.accumulate(per_gpu[sequence])
    leads = np.concatenate(([True], per_gpu[sequence][1:] > reached[:-1] * (1 + 1e-12)))
    return sequence[leads][::-1]


def rows_of(candidates: Sequence[Candidate], workload: WorkloadBlock) -> StrategyRows:
    """Candidates with figures as rows; `prefill` and `decode` are their places in the list."""
    places = np.arange(len(candidates))
    apart = [
        (candidate.strategy.prefill.replicas or 0) * is_disaggregated(candidate.strategy) for candidate in candidates
    ]
    rows = strategy_rows(
        workload,
        prefill=places, decode=places, prefill_replicas=np.array(apart), decode_replicas=places,
        concurrency=np.array([candidate.concurrency for candidate in candidates]),
        gpus=np.array([candidate.gpus for candidate in candidates]),
        billed_gpus=np.array([candidate.billed_gpus or candidate.gpus for candidate in candidates]),
        ttft_s=np.array([candidate.ttft_ms or 0.0 for candidate in candidates]) / 1e3,
        tpot_s=np.array([candidate.tpot_ms or 0.0 for candidate in candidates]) / 1e3,
        tokens_per_s=np.array([candidate.output_tokens_per_s or 0.0 for candidate in candidates]),
        memory_bytes=np.array([candidate.memory_per_gpu_bytes or 0 for candidate in candidates]),
        complexity=np.array([complexity(candidate.strategy) for candidate in candidates]),
        warnings=np.array([warning_bits(candidate.warnings) | _LACKS[candidate.behind] for candidate in candidates]),
    )  # fmt: skip
    # Limits were judged by the statistics that they name; these are means.
    holds = np.array([candidate.feasible for candidate in candidates], dtype=np.bool_)
    excess = np.where(holds, 0.0, np.maximum(rows.excess, _LEAST_EXCESS))
    # A queue that grows has no steady TTFT: what counts is how far the rate is missed, behind all that keep up with it.
    grows = np.array([candidate.queue_grows for candidate in candidates], dtype=np.bool_)
    without_ttft = floats(excess_shares(workload, 0.0 * rows.ttft_s, rows.tpot_s * 1e3, rows.tokens_per_s))
    rows = replace(rows, excess=np.where(grows & ~holds, _GROWING_EXCESS + without_ttft, excess))
    if workload.objective != "cost":
        return rows
    return replace(rows, cost=np.array([worth(candidate, "cost") for candidate in candidates]))


def reordered(candidates: Sequence[Candidate], workload: WorkloadBlock) -> list[Candidate]:
    """Candidates with figures, best first."""
    return [candidates[int(place)] for place in order(rows_of(candidates, workload), workload.objective)]
