"""Why this plan, and why not another: the proposer's reasons, the family that lost, the rule that forbids a degree."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....tools.compare import compare
from ....tools.comparison.result import Comparison
from ....tools.errors import InputError
from ....tools.language.said import StatedStrategy
from ....tools.performance.estimate import estimate
from ....tools.plan.describe import describe, number
from ....tools.plan.document import Plan
from ....tools.plan.performance import PerformanceEstimate
from ....tools.plan.placement import gpu_count, is_disaggregated
from ...intent.intent import Intent
from ...languages.say import say
from ...planning.families import family_lost
from ...planning.keeping import best_with, keeps
from ...planning.plan_of_words import plan_of_stated, plan_of_strategy, plan_of_words, strategy_of_words
from ...report.plan import ALTERNATIVES_SHOWN
from ...report.text import Bullets, render, section
from ...report.validation import violation_blocks
from ...search_api import search_intent
from ...search_results import FamilyLost, SearchAnswer
from ..outcome import Outcome
from ..words import comparison_sections, plan_lines, stated_text
from .compare import told_of as told_of_comparison
from .flips import FLIPS, flips
from .instead import completed, gpus_of, has_experts, in_short, no_experts, too_large, verdict, wants_experts
from .risk import is_about_risk, risk
from .work import Work

_SEPARATE = "separate prefill and decode"
# Kinds of parallelism as families of strategies call them, and as people do.
_FAMILIES = {
    "attention DP": r"attention[\s_\-]dp|dp[\s_\-]attention|注意力(?:的)?数据并行",
    "KV-SP": r"kv[\s\-]sp|context[\s\-]parallel(?:ism)?|kv[\s_]sequence|上下文并行",
    "TP in experts": r"tp[\s_]in[\s_]experts?|expert[\s\-]tp",
    _SEPARATE: r"disaggregat\w{0,6}|separat\w{0,5}(?:\sprefill)?|p/?d\s?分离|分离|分开",
    "PP": r"pp|pipelin\w{0,5}(?:[\s\-]parallel(?:ism)?)?|流水线?(?:并行)?",
    "TP": r"tp|tensor[\s\-]parallel(?:ism)?|张量(?:并行)?",
    "EP": r"ep|expert[\s\-]parallel(?:ism)?|专家并行",
    "SP": r"sp|sequence[\s\-]parallel(?:ism)?|序列并行",
    "DP": r"dp|data[\s\-]parallel(?:ism)?|replicas?|数据并行|副本",
}
_FAMILY = {name: re.compile(rf"(?<![A-Za-z\-])(?:{words})(?![A-Za-z0-9])", re.I) for name, words in _FAMILIES.items()}


def why(work: Work) -> Outcome:
    """Why the current plan is the one.

    Raises:
        InputError: nothing was asked for yet.
    """
    now = work.now
    report = now.result.report
    sections = [section("", *plan_lines(now.result))]
    if report is not None:
        runners = tuple(f"{row.summary}: {row.reason}" for row in report.alternatives[:ALTERNATIVES_SHOWN])
        sections += [
            section(say("Why this one"), report.explanation),
            section(say("Runners-up, and what they lost by"), Bullets(runners)),
            section(say("It rests on"), Bullets(report.citations)),
        ]
    return Outcome(
        "why",
        render(sections, width=work.width),
        told={"explanation": "" if report is None else report.explanation},
    )


def why_not_words(work: Work, text: str) -> Outcome | None:
    """Why the current plan lacks what `text` names: degrees ("TP16"), or a kind ("PP"); `None` where it names none.

    What would change the choice, and what is risky in it, are asked for in words of their own.

    Raises:
        InputError: nothing was asked for yet.
    """
    if FLIPS.search(text):
        return flips(work)
    if is_about_risk(text):
        return risk(work)
    stated = _strategy(text)
    if stated is not None:
        return why_not(work, stated, text)
    family = next((name for name, pattern in _FAMILY.items() if pattern.search(text)), None)
    return None if family is None else _why_no_family(work, family)


def _strategy(text: str) -> StatedStrategy | None:
    try:
        return strategy_of_words(text)
    except InputError:
        return None


def why_not(work: Work, stated: StatedStrategy, text: str) -> Outcome:
    """The verdict of the rules and the estimate on a strategy in place of the current plan's.

    Raises:
        InputError: there is no plan, or the strategy is larger than anything that can be laid out.
    """
    plan = work.plan
    if wants_experts(stated) and not has_experts(plan):
        return no_experts(plan, text)
    if keeps(plan.strategy, stated):
        has = say("The current plan has it: {layout}.", layout=describe(plan.strategy))
        return Outcome("why", f"{has}\n\n{why(work).text}")
    try:
        other = plan_of_stated(stated, plan)
    except InputError as error:
        refused = say("No document can be built of it: {error}", error=error)
        return Outcome("why", f"{refused}\n", told={"asked": text, "refused": str(error)})
    sides = _beside_current(work, other)
    if gpu_count(other.strategy) > gpus_of(other):
        return too_large(other, sides, text, work.width)
    lead: list[str] = []
    if sides.b.violations:
        # Degrees that were left open are not to blame: the best that has those that were named is judged.
        completions = best_with(work.now.intent, stated, plan)
        lead = list(completed(completions, stated_text(stated), other))
        better = completions.best or completions.in_groups
        if better is not None:
            other = plan_of_strategy(better.strategy, plan)
            sides = _beside_current(work, other)
    needed = [name for name in other.policy.relaxations if name not in plan.policy.relaxations]
    sections = [
        section("", *lead, in_short(sides, needed)),
        section(say("Rules that it breaks or is warned by"), *violation_blocks(sides.b.violations)),
        section(say("Compared"), Bullets(verdict(sides))),
        *comparison_sections(sides, (say("current"), say("instead"))),
    ]
    return Outcome(
        "why", render(sections, width=work.width), comparison=sides, told={"asked": text, **told_of_comparison(sides)}
    )


def _beside_current(work: Work, other: Plan) -> Comparison:
    intent = work.now.intent
    return compare(
        work.plan,
        other,
        titles=(say("current"), say("instead")),
        calibration=intent.calibration,
        usd_per_gpu_hour=(intent.usd_per_gpu_hour, intent.usd_per_gpu_hour),
    )


def _why_no_family(work: Work, family: str) -> Outcome:
    """Why no strategy of a family was chosen: its best, and the number or the rule that decided."""
    plan = work.plan
    if family in ("EP", "TP in experts") and not has_experts(plan):
        return no_experts(plan, family)
    shown = describe(plan.strategy)
    is_shown = re.search(rf"(?<![A-Za-z-]){family}\d", shown) is not None
    if is_disaggregated(plan.strategy) if family == _SEPARATE else family != "DP" and is_shown:
        has = say("The current plan has {family}: {layout}.", family=say(family), layout=shown)
        return Outcome("why", f"{has}\n\n{why(work).text}")
    answer = search_intent(work.now.intent)
    ruled_out = [exclusion for exclusion in answer.excluded if _is_of(exclusion.family, family)]
    lines = [f"{exclusion.family}: {exclusion.reason}{_by(exclusion.rule)}" for exclusion in ruled_out]
    lost = [row for row in answer.families if family in row.family.split(" × ")]
    if family == _SEPARATE:
        lost = list(_best_apart(answer, plan))
    lines += [f"{row.summary}: {row.reason}{_by(row.rule)}" for row in lost]
    if not lines:
        none = "no strategy with {family} is among the {count} that were evaluated"
        lines = [say(none, family=say(family), count=answer.evaluated)]
    lead = (
        say("The best with {family}, and what they lost by:", family=say(family))
        if lost
        else say("None with {family} was considered:", family=say(family))
    )
    without = "The current plan is {layout}, without {family}."
    now = say("The current plan is {layout}." if family == "DP" else without, layout=shown, family=say(family))
    beside = _beside(plan, lost[0].summary, work.now.intent) if lost else None
    sections = [
        section("", now, lead, Bullets(tuple(lines))),
        section(say("The first of them beside the current plan (estimates of both)"), Bullets(tuple(beside or ()))),
    ]
    told = {"asked": family, "reasons": lines, "beside": beside}
    return Outcome("why", render(sections, width=work.width), told=told)


def _best_apart(answer: SearchAnswer, plan: Plan) -> Iterator[FamilyLost]:
    """The best strategy with phases apart, and what decided for `plan`, whose phases are together."""
    chosen = next((candidate for candidate in answer.candidates if candidate.strategy == plan.strategy), None)
    for apart in answer.candidates:
        if is_disaggregated(apart.strategy):
            yield family_lost(_SEPARATE, apart, chosen, plan.workload.objective)
            return


def _beside(plan: Plan, words: str, intent: Intent) -> tuple[str, ...]:
    """The estimates of a strategy and of `plan` compared: the verdict, and where the time of each phase goes."""
    try:
        other = plan_of_words(words, plan)
    except InputError:
        return ()
    sides = compare(plan, other, titles=("current", "instead"), calibration=intent.calibration)
    parts = [f"{describe(side.strategy)}: {_times(estimate(side, None, intent.calibration))}" for side in (plan, other)]
    return (*verdict(sides), *parts)


def _times(estimated: PerformanceEstimate) -> str:
    named = (("prefill pass", estimated.latency.prefill), ("decode step", estimated.latency.decode_step))
    return "; ".join(
        say(
            "{phase} {compute} ms compute, {memory} memory, {communication} communication, {bubble} bubble",
            phase=say(phase),
            compute=number(parts.compute_ms),
            memory=number(parts.memory_ms),
            communication=number(parts.communication_ms),
            bubble=number(parts.bubble_ms),
        )
        for phase, parts in named
    )


def _is_of(excluded: str, family: str) -> bool:
    return excluded == family or excluded.startswith(f"{family} ")


def _by(rule: str | None) -> str:
    return f" ({rule})" if rule is not None else ""
