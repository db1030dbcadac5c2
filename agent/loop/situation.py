"""The conditions of a request that decide which knowledge a proposer gets; each is read off facts, none is guessed.

What the request leaves open counts as possible: an open number of nodes is both one node and several, an open
concurrency is many requests, hardware that is yet to be sized is as tight in memory as can be.
"""

from __future__ import annotations

from ...knowledge.situation import Situation
from ...tools.catalog.architecture import Architecture
from ...tools.catalog.attention.grouped import GroupedQueryAttention
from ...tools.catalog.dtypes import DType
from ...tools.performance.limits import stated_limits
from ...tools.performance.request_memory import all_layers, request_bytes
from ...tools.plan.document import WorkloadBlock
from ...tools.plan.load import longest_stated
from ...tools.rules.sequence_parallel.short_context import LONG_PROMPT_TOKENS
from ...tools.search.search import base_setting
from ...tools.search.sizing import least_weights_bytes
from ..intent.intent import Intent
from ..stated.search_request import architecture_of, hardware_block, search_request

# From this many requests in flight on, batching decides.
MANY_REQUESTS = 16
# Weights and KV cache of the whole load beyond this share of the usable memory leave little room for copies.
TIGHT_SHARE = 0.7
_WIDE: tuple[DType, ...] = ("fp32", "bf16", "fp16")


def situation_of(intent: Intent) -> Situation:
    """The situation of a complete request.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    architecture = architecture_of(intent.model)
    attentions = [layer.attention for layer in architecture.layers if layer.attention is not None]
    nodes = None if intent.hardware is None else intent.hardware.nodes
    workload = intent.workload
    return Situation(
        moe=architecture.is_moe,
        dense=not architecture.is_moe,
        mla=any(spec.latent is not None for spec in attentions),
        gqa=any(isinstance(spec, GroupedQueryAttention) and spec.kv_heads < spec.query_heads for spec in attentions),
        sliding_window=any(spec.window_tokens is not None for spec in attentions),
        linear_attention=any(spec.is_recurrent for spec in attentions),
        long_context=_longest_input_tokens(workload) >= LONG_PROMPT_TOKENS,
        multi_node=nodes is None or nodes > 1,
        single_node=nodes is None or nodes == 1,
        disaggregated=intent.disaggregated is True,
        many_requests=intent.concurrency_open or workload.concurrency >= MANY_REQUESTS,
        latency=workload.objective == "latency",
        throughput=workload.objective == "throughput",
        cost=workload.objective == "cost",
        limits=bool(stated_limits(workload)),
        low_precision=_is_low_precision(intent),
        relaxations=bool(intent.relaxations),
        tight_memory=_is_tight(intent, architecture),
    )


def _longest_input_tokens(workload: WorkloadBlock) -> int:
    return max(workload.input_tokens, longest_stated(workload)[0])


def _is_low_precision(intent: Intent) -> bool:
    precision = intent.precision
    narrow = [dtype for dtype in (precision.weights, precision.kv_cache, precision.activations) if dtype not in _WIDE]
    return bool(narrow) or intent.precisions is not None


def _is_tight(intent: Intent, architecture: Architecture) -> bool:
    """Whether weights and the cache of all requests, each held once, fill most of the memory that is there."""
    choice = intent.hardware
    if choice is None or choice.nodes is None:
        return True
    request = search_request(intent, architecture, hardware_block(choice, choice.nodes))
    setting = base_setting(request)
    cache_bytes = intent.workload.concurrency * request_bytes(setting, all_layers(setting), setting.request_tokens)
    return least_weights_bytes(request) + cache_bytes > TIGHT_SHARE * request.usable_bytes
