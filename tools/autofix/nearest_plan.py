"""The nearest legal plan to what an author decided, built and checked; or why every strategy failed.

Strategies that fit into memory are tried in the order of their distance (`distance.py`); the first whose plan holds the
workload's limits and passes every rule is the answer. Stage cuts, device order, expert placement and ids stay the
author's wherever the new degrees allow. The workload, the model and the hardware are never changed.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import islice
from math import lcm
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..checkpoint import checked
from ..errors import InputError
from ..performance.layout import facts_of
from ..performance.limits import excess_share, excess_shares, figures_of_run, stated_limits
from ..performance.planned_run import planned_run
from ..plan.document import HardwareBlock, Strategy
from ..plan.placement import evening_copies, is_disaggregated
from ..plan.view import PlanView
from ..search.candidate import SearchRequest
from ..search.ranking import limits_missed
from ..search.search import search
from ..validate import ValidationReport, validate
from .author_devices import gathered
from .distance import moves, preference
from .header_differences import kept_blocks
from .intent import PlanIntent
from .nearest import Nearest
from .offers import searchable
from .placing import MOST_DEVICES
from .result import Replanning
from .target import Target, reference_for, target_of

_NODE = 8
# Simulating this many requests takes as long as laying a strategy out on a node.
_REQUESTS = 500
# Runs at a stated rate are repeated, longer each time, until their latency stops growing: at most this often.
_OPEN_RUNS = 3
# GPUs of a cluster that are considered unless the author decided on more.
MOST_GPUS = 256
# Strategies that are timed (counted per node of devices), and plans that are built and checked, before the search of
# the whole space takes over.
MOST_TIMED = 160
MOST_BUILT = 24
# Nodes and edges of all plans that are built and checked, for a request and its offers together; the first plan is
# built whatever its size.
MOST_ELEMENTS = 150_000
# Leading strategies of a search that are built and checked.
MOST_LEADERS = 8


class BuiltPlan(Struct, frozen=True):
    """The plan of a strategy that keeps what it can of the author's: as a target, as a document, and its report."""

    target: Target
    document: dict[str, Any]
    report: ValidationReport


class Replanned(Struct, frozen=True):
    """The nearest legal plan, validated, and its distance from the author's strategy."""

    built: BuiltPlan
    replanning: Replanning


class Missed(Struct, frozen=True):
    """The strategy that comes closest to the limits: those that it misses, in words, and the largest excess share."""

    strategy: Strategy
    missed: tuple[str, ...]
    excess: float


class Work(Struct):
    """Counts what was built and checked for a request and its offers."""

    elements: int = 0
    searches: int = 0
    _last: int = 0

    def note(self, document: dict[str, Any]) -> None:
        """Count the nodes and edges of a plan."""
        self._last = len(document["nodes"]) + len(document["edges"])
        self.elements += self._last

    @property
    def is_done(self) -> bool:
        """Whether another plan as large as the last one would exceed `MOST_ELEMENTS`."""
        return self.elements + self._last > MOST_ELEMENTS


def search_request(intent: PlanIntent) -> SearchRequest:
    """The request for a search of the whole space for what `intent` asks.

    Raises InputError: something that every plan needs is missing, or the accelerator is not known.
    """
    architecture, hardware = intent.architecture, _bounded(intent)
    if architecture is None or hardware is None or intent.workload is None or intent.precision is None:
        raise InputError(f"the proposal does not say: {', '.join(intent.missing)}")
    return SearchRequest(
        architecture=architecture,
        hardware=hardware,
        facts=facts_of(hardware),
        workload=intent.workload,
        precision=intent.precision,
        policy=intent.policy,
        serving=intent.serving,
        disaggregated=intent.strategy is not None and is_disaggregated(intent.strategy),
    )


def _bounded(intent: PlanIntent) -> HardwareBlock | None:
    """The hardware; of a larger cluster only as much as was decided on, and at least `MOST_GPUS`."""
    hardware = intent.hardware
    if hardware is None or hardware.nodes * hardware.gpus_per_node <= MOST_GPUS:
        return hardware
    wanted = 0 if intent.strategy is None else min(intent.strategy.gpu_count, MOST_DEVICES)
    per_node = min(hardware.gpus_per_node, MOST_GPUS)
    nodes = min(hardware.nodes, -(-max(MOST_GPUS, wanted) // per_node))
    return hardware.model_copy(update={"nodes": nodes, "gpus_per_node": per_node})


class Attempt:
    """Tries strategies in order, and remembers why they failed: limits, or the rules that refused plans.

    `work` counts what was done before. `is_whole`: every legal strategy, or the whole space of the search, was tried.

    Raises InputError: something that every plan needs is missing or not known.
    """

    def __init__(self, intent: PlanIntent, view: PlanView, work: Work) -> None:
        assert intent.strategy is not None
        self.intent, self.view, self.work = intent, view, work
        self.walk = Nearest(search_request(intent), intent.strategy)
        self.is_whole = True
        # How many plans each rule refused, and its first message.
        self.refused: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.nearest_miss: Missed | None = None
        self._timed = self._built = 0

    def nearest_plan(self) -> Replanned | None:
        """The nearest legal plan; `None` if there is none.

        Raises InputError: a fact that every time depends on is missing.
        """
        for strategy in checked(self.walk.strategies(), 1):
            replanned = self._tried(strategy, is_nearest=self.walk.is_complete)
            if replanned is not None:
                return replanned
            if self._is_spent:
                break
        self.is_whole = self.walk.is_complete and not self._is_spent
        if self.is_whole and self.intent.policy.constraints and not self.refused and self.nearest_miss is None:
            self._ask_which_constraint_binds()
        return None if self.is_whole else self._nearest_by_search()

    def _ask_which_constraint_binds(self) -> None:
        """Try the nearest strategy that fits into memory without constraints, so that a rule names the binding one."""
        policy = self.intent.policy.model_copy(update={"constraints": None})
        for strategy in islice(Nearest(replace(self.walk.request, policy=policy), self.walk.author).strategies(), 1):
            self._tried(strategy)

    def _nearest_by_search(self) -> Replanned | None:
        """The nearest legal plan among the leading strategies of a search."""
        part = searchable(self.walk.request)
        self.work.searches += 1
        result = search(part)
        self.is_whole = part is self.walk.request and not result.left_out
        leaders = [candidate.strategy for candidate in result.candidates if candidate.feasible]
        author, has_ffn = self.walk.author, part.architecture.has_split_ffn
        leaders.sort(key=lambda strategy: preference(author, strategy, has_ffn=has_ffn))
        for strategy in leaders[:MOST_LEADERS]:
            if self.work.is_done:
                break
            replanned = self._tried(strategy, is_nearest=False)
            if replanned is not None:
                return replanned
        for candidate in result.candidates:
            if candidate.why_not and candidate.ttft_ms is not None and candidate.tpot_ms is not None:
                figures = candidate.ttft_ms, candidate.tpot_ms, candidate.output_tokens_per_s or 0.0
                self._note(Missed(candidate.strategy, candidate.why_not, float(excess_shares(part.workload, *figures))))
        return None

    @cached_property
    def reached(self) -> dict[str, float]:
        """Figures of the strategy that comes closest to the limits, by the limit's field of the workload."""
        miss = None if self.work.is_done else self.nearest_miss
        built = None if miss is None else _built_plan(self.intent, self.view, miss.strategy)
        return {
            violation.path.removeprefix("/workload/"): violation.value
            for violation in (built.report.violations if built is not None else ())
            if violation.rule == "PE010" and isinstance(violation.value, int | float)
        }

    @property
    def _is_spent(self) -> bool:
        """Whether the budget for trying single strategies is used up."""
        return self._timed >= MOST_TIMED or self._built >= MOST_BUILT or self.work.is_done

    def _tried(self, strategy: Strategy, *, is_nearest: bool = True) -> Replanned | None:
        """The plan of `strategy`, if it holds the limits and passes every rule."""
        if not self._holds_limits(strategy):
            return None
        self._built += 1
        built = _built_plan(self.intent, self.view, strategy)
        if built is None:
            return None
        self.work.note(built.document)
        if not built.report.valid:
            for violation in built.report.violations:
                if violation.severity == "error":
                    self.refused[violation.rule] += 1
                    self.reasons.setdefault(violation.rule, violation.message)
            return None
        author = self.walk.author
        changed = moves(author, strategy, has_ffn=self.walk.request.architecture.has_split_ffn)
        return Replanned(
            built,
            Replanning(
                before=author,
                after=strategy,
                distance=sum(move.cost for move in changed),
                moves=tuple(map(str, changed)),
                is_nearest=is_nearest,
            ),
        )

    def _holds_limits(self, strategy: Strategy) -> bool:
        """Whether the simulated load holds the workload's limits."""
        workload = self.walk.request.workload
        layout = self.walk.layout(strategy)
        if layout is None or not stated_limits(workload):
            return layout is not None
        run = planned_run(layout)
        simulated = run.requests * (1 if workload.request_rate is None else _OPEN_RUNS)
        self._timed += max(1, strategy.gpu_count // _NODE, simulated // _REQUESTS)
        figures = figures_of_run(run)
        missed = limits_missed(workload, figures)
        if missed:
            self._note(Missed(strategy, missed, excess_share(workload, figures)))
        return not missed

    def _note(self, miss: Missed) -> None:
        if self.nearest_miss is None or miss.excess < self.nearest_miss.excess:
            self.nearest_miss = miss


def _built_plan(intent: PlanIntent, view: PlanView, strategy: Strategy) -> BuiltPlan | None:
    """The plan of `strategy` for the author of `view`; `None` if it cannot be built.

    If it is illegal on the author's devices, those of fewer nodes are tried: a device moves before a degree changes.
    """
    built = _built_on(intent, view, strategy)
    if intent.hardware is None or (built is not None and built.report.valid):
        return built
    fewer = gathered(intent.devices, intent.hardware.gpus_per_node)
    on_fewer_nodes = None if fewer == intent.devices else _built_on(replace(intent, devices=fewer), view, strategy)
    return on_fewer_nodes if on_fewer_nodes is not None and on_fewer_nodes.report.valid else built


def _built_on(intent: PlanIntent, view: PlanView, strategy: Strategy) -> BuiltPlan | None:
    """The plan of `strategy` on the devices of `intent`, as far as it has them."""
    if intent.architecture is None:
        return None
    experts, copies = intent.architecture.num_experts, intent.redundant_experts
    if copies:
        # Plus as many as make all expert groups of the new degrees equal (rule EN003).
        copies += evening_copies(experts + copies, lcm(strategy.prefill.ep, strategy.decode.ep))
    request = intent.request_for(strategy, copies if experts else 0)
    if request is None:
        return None
    try:
        reference = reference_for(view, request, intent.architecture)
    except InputError:
        return None
    built = _checked(view, target_of(view, reference))
    if built.report.valid:
        return built
    # The author's decisions inside operators may not fit the new degrees; the builder's do.
    rebuilt = _checked(view, target_of(view, reference, as_built=True))
    return rebuilt if rebuilt.report.valid else built


def _checked(view: PlanView, target: Target) -> BuiltPlan:
    document = {
        **kept_blocks(view.raw, target.header),
        "nodes": [*map(dict, target.nodes.values()), *(dict(view.by_id[name].raw) for name in sorted(target.shown))],
        "edges": [dict(edge) for edge in target.edges.values()],
    }
    return BuiltPlan(target, document, validate(document))
