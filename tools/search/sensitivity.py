"""What flips the answer: the search repeated under other lengths, loads and limits; and how much load a plan takes.

It reports strategies that change, not figures: those change under every load. Hardware and model stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from msgspec import Struct

from ..checkpoint import leaves_out
from ..frozen import Frozen, Sparse
from ..performance.limits import stated_limits
from ..performance.setting import Setting
from ..plan.describe import number
from ..plan.document import WorkloadBlock
from ..plan.latency_limits import LATENCY_LIMITS
from ..plan.load import longest_stated
from .batch import under_load
from .candidate import Candidate, SearchRequest, SearchResult
from .search import base_setting, search
from .simulated import candidate_at

# By how much a limit is moved, either way.
LIMIT_SHARE = 0.2
_FACTORS = ((Fraction(2), "2x the"), (Fraction(1, 2), "half the"))
_LENGTHS = (("input_tokens", "input tokens"), ("output_tokens", "output tokens"))
# Limits: field, name, unit, and whether more is asked for by a higher figure.
_LIMITS = (
    *((limit.field, f"{limit.name} limit", "ms", False) for limit in LATENCY_LIMITS),
    ("min_tokens_per_second", "floor of output tokens/s", "tokens/s", True),
    ("request_rate", "request rate", "requests/s", True),
)


class Change(Struct, frozen=True):
    """One changed quantity, in words; no workload where the model cannot hold such lengths."""

    words: str
    workload: WorkloadBlock | None


class Flip(Sparse):
    """A change under which another strategy is the best; no `before` or `after` where nothing held the limits.

    `kept` is the former best under the change, where it is still among the leading ones.
    """

    change: str
    before: Candidate | None = None
    after: Candidate | None = None
    kept: Candidate | None = None


class Sensitivity(Frozen):
    """The changes that flip the answer, those that do not, and those that the model's context length rules out."""

    flips: tuple[Flip, ...]
    unchanged: tuple[str, ...]
    impossible: tuple[str, ...] = ()


def sensitivity(request: SearchRequest, result: SearchResult) -> Sensitivity:
    """Which changes of lengths, load and limits change the answer of `result`, the search for `request`.

    One search for each change: ten where two limits are stated. Where number formats were left open those of the best
    stay; where nothing is the best all of them are searched. Raises InputError: a fact that the arithmetic needs is not
    known.
    """
    request = request.settled(result.best)
    setting = base_setting(request)
    flips: list[Flip] = []
    unchanged: list[str] = []
    impossible: list[str] = []
    for change in changes(request):
        if leaves_out("some of the changes that may flip the answer"):
            break
        if change.workload is None:
            impossible.append(change.words)
            continue
        flip = _flip(under_load(request, change.workload), setting, result.best, change.words)
        if flip is None:
            unchanged.append(change.words)
        else:
            flips.append(flip)
    return Sensitivity(flips=tuple(flips), unchanged=tuple(unchanged), impossible=tuple(impossible))


def _flip(changed: SearchRequest, setting: Setting, before: Candidate | None, words: str) -> Flip | None:
    """What the change in `words` flips; `None` where the best strategy stays."""
    result = search(changed, setting.with_workload(changed.workload, changed.serving))
    after = result.best
    former, latter = (None if candidate is None else candidate.strategy for candidate in (before, after))
    if former == latter:
        return None
    kept = next((candidate for candidate in result.candidates if candidate.strategy == former), None)
    return Flip(change=words, before=before, after=after, kept=kept)


def changes(request: SearchRequest) -> Iterator[Change]:
    """Twice and half of each length and of a decided number of requests, each stated limit tighter and looser."""
    workload = request.workload
    for factor, words in _FACTORS:
        for name, noun in _LENGTHS:
            yield from _length_change(request, name, factor, f"{words} {noun}")
        requests = workload.concurrency * factor
        if not request.finds_requests and requests.denominator == 1:
            requests_words = f"{words} requests in flight ({requests.numerator:,})"
            yield Change(requests_words, workload.model_copy(update={"concurrency": requests.numerator}))
    for name, noun, unit, is_floor in _LIMITS:
        stated: float | None = getattr(workload, name)
        if stated is None:
            continue
        for tighter in (True, False):
            limit = stated * (1 + LIMIT_SHARE if tighter == is_floor else 1 - LIMIT_SHARE)
            words = f"{noun} {LIMIT_SHARE:.0%} {'tighter' if tighter else 'looser'} ({number(limit)} {unit})"
            yield Change(words, workload.model_copy(update={name: limit}))


def _length_change(request: SearchRequest, name: str, factor: Fraction, words: str) -> Iterator[Change]:
    """The length `name` times `factor`, a stated range of it as well; nothing where a token cannot be halved."""
    workload = request.workload
    tokens: int = getattr(workload, name)
    span: tuple[int, int] | None = getattr(workload, f"{name}_range")
    scaled = int(tokens * factor)
    if scaled < 1:
        return
    update: dict[str, object] = {name: scaled}
    if span is not None:
        update[f"{name}_range"] = tuple(max(1, int(end * factor)) for end in span)
    if workload.lengths is not None:
        update["lengths"] = workload.lengths.scaled("input" if name == "input_tokens" else "output", factor)
    changed = workload.model_copy(update=update)
    longest = sum(longest_stated(changed))
    limit = request.architecture.max_position_embeddings
    if longest > limit:
        yield Change(f"{words} ({scaled:,}): more than the model's {limit:,} positions", None)
    else:
        yield Change(f"{words} ({scaled:,})", changed)


# Multiples of the load to try.
_STEPS = (1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0)


class LoadRoom(Struct, frozen=True):
    """The most load that holds every limit, in words and as `times` the load, and the next step, which misses one.

    `most` is `None` where the first step already misses, `missed_at` where the last one does not.
    """

    times: float
    most: str | None
    missed_at: str | None
    missed: tuple[str, ...] = ()


def load_room(request: SearchRequest, candidate: Candidate) -> LoadRoom | None:
    """How much more load `candidate`, a feasible answer to `request`, takes; found by bisection over the steps.

    `None` where no limit is stated, or where as many requests as hold are what was asked for. Raises InputError: a fact
    that the arithmetic needs is not known.
    """
    if not stated_limits(request.workload) or (request.concurrency_open and not request.fills_upwards):
        return None
    setting = base_setting(request)
    low, high, missing = -1, len(_STEPS), None
    while high - low > 1:
        middle = (low + high) // 2
        tried = _at(request, candidate, _STEPS[middle])
        simulated = candidate_at(
            tried, setting.with_workload(tried.workload, tried.serving), candidate.strategy, tried.workload.concurrency
        )
        if simulated.feasible:
            low = middle
        else:
            high, missing = middle, simulated
    most = None if low < 0 else _words(_at(request, candidate, _STEPS[low]))
    times = 1.0 if low < 0 else _STEPS[low]
    if missing is None:
        return LoadRoom(times, most, None)
    missed = tuple(reason.partition(": ")[2] for reason in missing.why_not)
    return LoadRoom(times, most, _words(_at(request, candidate, _STEPS[high])), missed)


def _at(request: SearchRequest, candidate: Candidate, times: float) -> SearchRequest:
    """The request with so many times the load of `candidate`."""
    rate = request.workload.request_rate
    changes: dict[str, float] = {"request_rate": rate * times} if rate is not None else {}
    if rate is None:
        changes["concurrency"] = math.ceil(candidate.concurrency * times)
    return under_load(request, request.workload.model_copy(update=changes))


def _words(request: SearchRequest) -> str:
    workload = request.workload
    if workload.request_rate is not None:
        return f"{number(workload.request_rate)} requests/s"
    return f"{workload.concurrency:,} requests at once"
