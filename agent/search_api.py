"""`search`: all legal strategies of a model on hardware under a load, ranked, with the reasons against the others.

The defaults and assumptions are those of `plan`. The search itself is in `tools/search`; here it is asked and timed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Unpack

from ..tools.calibration.custom import CustomCalibration
from ..tools.checkpoint import left_out
from ..tools.errors import InputError, expect
from ..tools.input.arguments import checks_arguments
from ..tools.plan.document import HardwareBlock
from ..tools.search.candidate import SearchRequest, SearchResult
from ..tools.search.ranges import with_ranges
from ..tools.search.sensitivity import sensitivity as find_flips
from .intent.formats import formats_on
from .intent.intent import Assumption, Intent
from .planning.examined import Examined, Refused
from .planning.families import excluded, families_lost
from .planning.keeping import keeps
from .planning.proposer import examine
from .planning.reach import ranked, within_reach
from .planning.reasons import batch_chosen, formats_chosen, named
from .runs.time_limit import TIME_LIMIT_S, within
from .search_results import AskedFor, SearchAnswer, StatedRank
from .stated.arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from .stated.request import stated_intent


@checks_arguments
def search(
    request: str | None = None,
    *,
    model: ModelArgument | None = None,
    hardware: HardwareArgument | None = None,
    workload: WorkloadArgument | None = None,
    brief: str | Path | Iterable[str | Path] = (),
    calibration: CustomCalibration | str | Path | None = None,
    top: int | None = None,
    sensitivity: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
    **stated: Unpack[Arguments],
) -> SearchAnswer:
    """Rank every legal strategy for what is asked, as `plan` is asked.

    Args:
        request: What to plan, in English or Chinese; arguments win over it.
        model: A catalogue name, an id on the Hugging Face Hub, the path of a config.json, or a config as a mapping.
        hardware: `2x8:h100-sxm` (nodes × GPUs), words (`16xH100`), the name of an accelerator (then the
            fewest that do), or a block.
        workload: A block, or some of its fields, which may be stated one by one as well (`input_tokens=4096`).
        brief: The path of a deployment brief, or several.
        calibration: Times of your own, or the path of their file.
        top: Keep so many candidates, and the Pareto front; all that are listed where it is `None`.
        sensitivity: Search again for what flips the answer, which takes several times as long.
        time_limit_s: Seconds after which the best so far is the answer; `left_out` says what was not looked at.
        **stated: As `plan`.

    Returns:
        Candidates, the best first, the Pareto front as places among them, and why the other families lost.

    Raises:
        InputError: As `plan`.

    Example:
        >>> import shardwright
        >>> answer = shardwright.search(model="llama-3.2-1b", hardware="1x2:l4", input_tokens=512, output_tokens=32)
        >>> answer.best.summary
        'TP2'
    """
    said = said_of_arguments(model, hardware, workload, stated)
    intent = stated_intent(request, said, brief=brief, calibration=calibration, stated=stated)
    with within(time_limit_s):
        return search_intent(intent, top=top, sensitivity=sensitivity)


def search_intent(intent: Intent, *, top: int | None = None, sensitivity: bool = False) -> SearchAnswer:
    """Rank every legal strategy for a complete intent; `top` keeps the first so many candidates and the front.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    expect(top, (int, NoneType), "top", "a whole number is expected")
    if top is not None and top < 1:
        raise InputError(f"top is {top}; at least one candidate is kept")
    started = time.perf_counter()
    outcome = examine(intent)
    seconds = time.perf_counter() - started
    answer = _answer(intent, outcome, seconds)
    if outcome.request is None or outcome.result is None:
        return answer
    if sensitivity:
        answer = answer.model_copy(update={"sensitivity": find_flips(outcome.request, outcome.result)})
    answer = answer if top is None else leading(answer, top)
    ranged = tuple(with_ranges(outcome.request, answer.candidates))
    return answer.model_copy(update={"candidates": ranged, "left_out": left_out()})


_NOTHING_SEARCHED = SearchResult(candidates=(), evaluated=0, rejected={})


def _answer(intent: Intent, outcome: Examined | Refused, seconds: float) -> SearchAnswer:
    """The answer to a search alone, without advice; where there is no hardware to search on, why."""
    request, result = outcome.request, outcome.result or _NOTHING_SEARCHED
    return SearchAnswer(
        feasible=isinstance(outcome, Examined),
        request=_asked_for(intent, request, result),
        candidates=tuple(ranked(candidate) for candidate in result.candidates),
        pareto=result.pareto,
        listed=len(result.candidates),
        evaluated=result.evaluated,
        timed=result.timed,
        simulated=result.simulated,
        behind=result.behind,
        refused=result.refused,
        rejected=result.rejected,
        pruned=result.pruned,
        seconds=seconds,
        families=() if request is None else tuple(families_lost(request, result)),
        excluded=() if request is None else tuple(excluded(request)),
        stated=None if request is None else _stated_rank(intent, result),
        infeasible=outcome.infeasible if isinstance(outcome, Refused) else None,
        on_fewer=outcome.on_fewer if isinstance(outcome, Examined) else None,
        within_reach=tuple(within_reach(request)) if request is not None and _misses_limits(outcome) else (),
        assumptions=_assumptions(intent, outcome),
        readings=intent.readings,
        not_acted_on=intent.unread,
        trace=intent.trace,
        left_out=left_out(),
        words=intent.words,
    )


def _misses_limits(outcome: Examined | Refused) -> bool:
    return isinstance(outcome, Refused) and outcome.infeasible.rule == "PE010"


def _asked_for(intent: Intent, request: SearchRequest | None, result: SearchResult) -> AskedFor:
    hardware: HardwareBlock | None = None if request is None else request.hardware
    searched = [candidate.precision for candidate in result.candidates]
    precisions = ()
    if request is not None and intent.precisions is not None:
        accelerator, native = request.facts.accelerator, request.architecture.native_precision
        precisions = tuple(block for block in formats_on(intent.precisions, native, accelerator) if block in searched)
    return AskedFor(
        model=intent.model.name,
        hardware=hardware,
        workload=intent.workload,
        concurrency_open=intent.concurrency_open,
        precision=intent.precision if request is None else request.precision,
        precisions=precisions or None,
        policy=intent.policy,
        serving=intent.serving,
        disaggregated=intent.disaggregated,
    )


def _assumptions(intent: Intent, outcome: Examined | Refused) -> tuple[Assumption, ...]:
    decided = outcome.assumptions if isinstance(outcome, Examined) else ()
    if isinstance(outcome, Examined):
        decided = (
            *decided,
            *formats_chosen(intent.precisions, outcome.request, outcome.result),
            *batch_chosen(outcome.request),
        )
    fields = {assumption.field for assumption in decided}
    return (*(entry for entry in intent.assumptions if entry.field not in fields), *decided)


def _stated_rank(intent: Intent, result: SearchResult) -> StatedRank | None:
    """The place of the first candidate that has the stated degrees."""
    stated = intent.strategy
    if stated is None:
        return None
    for place, candidate in enumerate(result.candidates):
        if keeps(candidate.strategy, stated):
            return StatedRank(place=place, summary=named(candidate))
    return StatedRank(summary="no legal strategy that is listed has them")


def leading(answer: SearchAnswer, top: int) -> SearchAnswer:
    """Only the first `top` candidates and those of the front; places count these alone."""
    remaining = [place for place in range(len(answer.candidates)) if place < top or place in answer.pareto]
    places = {old: new for new, old in enumerate(remaining)}
    stated = answer.stated
    if stated is not None and stated.place is not None:
        stated = stated.model_copy(update={"place": places.get(stated.place)})
    return answer.model_copy(
        update={
            "candidates": tuple(answer.candidates[place] for place in remaining),
            "pareto": tuple(places[place] for place in answer.pareto),
            "stated": stated,
        }
    )
