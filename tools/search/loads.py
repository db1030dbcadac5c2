"""Requests in flight for which strategies are evaluated: the stated number, or a ladder where it was left open.

The ladder has every number up to 16 and then eight steps to each doubling; the last plan is taken between two steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import FloatArray, IntArray, distinct
from ..calibration.forms.elementary import Number
from ..plan.document import WorkloadBlock
from ..plan.load import think_seconds
from .candidate import SearchRequest
from .phase_times import Batches

_EVERY_UP_TO = 16
_STEPS = 8
# By how much the next step may raise the rate at most.
STEP_SHARE = 1 / _STEPS
# More requests than this in one batch of one stage no engine schedules.
MOST_SEQUENCES = 4096


def at_once(request: SearchRequest, share: IntArray, seconds: Callable[[IntArray], Number]) -> IntArray:
    """Requests that replicas have at once [E]: their `share`, or fewer where users think between requests.

    Found by bisection: the fewest in whose time no more of them come. `seconds`: the time of a request with so many
    present, which grows more slowly than their number.
    """
    think_s = think_seconds(request.workload)
    if think_s == 0.0 or request.workload.request_rate is not None:
        return share
    fewest, enough = np.ones_like(share), np.maximum(share, 1).astype(np.int64)
    for _ in range(int(enough.max(initial=1)).bit_length()):
        middle = (fewest + enough) // 2
        took_s = seconds(middle)
        is_enough = middle >= share * took_s / (took_s + think_s)
        enough = np.where(is_enough, middle, enough)
        fewest = np.where(is_enough, fewest, np.minimum(middle + 1, enough))
    return enough


def yielded(workload: WorkloadBlock, tokens_per_s: FloatArray) -> FloatArray:
    """Output tokens per second, no more than a stated rate of requests asks for."""
    if workload.request_rate is None:
        return tokens_per_s
    return np.minimum(tokens_per_s, workload.request_rate * workload.output_tokens)


def ladder(most: int) -> IntArray:
    """The steps of the ladder up to `most`."""
    steps = list(range(1, _EVERY_UP_TO + 1))
    size = _EVERY_UP_TO
    while size < most:
        steps.extend(size + size * step // _STEPS for step in range(1, _STEPS + 1))
        size *= 2
    return np.array([step for step in steps if step <= most], dtype=np.int64)


def replica_ladder(groups: int, microbatches: int) -> IntArray:
    """Requests of one replica: as many as groups, then as microbatches, then full microbatches in steps."""
    few = ladder(groups - 1) if groups > 1 else np.empty(0, dtype=np.int64)
    filling = groups * np.arange(1, microbatches)
    return np.concatenate((few, filling, groups * microbatches * ladder(MOST_SEQUENCES)))


def open_batches(together: int) -> Batches:
    """The batches of a microbatch where the number of requests is open."""
    return _batches(ladder(MOST_SEQUENCES), together)


def shared_batches(loads: IntArray, gpus: int, together: int = 1) -> Batches:
    """Every batch that comes of sharing one of `loads` out over up to `gpus` parts (1 where no GPU is left)."""
    parts = np.arange(1, max(1, gpus) + 1)
    return _batches(-(-loads[:, None] // parts[None, :]), together)


def together_on(batches: Batches, together: int) -> Batches:
    """The batches where so many prompts come to a microbatch at the same time."""
    if together == batches.together:
        return batches
    return Batches(np.union1d(batches.sequences, [together]), together)


def _batches(shares: IntArray, together: int) -> Batches:
    """Batches of `shares` and of the ladder: what an engine runs at once need not be a share."""
    sequences = distinct(shares, [together, *ladder(int(shares.max()))])
    return Batches(sequences.astype(np.float64), together)
