"""What is risky in the current plan: limits against the ranges of the estimate, memory that is left, a replica lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....tools.errors import InputError
from ....tools.performance.estimate import estimate
from ....tools.performance.limits import figures_of_estimate, stated_limits
from ....tools.plan.describe import describe, number
from ....tools.plan.document import PHASES, Plan, Strategy
from ....tools.plan.performance import PerformanceEstimate
from ...languages.say import say
from ...limit_words import sureness
from ...planning.plan_of_words import plan_of_words
from ...report.text import Bullets, render, section
from ..outcome import Outcome
from ..words import title_of
from .work import Work

_RISK = re.compile(
    r"(?<![a-z])(?:risk(?:s|y|ier)?|what\s(?:could|can|might)\sgo\swrong|fragile|(?:safety\s)?margins?|headroom|how\ssafe|"
    r"safe\senough|is\s(?:it|this|that|the\splan)\ssafe(?!\sto)|how\sclose\s[^.?!]{0,30}limits?|which\slimit)(?![a-z])"
    r"|风险|稳妥|稳不稳|靠谱|保险吗|安全吗|余量",
    re.IGNORECASE,
)
_LOSS = re.compile(
    r"(?<![a-z])(?:los(?:e|es|ing|t)|without)\s(?:an?|one|the)\sreplica|replicas?\s(?:fails?|dies?|crash(?:es)?|goes\sdown|is\slost)"
    r"|(?:副本|实例)\s?(?:挂|坏|失效|故障|宕)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^\W*(?:(?:and|but|so|ok|then|well)\W{1,2})?(?:what|how|which|any|where|is|are|tell|show)(?![a-z])"
    r"|[?？]\s*$|^.{0,6}有|哪|分析|评估|吗|如何|怎么样",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"(?<![a-z])if(?![a-z])|如果|要是|假如", re.IGNORECASE)
# A server of one phase, of several and alone.
_SERVERS = {
    "prefill": ("one prefill server", "the prefill server"),
    "decode": ("one decode server", "the decode server"),
}
# Below this share of its usable memory a GPU has little left for what nobody counted.
_TIGHT = 0.05


def is_about_risk(text: str) -> bool:
    """Whether words are about what may go wrong."""
    return (_RISK.search(text) or _LOSS.search(text)) is not None


def asks_for_risk(text: str) -> bool:
    """Whether words ask what may go wrong with the plan as it is, not with a change of it."""
    if _LOSS.search(text) is not None:
        return True
    return _RISK.search(text) is not None and _ASKS.search(text) is not None and _SUPPOSED.search(text) is None


def risk(work: Work) -> Outcome:
    """What may go wrong with the current plan, each figure with its source.

    Raises:
        InputError: there is no plan.
    """
    plan, now = work.plan, work.now
    estimated = work.figures()
    limits = tuple(_limits(plan, estimated)) or (say("no limit is stated, so none can be missed"),)
    memory, loss = tuple(_memory(plan, estimated)), tuple(_losses(work, plan))
    text = render(
        [
            section("", say("What is risky in {title}", title=title_of(now.result))),
            section(
                say("Limits, and how sure the estimate is (ranges: 90% of measurements like these)"), Bullets(limits)
            ),
            section(say("Memory that is left (estimate, rule ME001)"), Bullets(memory)),
            section(say("If one replica fails (estimate of what is left, under the whole load)"), Bullets(loss)),
        ],
        width=work.width,
    )
    return Outcome("why", text, told={"limits": limits, "memory": memory, "loss_of_a_replica": loss})


def _limits(plan: Plan, estimated: PerformanceEstimate) -> Iterator[str]:
    figures = figures_of_estimate(estimated)
    for limit in stated_limits(plan.workload):
        figure = figures.of(limit)
        if limit.field == "request_rate":
            grows = say("request rate: the queue grows")
            yield grows if estimated.load.saturated else say("request rate: the queue does not grow")
            continue
        end = say("at most") if limit.unit == "ms" else say("at least")
        yield say(
            "{limit} ({statistic}) {figure} {unit} of {end} {bound} {unit}: {sureness}",
            limit=limit.name,
            statistic=limit.statistic,
            figure=number(figure),
            unit=limit.unit,
            end=end,
            bound=number(limit.bound),
            sureness=sureness(limit, figures, estimated),
        )


def _memory(plan: Plan, estimated: PerformanceEstimate) -> Iterator[str]:
    fullest = max(estimated.memory.per_device, key=lambda device: device.total_bytes / max(device.usable_bytes, 1))
    free = fullest.usable_bytes - fullest.total_bytes
    share = free / max(fullest.usable_bytes, 1)
    tight = say(": little for what no estimate counts") if share < _TIGHT else ""
    yield say(
        "the fullest GPU uses {used:.1f} of {usable:.1f} GB, {free:.1f} GB ({share:.0%}) stay free{tight}",
        used=fullest.total_bytes / 1e9,
        usable=fullest.usable_bytes / 1e9,
        free=free / 1e9,
        share=share,
        tight=tight,
    )
    most, load = estimated.memory.max_concurrency, plan.workload.concurrency
    yield say(
        "the cache holds {most:,} requests at once, the load has {load:,} ({times:.1f} times)",
        most=most,
        load=load,
        times=most / max(load, 1),
    )


def _losses(work: Work, plan: Plan) -> Iterator[str]:
    """The figures of the plan when a replica of it, or one of each phase, is lost."""
    for gone, remaining in _with_one_less(plan.strategy):
        if remaining is None:
            yield say("{gone} is the only one: while it is down nothing is served", gone=say(gone))
            continue
        try:
            other = plan_of_words(describe(remaining), plan)
            estimated = estimate(other, None, work.now.intent.calibration)
        except InputError as error:
            yield say("without {gone}: not timed ({error})", gone=say(gone), error=error)
            continue
        figures = figures_of_estimate(estimated)
        missed = [limit.name for limit in stated_limits(plan.workload) if figures.excess(limit) > 0]
        state = say("misses {limits}", limits=", ".join(missed)) if missed else say("holds every limit that is stated")
        full = estimated.memory.max_concurrency < plan.workload.concurrency
        room = say(", and its cache does not hold the load") if full else ""
        yield say(
            "without {gone}, {layout}: {figures}; {held}{room}",
            gone=say(gone),
            layout=describe(remaining),
            figures=estimated.one_line(),
            held=state,
            room=room,
        )


def _with_one_less(strategy: Strategy) -> Iterator[tuple[str, Strategy | None]]:
    """Each kind of replica, and the strategy without one of it; `None` where there is but one."""
    apart = [phase for phase in PHASES if getattr(strategy, phase).replicas is not None]
    if not apart:
        remaining = strategy.model_copy(update={"dp": strategy.dp - 1}) if strategy.dp > 1 else None
        yield "one replica" if remaining else "the replica", remaining
        return
    for phase in apart:
        degrees = getattr(strategy, phase)
        fewer = degrees.model_copy(update={"replicas": degrees.replicas - 1})
        remaining = strategy.model_copy(update={phase: fewer}) if degrees.replicas > 1 else None
        yield _SERVERS[phase][0 if remaining else 1], remaining
