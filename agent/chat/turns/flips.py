"""What would change the choice: other lengths, loads, limits and objectives, and how far the runner-ups are behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from ....tools.checkpoint import leaves_out
from ....tools.errors import InputError
from ....tools.plan.describe import describe
from ....tools.plan.document import Objective
from ...languages.say import say
from ...report.plan import ALTERNATIVES_SHOWN
from ...report.search import flip_text
from ...report.text import Bullets, render, section
from ...search_api import search_intent
from ...search_results import SearchAnswer
from ..outcome import Outcome
from .work import Work

FLIPS = re.compile(
    r"(?<![a-z])(?:(?:what|which|when|anything)\s[^.!?]{0,60}(?<![a-z])(?:change\s(?:your|its|the|this)\s(?:mind|choice|"
    r"decision|answer|pick|plan)|flips?)|how\s(?:sensitive|robust|stable|far\sbehind)|tipping\spoints?|"
    r"break[\s-]?even)(?![a-z])"
    r"|改变(?:你的|这个|它的)?(?:主意|选择|决定|结论|方案)|(?:什么|哪些)(?:情况|条件)下?.{0,8}(?:改变|换|不选|翻转)|敏感|临界点",
    re.IGNORECASE,
)


def flips(work: Work) -> Outcome:
    """Which change of load, limit, objective or price makes another strategy the best.

    Raises:
        InputError: there is no plan.
    """
    plan, intent = work.plan, work.now.intent
    answer = search_intent(intent, sensitivity=True)
    changes = answer.sensitivity
    best = None if answer.best is None else answer.best.strategy
    note = "" if best == plan.strategy else say(
        "The current plan is {layout}; of the search's own, {best} is the best.",
        layout=describe(plan.strategy), best=say("none that holds all") if best is None else describe(best),
    )  # fmt: skip
    flipped = tuple(flip_text(flip) for flip in changes.flips) if changes is not None else ()
    nothing = () if flipped else (say("nothing that was tried"),)
    same = changes.unchanged if changes is not None else ()
    runners = tuple(_runners(work))
    objectives = tuple(_objectives(work, answer))
    price = say(
        "the price of a GPU hour multiplies the cost of every layout on this hardware alike: it flips none; "
        "other hardware has a price of its own (/whatif H200)"
    )
    text = render(
        [
            section("", note),
            section(
                say("What flips the choice (searched again under each change, simulated runs)"),
                Bullets(flipped or nothing),
            ),
            section(
                "",
                say("It stays with: {changes}.", changes="; ".join(same)) if same else "",
                say("Price: {price}.", price=price),
            ),
            section(say("Planned for another objective (search)"), Bullets(objectives)),
            section(say("Runners-up, and how far they are behind (search)"), Bullets(runners)),
            section(say("Not looked at, for the time was over"), Bullets(answer.left_out)),
        ],
        width=work.width,
    )
    told = {"flips": flipped, "stays": same, "objectives": objectives, "runners_up": runners, "price": price}
    return Outcome("why", text, told=told)


def _runners(work: Work) -> Iterator[str]:
    report = work.now.result.report
    for alternative in () if report is None else report.alternatives[:ALTERNATIVES_SHOWN]:
        yield f"{alternative.summary}: {alternative.reason}"


def _objectives(work: Work, answer: SearchAnswer) -> Iterator[str]:
    """The best for each objective that was not asked for."""
    load = work.now.intent.workload
    for objective in get_args(Objective):
        if objective == load.objective or leaves_out("what another objective would choose"):
            continue
        other = work.now.intent.model_copy(update={"workload": load.model_copy(update={"objective": objective})})
        try:
            best = search_intent(other, top=1).best
        except InputError as error:
            yield say("{objective}: not searched ({error})", objective=say(objective), error=error)
            continue
        if best is None or answer.best is None:
            yield say("{objective}: nothing holds the limits", objective=say(objective))
        elif best.strategy == answer.best.strategy:
            yield say("{objective}: the same", objective=say(objective))
        else:
            per_gpu = "" if best.output_tokens_per_s is None else f", {best.output_tokens_per_s:,.0f} tokens/s"
            yield say(
                "{objective}: {layout} on {gpus} GPUs{rate}",
                objective=say(objective),
                layout=best.summary,
                gpus=best.strategy.gpu_count,
                rate=per_gpu,
            )
