"""The data of a search: its request, one candidate, and its result."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import Field

from ..calibration.custom import CustomCalibration
from ..catalog.architecture import Architecture
from ..catalog.hardware import HardwareFacts
from ..engines.names import JUDGED, EngineName, engine_of
from ..frozen import Sparse
from ..performance.layout import usable_share
from ..performance.limits import stated_limits
from ..plan.constraints import affordable_gpus
from ..plan.document import TWO_BATCH, HardwareBlock, PolicyBlock, PrecisionBlock, ServingBlock, Strategy, WorkloadBlock
from ..plan.performance import Ranges
from .space import SpaceRequest

# Devices up to which an open placement is searched with phases apart as well: some twenty seconds of work.
MOST_APART = 128


class SearchRequest(Struct, frozen=True):
    """What to search: a model on hardware under a load. `concurrency_open`: as many requests as fit the limits.

    At a rate requests come at random, whatever concurrency is stated: a plan has the requests of its run in flight, and
    room for those stated (`simulated.candidate_at`).

    `disaggregated`: prefill and decode on replicas of their own, on the same ones, or (`None`) whichever is better.
    """

    architecture: Architecture
    hardware: HardwareBlock
    facts: HardwareFacts
    workload: WorkloadBlock
    precision: PrecisionBlock
    policy: PolicyBlock = field(default_factory=PolicyBlock)
    serving: ServingBlock | None = None
    # Whether `serving.max_batch` was set for this number of requests (`batch.py`), not stated.
    batch_follows_load: bool = False
    # Where no engine is named: the engine that must still be able to start all degrees; `None`: a plan on paper.
    assumed_engine: EngineName | None = None
    concurrency_open: bool = False
    disaggregated: bool | None = None
    # Whether nothing may be sent from node to node, since its speed is not known.
    stays_in_nodes: bool = False
    # A user's own calibration: it changes times, never which strategies are legal.
    calibration: CustomCalibration | None = None
    # Number formats that were left open: each is searched in place of `precision`.
    precisions: tuple[PrecisionBlock, ...] = ()

    @property
    def named_engine(self) -> EngineName | None:
        """The named engine, if the rules know it."""
        return None if self.serving is None else engine_of(self.serving.engine)

    @property
    def usable_bytes_per_gpu(self) -> float:
        """Memory of one device that a plan may use."""
        return self.facts.memory_bytes * usable_share(self.policy, self.facts)

    @property
    def usable_bytes(self) -> float:
        """Memory of all devices that a plan may use."""
        return self.space.gpus * self.usable_bytes_per_gpu

    @property
    def finds_requests(self) -> bool:
        """Whether requests in flight are looked for: where none were stated, and where a rate makes them."""
        return self.concurrency_open or self.workload.request_rate is not None

    @property
    def is_paid_by_token(self) -> bool:
        """Whether cost is judged per token: no rate and no floor says how many tokens are needed."""
        load = self.workload
        return load.objective == "cost" and load.request_rate is None and load.min_tokens_per_second is None

    @property
    def says_enough(self) -> bool:
        """Whether a load and limits say what is enough; with as many requests as fit, more devices always hold more."""
        load = self.workload
        is_stated = not self.concurrency_open or load.request_rate is not None or load.min_tokens_per_second is not None
        return is_stated and bool(stated_limits(load))

    @property
    def looks_apart(self) -> bool:
        """Whether strategies with phases apart are searched; they take two devices at least."""
        if self.disaggregated is not None:
            return self.disaggregated
        return 2 <= self.facts.gpus <= MOST_APART and not self.stays_in_nodes and self.can_hand_over

    @property
    def can_hand_over(self) -> bool:
        """Whether servers of the stated release of the engine can hand caches to others."""
        version = None if self.serving is None else self.serving.engine_version
        return self.named_engine is None or JUDGED[self.named_engine].hands_over(version)

    @property
    def fills_upwards(self) -> bool:
        """Whether an open concurrency is to be as low as the limits allow, not as high as memory allows."""
        return self.workload.objective == "latency" or self.workload.request_rate is not None

    @property
    def is_paid_by_hour(self) -> bool:
        """Whether cost is judged per hour: a stated rate is served by whatever keeps up with it."""
        return self.workload.objective == "cost" and self.workload.request_rate is not None

    def settled(self, candidate: Candidate | None) -> SearchRequest:
        """The request with the number formats of `candidate`, where they were left open."""
        if candidate is None or candidate.precision is None:
            return self
        return self.with_precision(candidate.precision)

    def with_precision(self, precision: PrecisionBlock) -> SearchRequest:
        """The request in those number formats alone."""
        return replace(self, precision=precision, precisions=())

    def each_precision(self) -> tuple[SearchRequest, ...]:
        """The request with each of the number formats that were left open; itself where none were."""
        return tuple(map(self.with_precision, self.precisions)) or (self,)

    @property
    def space(self) -> SpaceRequest:
        """The bounds of the space of strategies."""
        return SpaceRequest(
            architecture=self.architecture,
            nodes=self.hardware.nodes,
            gpus_per_node=self.hardware.gpus_per_node,
            input_tokens=self.workload.input_tokens,
            relaxations=frozenset(self.policy.relaxations),
            constraints=self.policy.constraints or (),
            most_gpus=affordable_gpus(
                self.policy.constraints or (), self.facts.accelerator, self.hardware.gpus_per_node
            ),
            disaggregated=self.disaggregated,
            engine=self.named_engine or self.assumed_engine,
            engine_version=None if self.serving is None else self.serving.engine_version,
            weights=self.precision.weights,
            stays_in_nodes=self.stays_in_nodes,
            # An engine that is only assumed is not held to what it can overlap.
            overlaps=self.named_engine is not None and self.serving is not None and self.serving.overlap in TWO_BATCH,
        )


class Candidate(Sparse):
    """One strategy with its figures. `why_not` names each rule that it breaks, with the number."""

    strategy: Strategy
    feasible: bool
    why_not: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    gpus: int
    # GPUs of all nodes that it is in: nodes are rented whole.
    billed_gpus: int | None = None
    concurrency: int
    ttft_ms: float | None = None
    tpot_ms: float | None = None
    end_to_end_ms: float | None = None
    # Latencies that a limit is on, but for the means of TTFT and TPOT: "TTFT p95" and its milliseconds.
    limited_ms: dict[str, float] = Field(default_factory=dict[str, float])
    output_tokens_per_s: float | None = None
    output_tokens_per_s_per_gpu: float | None = None
    # Requests come faster than they are served: TTFT and end to end are those of the run, and grow with its length.
    queue_grows: bool = False
    # The cache that its engine sets up holds no request of the load, so that nothing is served: ranked behind others.
    lacks_cache: bool = False
    # It keeps up with the stated rate and not with a little more (`planned_run.RATE_RESERVE`): ranked behind what does.
    lacks_reserve: bool = False
    # Output tokens/s of the requests that come at a stated rate, if it is kept up with; the cost of a token uses them.
    served_tokens_per_s: float | None = None
    # Ranges of measured figures; `dp_scaled_tokens_per_s` is that of `output_tokens_per_s`.
    ranges: Ranges | None = None
    memory_per_gpu_bytes: int | None = None
    shortfall_bytes: int | None = None
    # Its number formats; `None`: those of the request.
    precision: PrecisionBlock | None = None

    @property
    def is_sound(self) -> bool:
        """Whether it holds every limit and a request, and keeps up with a little more than the stated rate."""
        return self.feasible and not self.behind

    @property
    def behind(self) -> int:
        """What puts it behind others, whatever they cost: 0 nothing, 1 a lack of reserve, 2 of cache."""
        return 2 if self.lacks_cache else int(self.lacks_reserve)


class SearchResult(Sparse):
    """The leading candidates of all that were screened, the best of each family among them.

    Best first: the feasible ones by the objective, then those that miss a limit by least, then those that do not fit,
    then what is only on the front.
    """

    candidates: tuple[Candidate, ...]
    # The Pareto front of speed for a user and rate per GPU, slowest user first: places in `candidates`.
    pareto: tuple[int, ...] = ()
    # Strategies that were screened; those of them that were simulated, which alone have figures, and their loads.
    evaluated: int
    timed: int = 0
    simulated: int = 0
    # How many times worse than the best, by the screen, the next candidate is of those that were not simulated, hold
    # every limit and have no more warnings than others.
    behind: float | None = None
    # Degrees, stages and pairs that were refused before there was a strategy, by rule or the words of a constraint.
    refused: dict[str, int] = Field(default_factory=dict)
    rejected: dict[str, int]
    # Strategies that were not evaluated, by the bound that shows that they cannot win.
    pruned: dict[str, int] = Field(default_factory=dict)
    # What was left out because the time of the search was over.
    left_out: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate | None:
        """The best feasible candidate, if there is one."""
        return self.candidates[0] if self.candidates and self.candidates[0].feasible else None
