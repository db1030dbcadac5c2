"""One plan for several kinds of requests at once, each with its share: limits hold for each, rates are of the mixture.

A deployment is taken to serve the kinds in turn, each as if alone with all requests in flight of its kind: a second of
mixed service is shared by what each kind takes. Memory must hold the kind that needs most. Replicas serve both phases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import FloatArray
from ..checkpoint import checked, doing, leaves_out
from ..errors import InputError
from ..frozen import Sparse
from ..plan.document import PrecisionBlock, Strategy
from .candidate import Candidate, SearchRequest
from .colocated import ColocatedScreen
from .replicas import Replicas
from .screen import loosened
from .search import base_setting
from .simulated import candidate_at
from .space import Replica, SpaceRequest, colocated_kinds
from .strategy_rows import StrategyRows, order

# Mixed candidates that are shown.
_LISTED = 12


class Part(Struct, frozen=True):
    """One kind of request: its workload, and its share of all requests (shares need not add up to 1)."""

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
    left open each is evaluated, and the answer is that of the best. Raises InputError: a part asks for what a mixture
    has no answer to.
    """
    _check(parts)
    if parts[0].request.precisions:
        return _over_precisions(parts)
    mixer = _Mixer(parts)
    options: list[Replica] = []
    pieces: list[StrategyRows] = []
    for kind in checked(colocated_kinds(mixer.space), 1):
        if pieces and leaves_out("some of the strategies"):
            break
        doing(f"screening layouts: {sum(map(len, pieces)):,} strategies")
        replicas = mixer.screens[0].replicas(kind, 1)
        rows = mixer.rows(len(options), replicas)
        if len(rows):
            pieces.append(rows)
        options.extend(replicas.each)
    rows = StrategyRows.joined(pieces)
    evaluated = sum(len(replica.room.counts) for replica in options)
    leading = rows.take(order(rows, mixer.objective)[:_LISTED])
    numbers = zip(leading.decode, leading.decode_replicas, leading.concurrency, strict=True)
    candidates = [mixer.candidate(options[int(place)].strategy(int(dp)), int(load)) for place, dp, load in numbers]
    candidates.sort(key=lambda candidate: (not candidate.feasible, bool(candidate.warnings), _worth(candidate, parts)))
    rejected = {"ME001": evaluated - len(rows), "PE010": int((rows.excess > 0.0).sum())}
    return MixResult(
        candidates=tuple(candidates),
        evaluated=evaluated,
        rejected={rule: count for rule, count in rejected.items() if count},
    )


def _over_precisions(parts: Sequence[Part]) -> MixResult:
    """The answer in the best of the open number formats; the first that fits where none holds the limits."""
    results: list[MixResult] = []
    for single in parts[0].request.each_precision():
        if results and leaves_out("some of the number formats"):
            break
        settled = [replace(part, request=part.request.with_precision(single.precision)) for part in parts]
        results.append(search_mix(settled).model_copy(update={"precision": single.precision}))
    best = min(results, key=lambda result: (not result.candidates, _worth(result.best, parts)))
    rejected = sum((Counter(result.rejected) for result in results), Counter[str]())
    evaluated = sum(result.evaluated for result in results)
    return best.model_copy(update={"evaluated": evaluated, "rejected": dict(rejected)})


def _worth(candidate: MixCandidate | None, parts: Sequence[Part]) -> float:
    """What the objective wants small in a candidate of the mixture; infinite without a candidate."""
    if candidate is None:
        return inf
    objective = parts[0].request.workload.objective
    if objective == "latency":
        return sum(part.weight * (candidate.parts[part.name].end_to_end_ms or inf) for part in parts)
    billed = max(part.billed_gpus or candidate.gpus for part in candidate.parts.values()) if objective == "cost" else 1
    return -candidate.output_tokens_per_s / billed


def _check(parts: Sequence[Part]) -> None:
    if not parts or len({part.name for part in parts}) < len(parts):
        raise InputError("a mix needs at least one workload, and a name of its own for each")
    for part in parts:
        if not 0.0 < part.weight < float("inf"):
            raise InputError(f"workload {part.name!r} has the weight {part.weight:g}: it must be above 0")
        if part.request.disaggregated:
            raise InputError("a mix of workloads is planned for replicas that serve both phases, not disaggregated")


class _Mixer:
    """The screens of all parts, and the figures of strategies under their mixture."""

    def __init__(self, parts: Sequence[Part]) -> None:
        total = sum(part.weight for part in parts)
        self.parts = parts
        self.shares = [part.weight / total for part in parts]
        self.output_tokens = [part.request.workload.output_tokens for part in parts]
        self.settings = [base_setting(part.request) for part in parts]
        pairs = zip(parts, self.settings, strict=True)
        self.screens = [ColocatedScreen(loosened(part.request), setting) for part, setting in pairs]
        self.objective = parts[0].request.workload.objective

    @property
    def space(self) -> SpaceRequest:
        """The strategies that the longest prompt allows."""
        longest = max(part.request.workload.input_tokens for part in self.parts)
        return replace(self.parts[0].request.space, input_tokens=longest)

    def rows(self, first: int, replicas: Replicas) -> StrategyRows:
        """The rows of replicas of one kind under the mixture, where they fit for every part; `first` as in a screen."""
        all_replicas = [replicas, *(screen.cut(replicas.kind, replicas.pipelines.cuts) for screen in self.screens[1:])]
        shares = [screen.all_shares(member) for screen, member in zip(self.screens, all_replicas, strict=True)]
        usable = self.screens[0].usable_bytes
        fits = np.logical_and.reduce([share.memory_bytes <= usable for share in shares])
        if not fits.any():
            return StrategyRows.joined([])
        parts = zip(self.screens, all_replicas, shares, strict=True)
        mixed = self._mixed([screen.rows(first, member, share.take(fits)) for screen, member, share in parts])
        return self.screens[0].at_best_load(mixed)

    def _mixed(self, parts: Sequence[StrategyRows]) -> StrategyRows:
        """The rows [R] of the mixture of the same rows of each part."""
        tokens_per_s = self._mean(self.output_tokens) / self._seconds([rows.tokens_per_s for rows in parts])
        pairs = zip(parts, self.output_tokens, strict=True)
        whole_s = self._mean([rows.ttft_s + (count - 1) * rows.tpot_s for rows, count in pairs])
        gpus = parts[0].billed_gpus if self.objective == "cost" else 1.0
        return replace(
            parts[0],
            ttft_s=self._mean([rows.ttft_s for rows in parts]),
            tpot_s=self._mean([rows.tpot_s for rows in parts]),
            request_s=whole_s,
            tokens_per_s=tokens_per_s,
            warnings=np.bitwise_or.reduce([rows.warnings for rows in parts]),
            excess=np.maximum.reduce([rows.excess for rows in parts]),
            cost=whole_s if self.objective == "latency" else gpus / tokens_per_s,
        )

    def _mean(self, values: Sequence[FloatArray | float]) -> FloatArray | float:
        """The mean of a value over the requests of the mixture, from its value in each part."""
        return sum(share * value for share, value in zip(self.shares, values, strict=True))

    def _seconds(self, tokens_per_s: Sequence[FloatArray | float]) -> FloatArray | float:
        """Seconds that a request of the mixture takes of the deployment, from each part's output tokens per second."""
        parts = zip(self.shares, self.output_tokens, tokens_per_s, strict=True)
        return sum(share * count / rate for share, count, rate in parts)

    def candidate(self, strategy: Strategy, concurrency: int) -> MixCandidate:
        """One strategy with the figures of each part, computed as for a single plan."""
        pairs = zip(self.parts, self.settings, strict=True)
        by_part = {part.name: candidate_at(part.request, setting, strategy, concurrency) for part, setting in pairs}
        requests_per_s = float(1.0 / self._seconds([plan.output_tokens_per_s or 0.0 for plan in by_part.values()]))
        tokens_per_s = requests_per_s * float(self._mean(self.output_tokens))
        return MixCandidate(
            strategy=strategy,
            feasible=all(plan.feasible for plan in by_part.values()),
            why_not=tuple(f"{name}: {reason}" for name, plan in by_part.items() for reason in plan.why_not),
            warnings=tuple(dict.fromkeys(rule for plan in by_part.values() for rule in plan.warnings)),
            gpus=strategy.gpu_count,
            concurrency=concurrency,
            requests_per_s=requests_per_s,
            output_tokens_per_s=tokens_per_s,
            output_tokens_per_s_per_gpu=tokens_per_s / strategy.gpu_count,
            parts=by_part,
        )
