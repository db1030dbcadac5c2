"""Why this strategy and not another: the figures of candidates in words, and the runner-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...tools.engines.names import DEFAULT_ENGINE, ENGINES, engine_name
from ...tools.language.said import OpenPrecisions
from ...tools.performance.limits import NO_STEADY_FIGURE, stated_limits
from ...tools.performance.planned_run import RATE_RESERVE
from ...tools.plan.describe import describe, in_format, number, precision_name
from ...tools.search.batch import own_batch
from ...tools.search.candidate import Candidate, SearchRequest, SearchResult
from ...tools.search.ranking import merit, worth
from ...tools.search.strategy_rows import REPEAT_SHARE
from ..intent.formats import QUALITY, formats_on
from ..intent.intent import Assumption
from ..languages.say import say

if TYPE_CHECKING:
    from ..search_results import SearchAnswer

KINDS_NAMED = "kinds to choose from were named"
# The field of the assumption that kinds without a known price were not compared.
UNPRICED = "hardware.price"
# The qualifier of "the fewest GPUs" if the time was over before all were looked at.
LOOKED_AT = "of those looked at before the time limit"
# What others do and a candidate behind them (`Candidate.behind`) does not, and the words for what it lacks.
KEEPING_UP, HOLDING = f"keep up with {RATE_RESERVE:.0%} more requests", "whose engine's KV cache holds a request"
_BEHIND = {
    1: (KEEPING_UP, f"with {RATE_RESERVE:.0%} more requests its queue grows"),
    2: (HOLDING, "its engine's KV cache holds no request"),
}


class Proposal(Struct, frozen=True):
    """What was chosen: the request as it was searched, the candidate, and all other results."""

    request: SearchRequest
    chosen: Candidate
    result: SearchResult
    assumptions: tuple[Assumption, ...] = ()
    note: str | None = None
    hint: str | None = None
    on_fewer: str | None = None
    with_engine: str | None = None
    why_not_kept: str | None = None
    # The candidate that the request asked about, if it is not the chosen one.
    asked: Candidate | None = None

    @property
    def standing(self) -> str:
        """How the chosen candidate ranks among all others."""
        objective, best = self.request.workload.objective, self.result.best
        if best is None or merit(self.chosen, objective) <= merit(best, objective):
            return f"the best for {objective}"
        near = worth(self.chosen, objective) <= worth(best, objective) * (1 + REPEAT_SHARE)
        return f"as good as the best for {objective}" if near else f"the best for {objective} of what was asked for"


def lack_of(candidate: Candidate) -> str | None:
    """What the candidate lacks that puts it behind others; `None` if nothing."""
    return _BEHIND[candidate.behind][1] if candidate.behind else None


def done_by_more_than(candidate: Candidate) -> str | None:
    """What a larger plan does that replaces a candidate which lacks it."""
    return _BEHIND[candidate.behind][0] if candidate.behind else None


def figures(candidate: Candidate) -> str:
    """The figures of a candidate in one phrase."""
    if candidate.ttft_ms is None:
        return candidate.why_not[0] if candidate.why_not else "not evaluated"
    limited = "".join(f"{name} {number(value)} ms, " for name, value in candidate.limited_ms.items())
    ttft = f"TTFT {number(candidate.ttft_ms)} ms"
    if candidate.queue_grows:
        ttft, limited = f"TTFT {NO_STEADY_FIGURE}", ""
    return (
        f"{ttft}, TPOT {number(candidate.tpot_ms or 0)} ms, {limited}"
        f"{number(candidate.served_tokens_per_s or 0)} output tokens/s on {candidate.gpus} GPU(s)"
        + (f", but {lack}" if (lack := lack_of(candidate)) else "")
    )


def named(candidate: Candidate) -> str:
    """The strategy of a candidate in words, with its number formats where they were left open."""
    return describe(candidate.strategy) + in_format(candidate.precision)


def considered(result: SearchResult | SearchAnswer) -> str:
    """How many strategies are legal, fit and were simulated, and why the others were not."""
    dominated = result.pruned.get("dominated", 0)
    legal = result.evaluated + sum(result.pruned.values())
    fitting = legal - result.rejected.get("ME001", 0)
    text = f"Of {legal:,} legal strategies {fitting:,} fit into memory; {result.timed:,} were simulated"
    if dominated:
        text += f", {dominated:,} are no better than another on the same GPUs"
    others = fitting - result.timed - dominated
    if others <= 0:
        return text
    return (
        f"{text}. The other {others:,} were not: a quick estimate without queues, which shows no figure here, puts "
        "each behind those, over a limit, or among what is warned of"
    )


def on_more(proposal: Proposal) -> str | None:
    """Which simulated strategy holds more requests at once than the best, if that number is open."""
    request, best = proposal.request, proposal.chosen
    if not request.concurrency_open or request.fills_upwards or not stated_limits(request.workload):
        return None
    holding = [row for row in proposal.result.candidates if row.feasible]
    most = max(holding, key=lambda row: (row.concurrency, row.output_tokens_per_s or 0.0), default=best)
    if most.concurrency <= best.concurrency:
        return None
    return (
        "The most requests at once with which every limit holds, of the strategies that were simulated: "
        f"{most.concurrency:,} by {named(most)} with {figures(most)}; the plan, the best for "
        f"{request.workload.objective}, has {best.concurrency:,}"
    )


def on_fewer(request: SearchRequest, best: Candidate, fewer: Candidate | None) -> str | None:
    """What fewer of the named accelerators would do; `None` if nothing says what is enough."""
    owned = request.facts.gpus
    if fewer is not None and request.is_paid_by_token:
        return say(
            "All {billed} GPUs are billed; rented alone, {gpus} would serve a token at {share} of that: {plan} with "
            "{figures}",
            billed=best.billed_gpus or best.gpus,
            gpus=fewer.gpus,
            share=f"{worth(fewer, 'cost') / worth(best, 'cost'):.0%}",
            plan=named(fewer),
            figures=figures(fewer),
        )
    if not request.says_enough:
        return None
    if fewer is None:
        none = say("No smaller part of these {owned} GPUs, of a node or whole nodes, holds every limit", owned=owned)
        return none if best.gpus == owned > 1 else None
    if best.gpus <= fewer.gpus:
        return None
    return say(
        "Every limit holds on {gpus} of these {owned} GPUs too: {plan} with {figures}",
        gpus=fewer.gpus,
        owned=owned,
        plan=named(fewer),
        figures=figures(fewer),
    )


def batch_chosen(request: SearchRequest) -> tuple[Assumption, ...]:
    """That the engine's largest batch was set for the load; empty if it was stated, or is the engine's own."""
    if not request.batch_follows_load or request.serving is None:
        return ()
    engine = ENGINES[engine_name(request.serving.engine) or request.assumed_engine or DEFAULT_ENGINE]
    most, usual = request.serving.max_batch or 0, own_batch(request)
    why = (
        f"what it sets up for its own {usual:,} takes memory from a KV cache that this load needs"
        if most < usual
        else f"by itself it runs {usual:,}, and the others would wait"
    )
    flag = engine.vocabulary.flag("max_sequences")
    reason = f"{engine.title} is told to run {most:,} requests at once ({flag}), as the load has them: {why}"
    return (Assumption(field="serving.max_batch", value=most, reason=reason),)


def formats_chosen(
    asked: OpenPrecisions | None, request: SearchRequest, result: SearchResult
) -> tuple[Assumption, ...]:
    """Which number formats were chosen (those of `request`), and why; empty if none were left open."""
    if asked is None:
        return ()
    accelerator, native = request.facts.accelerator, request.architecture.native_precision
    others = [precision for precision in formats_on(asked, native, accelerator) if precision != request.precision]
    runners_up: list[str] = []
    for precision in others:
        best = next((candidate for candidate in result.candidates if candidate.precision == precision), None)
        if best is not None:
            runners_up.append(f"the best in {precision_name(precision)}: {'; '.join(best.why_not) or figures(best)}")
    if not others:
        why = f"no other may be chosen on {accelerator.id}"
    elif runners_up:
        why = f"chosen with the strategy, for {request.workload.objective}; {'; '.join(runners_up)}"
    else:
        names = ", ".join(precision_name(precision) for precision in others)
        why = f"chosen with the hardware: {names} would do no better, or not on as little of it"
    reason = f"the number format was left open: {why}; {QUALITY}"
    return (Assumption(field="precision", value=precision_name(request.precision), reason=reason),)
