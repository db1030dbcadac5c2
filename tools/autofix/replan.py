"""The nearest legal plan to what an author decided, where mending the graph cannot do; or why there is none.

Strategies that fit into memory are taken in the order of their distance (`distance.py`); the first whose plan holds the
workload's limits and passes every rule is the answer. Stage cuts, device order, expert placement and ids stay the
author's wherever the new degrees leave room for them. The workload, the model and the hardware are never changed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..catalog.hardware import hardware_facts
from ..checkpoint import checked
from ..errors import InputError
from ..performance.limits import excess_share, excess_shares, figures_of_run
from ..performance.planned_run import planned_run
from ..plan.document import HardwareBlock, Strategy
from ..plan.placement import is_disaggregated
from ..plan.view import PlanView
from ..rules.memory.insufficient_memory import beyond_positions
from ..search.candidate import SearchRequest, SearchResult
from ..search.ranking import limits_missed
from ..search.search import search
from ..validate import ValidationReport
from .distance import Move, moves
from .intent import PlanIntent
from .nearest import Nearest
from .no_plan import Failure, Missed, NoPlan, too_long, untimed, why_none
from .offers import searchable
from .placing import MOST_DEVICES
from .rebuilt import built_plan

_NODE = 8
# Requests whose simulation takes as long as laying a strategy out on a node.
_REQUESTS = 500
# The run of a stated rate is made anew, and longer, as long as its requests take longer than the last one's.
_OPEN_RUNS = 3
# Strategies of a node whose times are worked out, and plans that are built and checked, before the search of the whole
# space is asked instead.
MOST_TIMED = 160
# GPUs of a cluster that are looked at where no more were decided on.
MOST_GPUS = 256
MOST_BUILT = 24
# Nodes and edges of the plans that are built and checked, of a request and of what is offered in its place together:
# one plan of more is built all the same.
MOST_ELEMENTS = 150_000
# Searches of the whole space, of a request and of what is offered in its place together.
MOST_SEARCHES = 3
# Of the search's leaders, those that are built and checked.
MOST_LEADERS = 8


@dataclass(frozen=True, slots=True)
class Replanned:
    """The nearest legal plan, validated: the document in the author's names, and how far it is from what was decided.

    `is_nearest`: whether every nearer strategy was looked at; else it is the nearest of those that were, and of the
    search's leaders.
    """

    document: dict[str, Any]
    report: ValidationReport
    before: Strategy
    after: Strategy
    distance: float
    moves: tuple[Move, ...]
    kept_devices: int
    kept_nodes: int
    is_nearest: bool = True


def replan(intent: PlanIntent, view: PlanView) -> Replanned | NoPlan:
    """The nearest legal plan to `intent`, read from the document behind `view`, or why none exists. Never raises."""
    if intent.missing or intent.strategy is None:
        lacking = ", ".join(intent.missing) or "strategy"
        return NoPlan("ST001", f"nothing can be planned without what the proposal does not say: {lacking}")
    work = _Work()
    find = partial(_found, view=view, work=work)
    try:
        search_request(intent)
    except InputError as error:
        return NoPlan("ME001", f"nothing can be planned: {error}")
    if intent.workload is not None and intent.architecture is not None:
        beyond = beyond_positions(intent.workload.model_dump(mode="json"), intent.architecture.max_position_embeddings)
        if beyond is not None:
            return too_long(intent, f"no strategy mends the request: {beyond[1]}", find)
    try:
        found = find_nearest(intent, view, work)
        return found if isinstance(found, Replanned) else why_none(intent, found, find)
    except InputError as error:
        return untimed(intent, f"the limits cannot be checked: {error}", find)


def _found(intent: PlanIntent, view: PlanView, work: _Work) -> dict[str, Any] | None:
    """The nearest legal plan of a changed intent, as a document; `None` where there is none or a fact is wanting."""
    if work.is_done or work.searches >= MOST_SEARCHES:
        return None
    try:
        found = find_nearest(intent, view, work)
    except InputError:
        return None
    return found.document if isinstance(found, Replanned) else None


def search_request(intent: PlanIntent) -> SearchRequest:
    """The search of the whole space for what `intent` asks.

    Raises:
        InputError: something that no plan can do without is missing, or the accelerator is not known.
    """
    architecture, hardware = intent.architecture, _bounded(intent)
    if architecture is None or hardware is None or intent.workload is None or intent.precision is None:
        raise InputError(f"the proposal does not say: {', '.join(intent.missing)}")
    return SearchRequest(
        architecture=architecture,
        hardware=hardware,
        facts=hardware_facts(
            hardware.accelerator, hardware.nodes, hardware.gpus_per_node,
            intra_node_bw_gb_s=hardware.intra_node_bw_gb_s, inter_node_bw_gb_s=hardware.inter_node_bw_gb_s,
        ),
        workload=intent.workload,
        precision=intent.precision,
        policy=intent.policy,
        serving=intent.serving,
        disaggregated=intent.strategy is not None and is_disaggregated(intent.strategy),
    )  # fmt: skip


def _bounded(intent: PlanIntent) -> HardwareBlock | None:
    """The hardware, or so much of a larger cluster as is looked at: what was decided, and no less than `MOST_GPUS`."""
    hardware = intent.hardware
    if hardware is None or hardware.nodes * hardware.gpus_per_node <= MOST_GPUS:
        return hardware
    wanted = 0 if intent.strategy is None else min(intent.strategy.gpu_count, MOST_DEVICES)
    per_node = min(hardware.gpus_per_node, MOST_GPUS)
    nodes = min(hardware.nodes, -(-max(MOST_GPUS, wanted) // per_node))
    return hardware.model_copy(update={"nodes": nodes, "gpus_per_node": per_node})


@dataclass
class _Work:
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


def find_nearest(intent: PlanIntent, view: PlanView, work: _Work | None = None) -> Replanned | Failure:
    """The nearest legal plan, or what stood in the way of all that were tried; `work` is what was done before.

    Raises:
        InputError: something that no plan can do without is missing or not known.
    """
    request, author = search_request(intent), intent.strategy
    assert author is not None
    walk = Nearest(request, author)
    attempt = _Attempt(intent, view, walk, work or _Work())
    for strategy in checked(walk.strategies(), 1):
        found = attempt.judged(strategy)
        if found is not None:
            return found
        if attempt.is_spent:
            break
    is_whole = walk.is_complete and not attempt.is_spent
    if not is_whole:
        part = searchable(request)
        attempt.work.searches += 1
        whole, is_whole = search(part), part is request
        leaders = [one.strategy for one in whole.candidates if one.feasible]
        for strategy in sorted(leaders, key=walk.preference)[:MOST_LEADERS]:
            if attempt.work.is_done:
                break
            found = attempt.judged(strategy, is_nearest=False)
            if found is not None:
                return found
        attempt.note_misses(whole)
    return attempt.failure(request, is_whole=is_whole)


@dataclass
class _Attempt:
    """Tries strategies one by one, and remembers what stood in the way."""

    intent: PlanIntent
    view: PlanView
    walk: Nearest
    work: _Work
    timed: int = 0
    built: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    nearest_miss: Missed | None = None

    @property
    def is_spent(self) -> bool:
        """Whether as many were tried as are worth trying one by one."""
        return self.timed >= MOST_TIMED or self.built >= MOST_BUILT or self.work.is_done

    def failure(self, request: SearchRequest, *, is_whole: bool) -> Failure:
        """What stood in the way."""
        reached: dict[str, float] = {}
        miss = None if self.work.is_done else self.nearest_miss
        built = None if miss is None else built_plan(self.intent, self.view, miss.strategy)
        for violation in built[1].violations if built is not None else ():
            if violation.rule == "PE010" and isinstance(violation.value, int | float):
                reached[violation.path.removeprefix("/workload/")] = violation.value
        return Failure(request, self.nearest_miss, tuple(self.refused.most_common()), self.reasons, reached, is_whole)

    def judged(self, strategy: Strategy, *, is_nearest: bool = True) -> Replanned | None:
        """The plan of `strategy`, if it holds the limits and passes every rule."""
        if not self._holds_limits(strategy):
            return None
        self.built += 1
        built = built_plan(self.intent, self.view, strategy)
        if built is None:
            return None
        document, report, kept_nodes = built
        self.work.note(document)
        if not report.valid:
            for violation in report.violations:
                if violation.severity == "error":
                    self.refused[violation.rule] += 1
                    self.reasons.setdefault(violation.rule, violation.message)
            return None
        author = self.intent.strategy
        assert author is not None
        changed = moves(author, strategy, has_ffn=self.walk.request.architecture.has_split_ffn)
        used = {device for node in document["nodes"] for device in node.get("devices", ())}
        return Replanned(
            document=document,
            report=report,
            before=author,
            after=strategy,
            distance=sum(move.cost for move in changed),
            moves=changed,
            kept_devices=len(used & self.view.devices),
            kept_nodes=kept_nodes,
            is_nearest=is_nearest,
        )

    def _holds_limits(self, strategy: Strategy) -> bool:
        """Whether the run of the load holds the workload's limits."""
        workload = self.walk.request.workload
        stated = workload.ttft_ms_max, workload.tpot_ms_max, workload.min_tokens_per_second, workload.request_rate
        layout = self.walk.layout(strategy)
        if layout is None or all(limit is None for limit in stated):
            return layout is not None
        run = planned_run(layout)
        simulated = run.requests * (1 if workload.request_rate is None else _OPEN_RUNS)
        self.timed += max(1, strategy.gpu_count // _NODE, simulated // _REQUESTS)
        figures = figures_of_run(run)
        missed = limits_missed(workload, figures)
        if missed:
            self._note(Missed(strategy, missed, excess_share(workload, figures)))
        return not missed

    def note_misses(self, whole: SearchResult) -> None:
        """Look among the candidates of a search for one that misses the limits by less."""
        workload = self.walk.request.workload
        for one in whole.candidates:
            if one.why_not and one.ttft_ms is not None and one.tpot_ms is not None:
                figures = one.ttft_ms, one.tpot_ms, one.output_tokens_per_s or 0.0
                self._note(Missed(one.strategy, one.why_not, float(excess_shares(workload, *figures))))

    def _note(self, miss: Missed) -> None:
        if self.nearest_miss is None or miss.excess < self.nearest_miss.excess:
            self.nearest_miss = miss
