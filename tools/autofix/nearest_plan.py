"""The nearest legal plan to what an author decided, built and checked; or what stood in the way of all strategies.

Strategies that fit into memory are taken in the order of their distance (`distance.py`); the first whose plan holds the
workload's limits and passes every rule is the answer. Stage cuts, device order, expert placement and ids stay the
author's wherever the new degrees leave room for them. The workload, the model and the hardware are never changed.
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
from .differences import kept_blocks
from .distance import moves, preference
from .intent import PlanIntent
from .nearest import Nearest
from .offers import searchable
from .placing import MOST_DEVICES
from .result import Replanning
from .target import Target, reference_for, target_of

_NODE = 8
# Requests whose simulation takes as long as laying a strategy out on a node.
_REQUESTS = 500
# The run of a stated rate is made anew, and longer, as long as its requests take longer than the last one's.
_OPEN_RUNS = 3
# GPUs of a cluster that are looked at where no more were decided on.
MOST_GPUS = 256
# Strategies of a node whose times are worked out, and plans that are built and checked, before the search of the whole
# space is asked instead.
MOST_TIMED = 160
MOST_BUILT = 24
# Nodes and edges of the plans that are built and checked, of a request and of what is offered in its place together:
# one plan of more is built all the same.
MOST_ELEMENTS = 150_000
# Of the search's leaders, those that are built and checked.
MOST_LEADERS = 8


class BuiltPlan(Struct, frozen=True):
    """The plan of a strategy with all that can stay the author's: as a target, as a document, and its report."""

    target: Target
    document: dict[str, Any]
    report: ValidationReport


class Replanned(Struct, frozen=True):
    """The nearest legal plan, validated, and how far it is from what was decided."""

    built: BuiltPlan
    replanning: Replanning


class Missed(Struct, frozen=True):
    """The strategy that comes closest to the limits: which it misses, in words, and by which share at most."""

    strategy: Strategy
    missed: tuple[str, ...]
    excess: float


class Work(Struct):
    """What was built and checked for one request and what is offered in its place."""

    elements: int = 0
    searches: int = 0
    _last: int = 0

    def note(self, document: dict[str, Any]) -> None:
        """Count the nodes and edges of a plan."""
        self._last = len(document["nodes"]) + len(document["edges"])
        self.elements += self._last

    @property
    def is_done(self) -> bool:
        """Whether another plan as large as the last one would be more than is built."""
        return self.elements + self._last > MOST_ELEMENTS


def search_request(intent: PlanIntent) -> SearchRequest:
    """The search of the whole space for what `intent` asks.

    Raises InputError: something that no plan can do without is missing, or the accelerator is not known.
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
    """The hardware, or so much of a larger cluster as is looked at: what was decided, and no less than `MOST_GPUS`."""
    hardware = intent.hardware
    if hardware is None or hardware.nodes * hardware.gpus_per_node <= MOST_GPUS:
        return hardware
    wanted = 0 if intent.strategy is None else min(intent.strategy.gpu_count, MOST_DEVICES)
    per_node = min(hardware.gpus_per_node, MOST_GPUS)
    nodes = min(hardware.nodes, -(-max(MOST_GPUS, wanted) // per_node))
    return hardware.model_copy(update={"nodes": nodes, "gpus_per_node": per_node})


class Attempt:
    """Tries strategies one by one, and remembers what stood in the way: limits, or the rules that refused plans.

    `work` is what was done before. `is_whole`: every legal strategy was looked at, or the whole space of the search.

    Raises InputError: something that no plan can do without is missing or not known.
    """

    def __init__(self, intent: PlanIntent, view: PlanView, work: Work) -> None:
        assert intent.strategy is not None
        self.intent, self.view, self.work = intent, view, work
        self.walk = Nearest(search_request(intent), intent.strategy)
        self.is_whole = True
        # How many plans each rule refused, and the first message of each.
        self.refused: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.nearest_miss: Missed | None = None
        self._timed = self._built = 0

    def found(self) -> Replanned | None:
        """The nearest legal plan, `None` where there is none.

        Raises InputError: a fact is missing without which no time can be worked out.
        """
        for strategy in checked(self.walk.strategies(), 1):
            found = self._judged(strategy)
            if found is not None:
                return found
            if self._is_spent:
                break
        self.is_whole = self.walk.is_complete and not self._is_spent
        if self.is_whole and self.intent.policy.constraints and not self.refused and self.nearest_miss is None:
            self._ask_which_constraint_binds()
        return None if self.is_whole else self._found_by_search()

    def _ask_which_constraint_binds(self) -> None:
        """Have the rules refuse the nearest strategy that would fit into memory without constraints."""
        policy = self.intent.policy.model_copy(update={"constraints": None})
        for strategy in islice(Nearest(replace(self.walk.request, policy=policy), self.walk.author).strategies(), 1):
            self._judged(strategy)

    def _found_by_search(self) -> Replanned | None:
        """The nearest of the leading strategies of a search, where too many were to be tried one by one."""
        part = searchable(self.walk.request)
        self.work.searches += 1
        whole, self.is_whole = search(part), part is self.walk.request
        leaders = [one.strategy for one in whole.candidates if one.feasible]
        author, has_ffn = self.walk.author, part.architecture.has_split_ffn
        leaders.sort(key=lambda strategy: preference(author, strategy, has_ffn=has_ffn))
        for strategy in leaders[:MOST_LEADERS]:
            if self.work.is_done:
                break
            found = self._judged(strategy, is_nearest=False)
            if found is not None:
                return found
        for one in whole.candidates:
            if one.why_not and one.ttft_ms is not None and one.tpot_ms is not None:
                figures = one.ttft_ms, one.tpot_ms, one.output_tokens_per_s or 0.0
                self._note(Missed(one.strategy, one.why_not, float(excess_shares(part.workload, *figures))))
        return None

    @cached_property
    def reached(self) -> dict[str, float]:
        """The figures of the strategy that comes closest to the limits, by the limit's field of the workload."""
        miss = None if self.work.is_done else self.nearest_miss
        built = None if miss is None else _built_plan(self.intent, self.view, miss.strategy)
        return {
            violation.path.removeprefix("/workload/"): violation.value
            for violation in (built.report.violations if built is not None else ())
            if violation.rule == "PE010" and isinstance(violation.value, int | float)
        }

    @property
    def _is_spent(self) -> bool:
        """Whether as many were tried as are worth trying one by one."""
        return self._timed >= MOST_TIMED or self._built >= MOST_BUILT or self.work.is_done

    def _judged(self, strategy: Strategy, *, is_nearest: bool = True) -> Replanned | None:
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
        """Whether the run of the load holds the workload's limits."""
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
    """The plan of `strategy` for the author of `view`; `None` where it cannot be built.

    Where it is not legal on his devices, on those of fewer nodes: a device is moved before a degree is changed.
    """
    found = _built_on(intent, view, strategy)
    if intent.hardware is None or (found is not None and found.report.valid):
        return found
    fewer = gathered(intent.devices, intent.hardware.gpus_per_node)
    other = None if fewer == intent.devices else _built_on(replace(intent, devices=fewer), view, strategy)
    return other if other is not None and other.report.valid else found


def _built_on(intent: PlanIntent, view: PlanView, strategy: Strategy) -> BuiltPlan | None:
    """The plan of `strategy` on the devices of `intent`, as far as it has them."""
    if intent.architecture is None:
        return None
    experts, copies = intent.architecture.num_experts, intent.redundant_experts
    if copies:
        # As many more as make all expert groups of the new degrees alike (rule EN003).
        copies += evening_copies(experts + copies, lcm(strategy.prefill.ep, strategy.decode.ep))
    request = intent.request_for(strategy, copies if experts else 0)
    if request is None:
        return None
    try:
        reference = reference_for(view, request, intent.architecture)
    except InputError:
        return None
    found = _checked(view, target_of(view, reference))
    if found.report.valid:
        return found
    # What the author decided inside operators may not go with the new degrees: the builder's way does.
    other = _checked(view, target_of(view, reference, as_built=True))
    return other if other.report.valid else found


def _checked(view: PlanView, target: Target) -> BuiltPlan:
    document = {
        **kept_blocks(view.raw, target.header),
        "nodes": [*map(dict, target.nodes.values()), *(dict(view.by_id[name].raw) for name in sorted(target.shown))],
        "edges": [dict(edge) for edge in target.edges.values()],
    }
    return BuiltPlan(target, document, validate(document))
