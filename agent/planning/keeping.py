"""The best strategy that has the degrees that a person stated, beside the best of all.

None that has them need be among the leading ones of all: then they are searched alone, and what no search proposes is
taken as it was stated where the rules accept it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...tools.engines.names import JUDGED
from ...tools.language.said import StatedStrategy
from ...tools.plan.document import Plan, ServingBlock, Strategy
from ...tools.plan.placement import is_disaggregated
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.ranking import merit
from ...tools.search.search import base_setting, search
from ...tools.search.simulated import candidate_at
from ..intent.intent import Intent
from ..results import StatedStrategyVerdict
from ..stated.search_request import architecture_of, search_request, with_concurrency
from ..stated.strategy import judge, pinning, read_strategy
from .placement import filled, placed
from .reasons import Proposal, figures, named

# The rule that is broken when a limit of the load is not held.
_LIMITS = "PE010"


class BestWith(Struct, frozen=True):
    """The best that has stated degrees; `in_groups`: a better one that attention DP would allow."""

    best: Candidate | None
    in_groups: Candidate | None


def with_stated(intent: Intent, free: Proposal, stated: StatedStrategy) -> Proposal:
    """`free` with the best strategy that has the stated degrees in place of the best of all, where one is feasible."""
    placement = _placement(free.request.disaggregated, stated)
    request = replace(free.request, disaggregated=placement)
    matching = (candidate for candidate in free.result.candidates if keeps(candidate.strategy, stated))
    keeping = [candidate for candidate in matching if placement in (None, is_disaggregated(candidate.strategy))]
    if not any(candidate.feasible for candidate in keeping):
        keeping = _pinned(request, stated) or _as_it_stands(intent, free, stated) or keeping
    feasible = next((candidate for candidate in keeping if candidate.feasible), None)
    if feasible is None:
        why = keeping[0].why_not[0] if keeping else _none_has_them(free.request)
        return replace(without_stated(free, why), asked=next(iter(keeping), None))
    chosen, of_placement = placed(request, keeping, feasible)
    chosen, of_nodes = filled(request, keeping, chosen)
    if chosen is free.chosen:
        return free
    note = _note_on_kept(free.chosen, chosen, free.request.workload.objective)
    others = [assumption for assumption in free.assumptions if assumption.field not in ("disaggregated", "gpus")]
    assumptions = (*others, *(assumption for assumption in (of_placement, of_nodes) if assumption is not None))
    return replace(free, request=free.request.settled(chosen), chosen=chosen, note=note, assumptions=assumptions)


def asked_about(proposal: Proposal, stated: StatedStrategy, verdict: StatedStrategyVerdict) -> Candidate | None:
    """The best candidate with the stated degrees where the plan has others; `None` where the rules refuse them."""
    if keeps(proposal.chosen.strategy, stated):
        return None
    matching = (candidate for candidate in proposal.result.candidates if keeps(candidate.strategy, stated))
    best = proposal.asked or next(matching, None)
    if best is not None or any(finding.severity == "error" and finding.rule != _LIMITS for finding in verdict.findings):
        return best
    return _at_load_of(proposal, stated) if verdict.estimate is not None else None


def without_stated(free: Proposal, why: str) -> Proposal:
    """`free`, which says why the stated degrees are not kept."""
    note = f"The degrees asked for cannot be kept: {why}. This is the best without."
    return replace(free, note=note, why_not_kept=why)


def sized_with(proposal: Proposal, best: Candidate) -> Proposal:
    """`kept`, on the fewest GPUs that hold every limit with the stated degrees; `best` is what was found without."""
    note = _note_on_kept(best, proposal.chosen, proposal.request.workload.objective)
    return replace(proposal, note=note)


def _note_on_kept(best: Candidate, chosen: Candidate, objective: str) -> str:
    """A note on the best strategy without the degrees that were asked for and kept."""
    if best.gpus < chosen.gpus:
        return f"The degrees asked for are kept; without them fewer GPUs would do: {named(best)} ({figures(best)})."
    word = "better" if merit(best, objective) < merit(chosen, objective) else "simpler to run"
    return f"The degrees asked for are kept; without them {named(best)} would be {word} ({figures(best)})."


def best_with(intent: Intent, stated: StatedStrategy, plan: Plan) -> BestWith:
    """The best that has the stated degrees, whatever the others are, on the hardware and under the load of `plan`."""
    architecture = architecture_of(plan.model)
    request = with_concurrency(search_request(intent, architecture, plan.hardware), plan.workload.concurrency)
    request = replace(request, precision=plan.precision, precisions=())
    relaxations = (*request.policy.relaxations, "attention_dp")
    grouped = replace(request, policy=request.policy.model_copy(update={"relaxations": relaxations}))
    best = _first_that_fits(request, stated)
    is_open = architecture.is_moe and "attention_dp" not in request.policy.relaxations
    in_groups = _first_that_fits(grouped, stated) if is_open else None
    objective = request.workload.objective
    is_better = in_groups is not None and (best is None or merit(in_groups, objective) < merit(best, objective))
    return BestWith(best, in_groups if is_better else None)


def _first_that_fits(request: SearchRequest, stated: StatedStrategy) -> Candidate | None:
    return next((candidate for candidate in _pinned(request, stated) if candidate.tpot_ms is not None), None)


def pinned(intent: Intent, stated: StatedStrategy) -> Intent:
    """The intent with every stated degree as a constraint."""
    return intent.model_copy(
        update={
            "constraints": (*intent.constraints, *pinning(stated)),
            "disaggregated": _placement(intent.disaggregated, stated),
        }
    )


def _placement(asked: bool | None, stated: StatedStrategy) -> bool | None:
    """Whether phases lie apart with `stated`: DP alone counts replicas that serve both."""
    return False if asked is None and stated.dp is not None else asked


def keeps(strategy: Strategy, stated: StatedStrategy) -> bool:
    """Whether `strategy` has every degree that was stated."""
    if stated.dp is not None and strategy.dp != stated.dp:
        return False
    if stated.gpus is not None and strategy.gpu_count != stated.gpus:
        return False
    for phase, wanted in ((strategy.prefill, stated.prefill), (strategy.decode, stated.decode)):
        for name, value in wanted.model_dump().items():
            # A phase without replicas of its own shares them: that is none, and no degree of 1.
            has = getattr(phase, name) if name == "replicas" else getattr(phase, name) or 1
            if value is not None and has != value:
                # SP belongs to prefill: asked for in general, decode stays without it.
                if name == "sp" and phase is strategy.decode:
                    continue
                return False
    return True


def _pinned(request: SearchRequest, stated: StatedStrategy) -> list[Candidate]:
    """The candidates of a search that is constrained to the stated degrees."""
    pins = (*(request.policy.constraints or ()), *pinning(stated))
    result = search(replace(request, policy=request.policy.model_copy(update={"constraints": pins})))
    return [candidate for candidate in result.candidates if keeps(candidate.strategy, stated)]


def _as_it_stands(intent: Intent, free: Proposal, stated: StatedStrategy) -> list[Candidate]:
    """The strategy itself if it is legal, also for the assumed engine if none is named."""
    request = _at_load(free)
    judged = request
    if request.named_engine is None and request.assumed_engine is not None:
        judged = replace(request, serving=ServingBlock(engine=request.assumed_engine))
    if not judge(stated, intent.model.block, judged).valid:
        return []
    return [_at_load_of(free, stated)]


def _at_load(free: Proposal) -> SearchRequest:
    """The request with as many requests in flight as were chosen."""
    workload = free.request.workload.model_copy(update={"concurrency": free.chosen.concurrency})
    return replace(free.request, workload=workload)


def _at_load_of(free: Proposal, stated: StatedStrategy) -> Candidate:
    """The strategy as it was stated, under the load of what was chosen."""
    request = _at_load(free)
    strategy = read_strategy(stated, request.architecture, request.hardware)
    return candidate_at(request, base_setting(request), strategy, free.chosen.concurrency)


def _none_has_them(request: SearchRequest) -> str:
    assumed = request.assumed_engine
    if assumed is None or request.named_engine is not None:
        return "no strategy on this hardware that is searched has them"
    return (
        f"no strategy on this hardware that {JUDGED[assumed].title} starts has them (no engine was named; name one, or "
        "ask for a plan on paper with --engine none)"
    )
