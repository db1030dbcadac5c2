"""What would have a plan in place of a request that has none: less of one thing, all else as it was asked.

Each offer is a group of requests, the closest first: fewer requests in flight, shorter ones, narrower number formats,
more GPUs, limits lifted. Only the search and bounds on memory are asked here; whoever takes an offer up builds the plan
and has it checked by every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from math import ceil, floor
from typing import Any

from ..catalog.dtypes import DType, weight_bytes_per_element
from ..performance.weights import model_bytes
from ..plan.document import PrecisionBlock, Strategy, WorkloadBlock
from ..search.candidate import SearchRequest
from ..search.describe import describe, number
from ..search.screen import Screen, fits_somehow
from ..search.search import base_setting, holds_limits
from ..search.sizing import Sized, resized
from ..search.space import colocated_kinds
from .intent import PlanIntent

# Clusters of more GPUs are not searched as a whole.
MOST_SEARCHED_GPUS = 64
# Layouts of a stage in a space that is searched again for an offer; of a wider one, on fewer GPUs.
_MOST_SHAPES = 600
NO_LIMITS = {"ttft_ms_max": None, "tpot_ms_max": None, "request_rate": None, "min_tokens_per_second": None}
_NARROWER: tuple[DType, ...] = ("fp8", "int4")
_WIDE = ("fp32", "bf16", "fp16")
# A figure is halved and halved again: the closest that does is found to a sixteenth of what was asked.
_STEPS = 4

Offer = tuple[str, PlanIntent]
"""What was changed, in words, and the request that this makes."""


def searchable(request: SearchRequest) -> SearchRequest:
    """`request` on so much of its hardware as is searched as a whole."""
    hardware = request.hardware
    if request.facts.gpus <= MOST_SEARCHED_GPUS:
        return request
    per_node = min(hardware.gpus_per_node, MOST_SEARCHED_GPUS)
    return resized(request, MOST_SEARCHED_GPUS // per_node, per_node)


def _sampled(request: SearchRequest) -> SearchRequest:
    """`request` on so much of its hardware as is searched again and again: less where relaxations widen the space."""
    part = searchable(request)
    while part.facts.gpus > 1 and next(islice(colocated_kinds(part.space), _MOST_SHAPES, None), None) is not None:
        nodes, per_node = part.hardware.nodes, part.hardware.gpus_per_node
        part = resized(part, nodes // 2, per_node) if nodes > 1 else resized(part, 1, per_node // 2)
    return part


def for_memory(intent: PlanIntent, request: SearchRequest) -> Iterator[Iterator[Offer]]:
    """Offers where memory binds, or where rules refuse every strategy that fits."""
    most = most_requests(request)
    if most is not None and most < request.workload.concurrency:
        yield _fewer_by_memory(intent, request, most)
    yield _shorter_by_memory(intent, request) if most is not None else _one_shorter(intent, request)
    yield _narrower(intent, request)


def for_limits(
    intent: PlanIntent, request: SearchRequest, best: Strategy, reached: Mapping[str, float]
) -> Iterator[Iterator[Offer]]:
    """Offers where limits bind; `reached` are the figures of the `best` strategy, by the limit's field."""
    yield _lifted(intent, best, reached)
    if any(name.endswith("_max") for name in reached):
        yield _fewer_by_limits(intent, request, request.workload.concurrency)
    yield _shorter_by_limits(intent, request)
    yield _narrower_by_limits(intent, request)


def within_positions(intent: PlanIntent) -> Iterator[Offer]:
    """The longest request that the model has positions for: a shorter prompt, else both lengths in proportion."""
    workload, architecture = intent.workload, intent.architecture
    if workload is None or architecture is None:
        return
    most, output = architecture.max_position_embeddings, workload.output_tokens
    if output < most:
        tokens = min(workload.input_tokens, most - output)
        changed = _of_length(workload, tokens).model_copy(update={"output_tokens_range": None})
        yield _length_words(tokens, workload), replace(intent, workload=changed)
        return
    output = max(1, most * output // (workload.input_tokens + output))
    changed = _of_length(workload, max(1, most - output))
    changed = changed.model_copy(update={"output_tokens": output, "output_tokens_range": None})
    words = f"{changed.input_tokens:,} input and {output:,} output tokens"
    yield words, replace(intent, workload=changed)


def more_gpus(intent: PlanIntent, sized: Sized | None) -> Iterator[Offer]:
    """The smallest larger cluster that does."""
    if sized is None or intent.hardware is None:
        return
    hardware = sized.request.hardware
    words = f"{hardware.nodes} x {hardware.gpus_per_node} GPUs instead of "
    words += f"{intent.hardware.nodes} x {intent.hardware.gpus_per_node}"
    best = None if sized.result is None else sized.result.best
    yield words, replace(intent, hardware=hardware, strategy=intent.strategy if best is None else best.strategy)


def no_limits(intent: PlanIntent) -> Iterator[Offer]:
    """The same request with no limits stated."""
    if intent.workload is not None:
        unlimited = intent.workload.model_copy(update=NO_LIMITS)
        if unlimited != intent.workload:
            yield "no limits stated", replace(intent, workload=unlimited)


def most_requests(request: SearchRequest) -> int | None:
    """The most requests in flight that fit, or `None` where not even one does.

    On a cluster that is too large to be searched as a whole: that fit into a part of it.
    """
    workload = request.workload.model_copy(update={"objective": "throughput", **NO_LIMITS})
    part = replace(_sampled(request), workload=workload, concurrency_open=True)
    fitting = Screen(part, base_setting(part)).holding
    return int(fitting.concurrency.max()) if len(fitting) else None


def _fewer_by_memory(intent: PlanIntent, request: SearchRequest, most: int) -> Iterator[Offer]:
    """The `most` requests that fit; where limits are stated that these miss, so many as hold them."""
    yield _fewer(intent, request.workload, most)
    if any(getattr(request.workload, name) is not None for name in NO_LIMITS):
        yield from _fewer_by_limits(intent, request, most)


def _fewer(intent: PlanIntent, workload: WorkloadBlock, most: int) -> Offer:
    words = f"{most:,} requests in flight instead of {workload.concurrency:,}"
    return words, replace(intent, workload=workload.model_copy(update={"concurrency": most}))


def _shorter_by_memory(intent: PlanIntent, request: SearchRequest) -> Iterator[Offer]:
    """As many requests with shorter prompts."""
    part, workload = _sampled(request), request.workload.model_copy(update=NO_LIMITS)

    def fits(tokens: int) -> bool:
        shorter = replace(part, workload=_of_length(workload, tokens))
        return fits_somehow(shorter, base_setting(shorter))

    yield from _shorter(intent, request.workload, fits)


def _one_shorter(intent: PlanIntent, request: SearchRequest) -> Iterator[Offer]:
    """One request with the longest prompt, halved from the stated one, that fits; nothing where none does."""
    workload, tokens = request.workload.model_copy(update=NO_LIMITS), request.workload.input_tokens // 2
    while tokens >= 1:
        changed = _of_length(workload, tokens).model_copy(update={"concurrency": 1})
        alone = replace(_sampled(request), workload=changed)
        if fits_somehow(alone, base_setting(alone)):
            kept = _of_length(request.workload, tokens).model_copy(update={"concurrency": 1})
            yield f"one request of {tokens:,} input tokens", replace(intent, workload=kept)
            return
        tokens //= 2


def _shorter(intent: PlanIntent, workload: WorkloadBlock, does: Callable[[int], bool]) -> Iterator[Offer]:
    tokens = _most_that(does, workload.input_tokens)
    if tokens:
        yield _length_words(tokens, workload), replace(intent, workload=_of_length(workload, tokens))


def _length_words(tokens: int, workload: WorkloadBlock) -> str:
    span = workload.input_tokens_range
    more = "" if span is None else f", none up to {span[1]:,}"
    return f"{tokens:,} input tokens instead of {workload.input_tokens:,}{more}"


def _of_length(workload: WorkloadBlock, tokens: int) -> WorkloadBlock:
    return workload.model_copy(update={"input_tokens": tokens, "input_tokens_range": None})


def _most_that(does: Callable[[int], bool], asked: int) -> int:
    """The largest figure below `asked` that `does`, to a sixteenth of it; 0 where not even that share does."""
    low, high = max(1, asked >> _STEPS), asked
    if low == asked or not does(low):
        return 0
    for _ in range(_STEPS):
        middle = (low + high) // 2
        if middle in (low, high):
            break
        low, high = (middle, high) if does(middle) else (low, middle)
    return low


def _holds(request: SearchRequest) -> bool:
    """Whether a strategy holds the limits."""
    part = _sampled(request)
    return holds_limits(part, base_setting(part))


def _fewer_by_limits(intent: PlanIntent, request: SearchRequest, below: int) -> Iterator[Offer]:
    workload = request.workload

    def holds(requests: int) -> bool:
        return _holds(replace(request, workload=workload.model_copy(update={"concurrency": requests})))

    most = _most_that(holds, below)
    if most:
        yield _fewer(intent, workload, most)


def _shorter_by_limits(intent: PlanIntent, request: SearchRequest) -> Iterator[Offer]:
    workload = request.workload
    yield from _shorter(
        intent, workload, lambda tokens: _holds(replace(request, workload=_of_length(workload, tokens)))
    )


def _narrower_by_limits(intent: PlanIntent, request: SearchRequest) -> Iterator[Offer]:
    offers = list(_narrower(intent, request))
    # What the narrowest formats do not hold no others do.
    if offers and _holds_in(offers[-1], request):
        yield from (offer for offer in offers if _holds_in(offer, request))


def _holds_in(offer: Offer, request: SearchRequest) -> bool:
    precision = offer[1].precision
    return precision is not None and _holds(replace(request, precision=precision))


def _narrower(intent: PlanIntent, request: SearchRequest) -> Iterator[Offer]:
    """A KV cache of 8 bits, then weights of fewer bits too: what weighs no more than there is memory."""
    precision = intent.precision
    if precision is None:
        return
    usable = request.usable_bytes
    cache: DType = "fp8" if precision.kv_cache in _WIDE else precision.kv_cache
    of_cache = "" if cache == precision.kv_cache else " and the KV cache in fp8"
    tried: list[tuple[str, PrecisionBlock]] = []
    if of_cache:
        tried.append(("the KV cache in fp8", precision.model_copy(update={"kv_cache": cache})))
    for dtype in _NARROWER:
        if weight_bytes_per_element(dtype) < weight_bytes_per_element(precision.weights):
            changed = precision.model_copy(update={"weights": dtype, "kv_cache": cache})
            tried.append((f"weights in {dtype}{of_cache}", changed))
    for words, changed in tried:
        if model_bytes(base_setting(replace(request, precision=changed))) <= usable:
            yield words, replace(intent, precision=changed)


def _lifted(intent: PlanIntent, best: Strategy, reached: Mapping[str, float]) -> Iterator[Offer]:
    """The same request with the limits lifted to what the best strategy reaches, as the rule computes it."""
    workload, update = intent.workload, dict[str, Any]()
    for name, figure in reached.items() if workload is not None else ():
        if name.endswith("_max"):
            update[name] = ceil(figure * 1000) / 1000
        elif workload is not None:
            per_request = workload.output_tokens if name == "request_rate" else 1
            update[name] = floor(figure / per_request * 1000) / 1000
    if workload is None or not update or not all(update.values()):
        return
    words = ", ".join(f"{name} {number(value)}" for name, value in update.items())
    lifted = replace(intent, workload=workload.model_copy(update=update), strategy=best)
    yield f"limits lifted: {words}, by {describe(best)}", lifted
