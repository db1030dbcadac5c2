"""What a search gives back. `model_dump(mode="json")` of `SearchAnswer` is what `search --format json` prints."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ..tools.displayed import Displayed, frame
from ..tools.frozen import Sparse
from ..tools.plan.document import (
    HardwareBlock,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from ..tools.search.candidate import Candidate
from ..tools.search.sensitivity import Sensitivity
from .intent.intent import Assumption
from .results import Infeasible


class RankedCandidate(Candidate):
    """A candidate with its strategy in words; a figure that it does not have is null."""

    summary: str

    @model_serializer(mode="wrap")
    def _drop_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return handler(self)


class FamilyLost(Sparse):
    """The best of a family of strategies that did not win: by which number, and by which rule.

    `rule` is absent where the objective alone decided.
    """

    family: str
    strategy: Strategy
    summary: str
    reason: str
    rule: str | None = None


class Excluded(Sparse):
    """Strategies that are not in the space, and the rule or the wish that keeps them out."""

    family: str
    reason: str
    rule: str | None = None


class WithinReach(Sparse):
    """The best that can be had of one limit (a field of the workload) while all others are held, if they can be."""

    limit: str
    best: RankedCandidate | None = None


class StatedRank(Sparse):
    """How degrees that the request states fare: the place of the first candidate that has them, if one is listed."""

    place: int | None = None
    summary: str


class AskedFor(Sparse):
    """The request as it was understood and searched."""

    model: str
    hardware: HardwareBlock | None = None
    workload: WorkloadBlock
    concurrency_open: bool
    precision: PrecisionBlock
    # The number formats that were searched, where several were; `precision` is that of the best.
    precisions: tuple[PrecisionBlock, ...] | None = None
    policy: PolicyBlock
    serving: ServingBlock | None = None
    disaggregated: bool | None = None


class SearchAnswer(Displayed, Sparse):
    """Ranked strategies, the Pareto front (places in `candidates`), and why the others lost.

    `listed` counts the candidates before `top` cut them. `seconds` is the time of all that was searched, for hardware
    that does as well. `within_reach` has each limit where several are stated and nothing holds them all.
    """

    feasible: bool
    request: AskedFor
    candidates: tuple[RankedCandidate, ...]
    pareto: tuple[int, ...]
    listed: int
    # As in `SearchResult`.
    evaluated: int
    timed: int = 0
    simulated: int = 0
    behind: float | None = None
    refused: dict[str, int] = Field(default_factory=dict[str, int])
    rejected: dict[str, int]
    pruned: dict[str, int]
    seconds: float
    families: tuple[FamilyLost, ...]
    excluded: tuple[Excluded, ...]
    stated: StatedRank | None = None
    on_fewer: str | None = None
    sensitivity: Sensitivity | None = None
    infeasible: Infeasible | None = None
    within_reach: tuple[WithinReach, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    readings: tuple[str, ...] = ()
    not_acted_on: tuple[str, ...] = ()
    # The trace that was searched for, described in a line; a second line says what part of it the plan is for.
    trace: str | None = None
    # Work that was left out since the time limit of the search was over.
    left_out: tuple[str, ...] = ()
    words: dict[str, str] = Field(default_factory=dict[str, str])

    def one_line(self) -> str:
        """The best strategy, and how many there are."""
        if self.best is None:
            return f"no strategy holds every limit, {self.evaluated:,} screened"
        return f"{self.best.summary} is best of {self.listed:,}, {self.evaluated:,} screened"

    def to_pandas(self) -> Any:
        """The candidates with their figures as a `pandas.DataFrame`, the best first.

        Raises:
            InputError: pandas is not installed.
        """
        figures = {"summary", "feasible", "gpus", "concurrency", "ttft_ms", "tpot_ms", "end_to_end_ms",
                   "output_tokens_per_s", "output_tokens_per_s_per_gpu", "memory_per_gpu_bytes"}  # fmt: skip
        return frame([candidate.model_dump(include=figures) for candidate in self.candidates])

    @property
    def best(self) -> RankedCandidate | None:
        """The best strategy, where one holds every limit."""
        return self.candidates[0] if self.feasible and self.candidates else None

    @property
    def exit_status(self) -> Literal[0, 1]:
        """0: a strategy holds every limit; 1: the answer is no."""
        return 0 if self.feasible else 1
