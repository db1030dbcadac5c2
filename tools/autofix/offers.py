"""Offers for a request that has no plan: requests that ask less in one respect and keep all else.

Each group of offers starts with the closest: fewer requests in flight, shorter ones, narrower number formats, more
GPUs, limits lifted. Only the search and bounds on memory are consulted here; the caller builds the plan and has it
checked by every rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import ceil, floor
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.dtypes import WIDE, DType, weight_bytes_per_element
from ..performance.limits import stated_limits
from ..performance.weights import model_bytes
from ..plan.describe import describe, number
from ..plan.document import Strategy, WorkloadBlock
from ..plan.latency_limits import LIMIT_FIELDS
from ..search.candidate import SearchRequest
from ..search.reach import Sized, resized
from ..search.screen import Screen, fits_somehow
from ..search.search import base_setting, holds_limits
from ..search.space import colocated_kinds
from .intent import PlanIntent

# Clusters of more GPUs are not searched as a whole.
MOST_SEARCHED_GPUS = 64
# A space with more layouts of a stage is searched for offers on fewer GPUs.
_MOST_SHAPES = 600
_NO_LIMITS = dict.fromkeys(LIMIT_FIELDS)
_NARROWER: tuple[DType, ...] = ("fp8", "int4")
# A figure is bisected this often: the closest that works is found to a sixteenth of the one that was asked.
_STEPS = 4

Offer = tuple[str, PlanIntent]
"""What was changed, in words, and the changed request."""


def searchable(request: SearchRequest) -> SearchRequest:
    """`request` on at most `MOST_SEARCHED_GPUS` of its GPUs."""
    hardware = request.hardware
    if request.facts.gpus <= MOST_SEARCHED_GPUS:
        return request
    per_node = min(hardware.gpus_per_node, MOST_SEARCHED_GPUS)
    return resized(request, MOST_SEARCHED_GPUS // per_node, per_node)


def _sampled(request: SearchRequest) -> SearchRequest:
    """`request` on a part of its hardware that can be searched repeatedly: less if relaxations widen the space."""
    part = searchable(request)
    while part.facts.gpus > 1 and next(islice(colocated_kinds(part.space), _MOST_SHAPES, None), None) is not None:
        nodes, per_node = part.hardware.nodes, part.hardware.gpus_per_node
        part = resized(part, nodes // 2, per_node) if nodes > 1 else resized(part, 1, per_node // 2)
    return part


def _asking(request: SearchRequest, **update: object) -> SearchRequest:
    """`request` with other fields of the workload."""
    return replace(request, workload=request.workload.model_copy(update=update))


def _length(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens, "input_tokens_range": None, "lengths": None, "prefixes": None}


def _fits(request: SearchRequest) -> bool:
    return fits_somehow(request, base_setting(request))


def _holds(request: SearchRequest) -> bool:
    """Whether a strategy holds the limits."""
    part = _sampled(request)
    return holds_limits(part, base_setting(part))


def _most_that(is_met: Callable[[int], bool], asked: int) -> int:
    """The largest figure below `asked` that `is_met`, to a sixteenth of `asked`; 0 if not even a sixteenth is met."""
    low, high = max(1, asked >> _STEPS), asked
    if low == asked or not is_met(low):
        return 0
    for _ in range(_STEPS):
        middle = (low + high) // 2
        if middle in (low, high):
            break
        low, high = (middle, high) if is_met(middle) else (low, middle)
    return low


class Offers(Struct, frozen=True):
    """What is offered in place of what `intent` asks; `request` is the search for it."""

    intent: PlanIntent
    request: SearchRequest

    @property
    def workload(self) -> WorkloadBlock:
        """The load that was asked for."""
        return self.request.workload

    def where_memory_binds(self) -> Iterator[Iterable[Offer]]:
        """Offers if memory binds, or if rules refuse every strategy that fits."""
        most = self._most_requests()
        if most is not None and most < self.workload.concurrency:
            yield self._fewer_by_memory(most)
        part = _asking(_sampled(self.request), **_NO_LIMITS)
        yield self._shorter(part, _fits) if most is not None else self._one_shorter(part)
        yield self._narrower()

    def where_limits_bind(self, best: Strategy, reached: Mapping[str, float]) -> Iterator[Iterable[Offer]]:
        """Offers if limits bind; `reached` are the figures of the `best` strategy, by the limit's field."""
        yield self._lifted(best, reached)
        if any(name.endswith("_max") for name in reached):
            yield self._fewer_by_limits(self.workload.concurrency)
        yield self._shorter(self.request, _holds)
        yield self._narrower_by_limits()

    def within_positions(self) -> Iterator[Offer]:
        """The longest request that the model has positions for: a shorter prompt, else both lengths in proportion."""
        most, output = self.request.architecture.max_position_embeddings, self.workload.output_tokens
        if output < most:
            tokens = min(self.workload.input_tokens, most - output)
            yield self._changed(self._length_words(tokens), **_length(tokens), output_tokens_range=None)
            return
        output = max(1, most * output // (self.workload.input_tokens + output))
        tokens = max(1, most - output)
        words = f"{tokens:,} input and {output:,} output tokens"
        yield self._changed(words, **_length(tokens), output_tokens=output, output_tokens_range=None)

    def more_gpus(self, sized: Sized | None) -> Iterator[Offer]:
        """The smallest larger cluster that is enough."""
        if sized is None or self.intent.hardware is None:
            return
        hardware, stated = sized.request.hardware, self.intent.hardware
        words = f"{hardware.nodes} x {hardware.gpus_per_node} GPUs instead of {stated.nodes} x {stated.gpus_per_node}"
        best = None if sized.result is None else sized.result.best
        strategy = self.intent.strategy if best is None else best.strategy
        yield words, replace(self.intent, hardware=hardware, strategy=strategy)

    def no_limits(self) -> Iterator[Offer]:
        """The same request with no limits stated."""
        if stated_limits(self.workload):
            yield self._changed("no limits stated", **_NO_LIMITS)

    def fewer_settings(self) -> Iterator[Offer]:
        """The same request without one of the engine's settings."""
        serving = self.intent.serving
        if serving is None:
            return
        stated = serving.model_dump(exclude_defaults=True)
        for name in (name for name in stated if not name.startswith("engine")):
            fewer = serving.model_validate({field: value for field, value in stated.items() if field != name})
            yield f"no serving.{name} stated", replace(self.intent, serving=fewer)

    def _changed(self, words: str, **update: object) -> Offer:
        return words, replace(self.intent, workload=self.workload.model_copy(update=update))

    def _most_requests(self) -> int | None:
        """The most requests in flight that fit; `None` if not even one does.

        On a cluster too large to be searched as a whole, into a part of it.
        """
        asked = _asking(_sampled(self.request), objective="throughput", **_NO_LIMITS)
        part = replace(asked, concurrency_open=True)
        fitting = Screen(part, base_setting(part)).holding
        return int(fitting.concurrency.max()) if len(fitting) else None

    def _fewer(self, most: int) -> Offer:
        words = f"{most:,} requests in flight instead of {self.workload.concurrency:,}"
        return self._changed(words, concurrency=most)

    def _fewer_by_memory(self, most: int) -> Iterator[Offer]:
        """The `most` requests that fit; with stated limits also as many as hold these."""
        yield self._fewer(most)
        if stated_limits(self.workload):
            yield from self._fewer_by_limits(most)

    def _fewer_by_limits(self, below: int) -> Iterator[Offer]:
        most = _most_that(lambda requests: _holds(_asking(self.request, concurrency=requests)), below)
        if most:
            yield self._fewer(most)

    def _shorter(self, request: SearchRequest, is_met: Callable[[SearchRequest], bool]) -> Iterator[Offer]:
        """As many requests, with the longest prompt for which `is_met` holds."""
        tokens = _most_that(lambda tokens: is_met(_asking(request, **_length(tokens))), self.workload.input_tokens)
        if tokens:
            yield self._changed(self._length_words(tokens), **_length(tokens))

    def _one_shorter(self, request: SearchRequest) -> Iterator[Offer]:
        """One request with the longest prompt that fits, halved from the stated one; nothing if none fits."""
        asked = self.workload.input_tokens
        for tokens in (asked >> halvings for halvings in range(1, asked.bit_length())):
            if _fits(_asking(request, **_length(tokens), concurrency=1)):
                yield self._changed(f"one request of {tokens:,} input tokens", **_length(tokens), concurrency=1)
                return

    def _length_words(self, tokens: int) -> str:
        span = self.workload.input_tokens_range
        more = "" if span is None else f", none up to {span[1]:,}"
        if self.workload.lengths is not None:
            more = " on average, and all requests alike"
        return f"{tokens:,} input tokens instead of {self.workload.input_tokens:,}{more}"

    def _narrower_by_limits(self) -> Iterator[Offer]:
        def holds(offer: Offer) -> bool:
            precision = offer[1].precision
            return precision is not None and _holds(replace(self.request, precision=precision))

        offers = list(self._narrower())
        # If the narrowest formats miss the limits, all others do.
        if offers and holds(offers[-1]):
            yield from filter(holds, offers)

    def _narrower(self) -> Iterator[Offer]:
        """An 8-bit KV cache, then narrower weights too; only formats whose weights fit into memory."""
        precision = self.request.precision
        cache: DType = "fp8" if precision.kv_cache in WIDE else precision.kv_cache
        of_cache = "" if cache == precision.kv_cache else " and the KV cache in fp8"
        weight = weight_bytes_per_element(precision.weights)
        narrower = [dtype for dtype in _NARROWER if weight_bytes_per_element(dtype) < weight]
        tried = [("the KV cache in fp8", precision.weights)] if of_cache else []
        tried += [(f"weights in {dtype}{of_cache}", dtype) for dtype in narrower]
        for words, weights in tried:
            changed = precision.model_copy(update={"weights": weights, "kv_cache": cache})
            if model_bytes(base_setting(replace(self.request, precision=changed))) <= self.request.usable_bytes:
                yield words, replace(self.intent, precision=changed)

    def _lifted(self, best: Strategy, reached: Mapping[str, float]) -> Iterator[Offer]:
        """The same request with limits lifted to the best strategy's figures, as the rule computes them."""
        update: dict[str, float] = {}
        for name, figure in reached.items():
            if name.endswith("_max"):
                update[name] = ceil(figure * 1000) / 1000
            else:
                per_request = self.workload.output_tokens if name == "request_rate" else 1
                update[name] = floor(figure / per_request * 1000) / 1000
        if update and all(update.values()):
            limits = ", ".join(f"{name} {number(value)}" for name, value in update.items())
            words, intent = self._changed(f"limits lifted: {limits}, by {describe(best)}", **update)
            yield words, replace(intent, strategy=best)
