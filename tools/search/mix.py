"""One plan for several kinds of requests at once, each with its share: limits hold for each, rates are of the mixture.

A deployment is taken to serve the kinds in turn, each as if alone with all requests in flight of its kind: a second of
mixed service is shared by what each kind takes. Memory must hold the kind that needs most. Replicas serve both phases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..checkpoint import checked, doing, leaves_out
from ..errors import InputError
from ..plan.document import PrecisionBlock, Strategy
from ..plan.performance import Sparse
from .arrays import Floats
from .candidate import Candidate, SearchRequest
from .colocated import Held, PairEvaluator, Replica
from .columns import Columns, joined, order
from .screen import screened
from .search import base_setting
from .single import candidate_at
from .space import SpaceRequest, pair_shapes

# Mixed candidates that are shown.
_LISTED = 12


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of request: what is asked of it, and its share of all requests (shares need not add up to 1)."""

    name: str
    request: SearchRequest
    weight: float


class MixCandidate(Sparse):
    """One strategy under the mixture: rates of all kinds together, and each kind's own figures."""

    strategy: Strategy
    feasible: bool
    why_not: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    gpus: int
    concurrency: int
    requests_per_s: float
    output_tokens_per_s: float
    output_tokens_per_s_per_gpu: float
    parts: dict[str, Candidate]


class MixResult(Sparse):
    """The leading candidates, best first."""

    candidates: tuple[MixCandidate, ...]
    evaluated: int
    rejected: dict[str, int]
    # The number formats of all candidates, where they were left open: those of the best.
    precision: PrecisionBlock | None = None

    @property
    def best(self) -> MixCandidate | None:
        """The best feasible candidate, if there is one."""
        return self.candidates[0] if self.candidates and self.candidates[0].feasible else None


def search_mix(parts: Sequence[Part]) -> MixResult:
    """Evaluate every colocated strategy for all `parts`, which differ in nothing but their workloads.

    The objective, the number formats and whether concurrency is open are those of the first part. Where formats were
    left open each is evaluated, and the answer is that of the best.

    Raises:
        InputError: a part asks for what a mixture has no answer to.
    """
    _check(parts)
    if parts[0].request.precisions:
        return _over_precisions(parts)
    mixer = _Mixer(parts)
    replicas: list[Replica] = []
    found: list[Columns] = []
    for shape in checked(pair_shapes(mixer.space), 1):
        if found and leaves_out("some of the strategies"):
            break
        doing(f"screening layouts: {sum(map(len, found)):,} strategies")
        first = mixer.evaluators[0].variants(shape)
        rows = mixer.rows(len(replicas), first)
        if len(rows):
            found.append(rows)
        replicas.extend(Replica(shape, line) for line in first.lines.lines)
    rows = joined(found)
    evaluated = sum(len(replica.numbers) for replica in replicas)
    leading = rows.take(order(rows)[:_LISTED])
    numbers = zip(leading.decode, leading.decode_replicas, leading.concurrency, strict=True)
    shown = [mixer.candidate(replicas[int(one)].strategy(int(dp)), int(load)) for one, dp, load in numbers]
    shown.sort(key=lambda one: (not one.feasible, bool(one.warnings), _worth(one, parts)))
    rejected = {"ME001": evaluated - len(rows), "PE010": int((rows.over > 0.0).sum())}
    return MixResult(
        candidates=tuple(shown),
        evaluated=evaluated,
        rejected={rule: count for rule, count in rejected.items() if count},
    )


def _over_precisions(parts: Sequence[Part]) -> MixResult:
    """The answer in the best of the open number formats; the first that fits where none holds the limits."""
    found: list[MixResult] = []
    for single in parts[0].request.each_precision():
        if found and leaves_out("some of the number formats"):
            break
        formats = {"precision": single.precision, "precisions": ()}
        settled = [replace(part, request=replace(part.request, **formats)) for part in parts]
        found.append(search_mix(settled).model_copy(update={"precision": single.precision}))
    best = min(found, key=lambda one: (not one.candidates, _worth(one.best, parts)))
    rejected: Counter[str] = Counter()
    for one in found:
        rejected.update(one.rejected)
    return best.model_copy(update={"evaluated": sum(one.evaluated for one in found), "rejected": dict(rejected)})


def _worth(one: MixCandidate | None, parts: Sequence[Part]) -> float:
    """What is to be made small of a candidate of the mixture."""
    if one is None:
        return inf
    objective = parts[0].request.workload.objective
    if objective == "latency":
        return sum(part.weight * (one.parts[part.name].end_to_end_ms or inf) for part in parts)
    billed = max(part.billed_gpus or one.gpus for part in one.parts.values()) if objective == "cost" else 1
    return -one.output_tokens_per_s / billed


def _check(parts: Sequence[Part]) -> None:
    if not parts or len({part.name for part in parts}) < len(parts):
        raise InputError("a mix needs at least one workload, and a name of its own for each")
    for part in parts:
        if not 0.0 < part.weight < float("inf"):
            raise InputError(f"workload {part.name!r} has the weight {part.weight:g}: it must be above 0")
        if part.request.disaggregated:
            raise InputError("a mix of workloads is planned for replicas that serve both phases, not disaggregated")


class _Mixer:
    def __init__(self, parts: Sequence[Part]) -> None:
        total = sum(part.weight for part in parts)
        self.parts = parts
        self.shares = [part.weight / total for part in parts]
        self.settings = [base_setting(part.request) for part in parts]
        self.evaluators = [
            PairEvaluator(screened(part.request), setting) for part, setting in zip(parts, self.settings, strict=True)
        ]
        self.objective = parts[0].request.workload.objective

    @property
    def space(self) -> SpaceRequest:
        """The strategies that the longest prompt allows."""
        longest = max(part.request.workload.input_tokens for part in self.parts)
        return replace(self.parts[0].request.space, input_tokens=longest)

    def rows(self, index: int, first: Held) -> Columns:
        """The rows of one layout under the mixture: where it fits for every part."""
        held = [first]
        held += [evaluator.held(first.shape, first.lines) for evaluator in self.evaluators[1:]]
        fits = np.logical_and.reduce([one.fits for one in held])
        if not fits.any():
            return joined([])
        each = [
            evaluator.rows(index, replace(one, fits=fits)) for evaluator, one in zip(self.evaluators, held, strict=True)
        ]
        mixed = self._mixed([rows.columns for rows in each])
        return self.evaluators[0].chosen(replace(each[0], columns=mixed))

    def _mixed(self, each: Sequence[Columns]) -> Columns:
        outputs = [part.request.workload.output_tokens for part in self.parts]
        per_request = self._seconds([rows.rate for rows in each])
        rate = sum(share * count for share, count in zip(self.shares, outputs, strict=True)) / per_request
        whole = sum(
            share * (rows.ttft + (count - 1) * rows.tpot)
            for share, rows, count in zip(self.shares, each, outputs, strict=True)
        )
        gpus = each[0].billed if self.objective == "cost" else 1.0
        return replace(
            each[0],
            ttft=sum(share * rows.ttft for share, rows in zip(self.shares, each, strict=True)),
            tpot=sum(share * rows.tpot for share, rows in zip(self.shares, each, strict=True)),
            rate=rate,
            warned=np.bitwise_or.reduce([rows.warned for rows in each]),
            over=np.maximum.reduce([rows.over for rows in each]),
            cost=whole if self.objective == "latency" else gpus / rate,
        )

    def _seconds(self, rates: Sequence[Floats | float]) -> Floats | float:
        """Seconds that a request of the mixture takes of the deployment, from each part's output tokens per second."""
        outputs = [part.request.workload.output_tokens for part in self.parts]
        return sum(share * count / rate for share, count, rate in zip(self.shares, outputs, rates, strict=True))

    def candidate(self, strategy: Strategy, concurrency: int) -> MixCandidate:
        """One strategy with each part's own figures, by the path of one plan."""
        own = {
            part.name: candidate_at(part.request, setting, strategy, concurrency)
            for part, setting in zip(self.parts, self.settings, strict=True)
        }
        rates = [one.output_tokens_per_s or 0.0 for one in own.values()]
        requests_per_s = float(1.0 / self._seconds(rates))
        outputs = sum(
            share * part.request.workload.output_tokens for share, part in zip(self.shares, self.parts, strict=True)
        )
        return MixCandidate(
            strategy=strategy,
            feasible=all(one.feasible for one in own.values()),
            why_not=tuple(f"{name}: {reason}" for name, one in own.items() for reason in one.why_not),
            warnings=tuple(dict.fromkeys(rule for one in own.values() for rule in one.warnings)),
            gpus=strategy.gpu_count,
            concurrency=concurrency,
            requests_per_s=requests_per_s,
            output_tokens_per_s=requests_per_s * outputs,
            output_tokens_per_s_per_gpu=requests_per_s * outputs / strategy.gpu_count,
            parts=own,
        )
