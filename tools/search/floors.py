"""Floors of memory and time that no strategy on some hardware gets below, so that no search is needed."""

from __future__ import annotations

from math import inf

import numpy as np

from ..arrays import distinct
from ..catalog.architecture import active_params
from ..checkpoint import checkpoint
from ..errors import MissingFieldError
from ..performance.budget import communication_buffer_bytes
from ..performance.limits import token_ms_max
from ..performance.request_memory import all_layers, request_bytes
from ..performance.setting import Setting
from ..performance.weights import model_bytes
from ..plan.load import repeated_share
from .candidate import SearchRequest
from .phase_times import Batches, DecodeTimes
from .pipelines import pipelines_of
from .replicas import ReplicaScreen
from .screen import OPTIMISM
from .space import ReplicaKind, phase_kinds

# Requests on a replica for which a decode step is timed: the step that is quickest is the floor.
_REQUESTS = 2 ** np.arange(9)


def may_hold(request: SearchRequest, setting: Setting) -> bool:
    """Whether the devices of `request` could hold what it asks for, were it spread over them perfectly.

    That is the weights, and the caches of all requests in flight (of one where their number is open). A replica is one
    device that holds the weights and a prompt, or several with the buffers of their communication.
    """
    usable = setting.hardware.memory_bytes * setting.memory_utilization
    layers, weights = all_layers(setting), model_bytes(setting)
    requests = 1 if request.finds_requests else request.workload.concurrency
    least = weights + requests * request_bytes(setting, layers, setting.request_tokens)
    alone = weights + request_bytes(setting, layers, setting.prompt_tokens)
    buffers = 0 if alone <= usable else communication_buffer_bytes(2)
    return request.facts.gpus * (usable - buffers) >= least


def is_out_of_reach(request: SearchRequest, setting: Setting) -> bool:
    """Whether every strategy of `request` misses a limit: on times by the decode step alone, on rates by arithmetic."""
    return tokens_that_come(request) is not None or _is_too_much(request) or _is_too_slow(request, setting)


def tokens_that_come(request: SearchRequest) -> float | None:
    """Output tokens/s of all requests that come, if fewer than wanted, which no hardware can change; else `None`."""
    load = request.workload
    if load.request_rate is None or load.min_tokens_per_second is None:
        return None
    come = load.request_rate * load.output_tokens
    return come if come < load.min_tokens_per_second else None


def _is_too_much(request: SearchRequest) -> bool:
    """Whether the tokens that are asked for take more arithmetic than all devices have at their peak."""
    workload, accelerator = request.workload, request.facts.accelerator
    peaks = [peak for peak in accelerator.dense_peak_tflops.model_dump().values() if peak]
    if not peaks:
        return False
    prompts = workload.input_tokens * (1.0 - repeated_share(workload))
    tokens_per_s = max(
        workload.min_tokens_per_second or 0.0, (workload.request_rate or 0.0) * (prompts + workload.output_tokens)
    )
    flops_per_token = 2.0 * sum(active_params(layer) for layer in request.architecture.layers)
    return tokens_per_s * flops_per_token > request.facts.gpus * max(peaks) * 1e12


def _is_too_slow(request: SearchRequest, setting: Setting) -> bool:
    """Whether a decode step of each layout takes longer than the limits leave for a token.

    Stages in a row take as long as one stage with all layers, and sending between them more: so each layout of a stage
    stands for its pipelines of every length, whether or not it fits into memory.
    """
    limit_ms = token_ms_max(request.workload)
    if limit_ms is None:
        return False
    screen = ReplicaScreen(request, setting)
    try:
        return all(
            _step_seconds(screen, kind) * 1e3 > limit_ms / OPTIMISM for kind in phase_kinds(request.space, "decode")
        )
    except MissingFieldError:  # a link that is not known: what needs it is refused where it is searched
        return False


def _step_seconds(screen: ReplicaScreen, kind: ReplicaKind) -> float:
    """The quickest decode step of a layout of a stage."""
    checkpoint()
    (times,), whole = screen.times(kind), pipelines_of(((screen.request.architecture.num_layers,),))
    batches = Batches(distinct(-(-_REQUESTS // np.minimum(times.groups, _REQUESTS))).astype(np.float64))
    steps = DecodeTimes(screen.setting, times, whole, batches).step(np.zeros_like(_REQUESTS), _REQUESTS)
    return float(min(steps, default=inf))
