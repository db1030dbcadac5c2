"""What would change the choice: other lengths, loads, limits and objectives, and how far the runner-ups are behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

from ....tools.checkpoint import leaves_out
from ....tools.errors import InputError
from ....tools.plan.describe import describe
from ....tools.plan.document import Objective
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
    found = search_intent(intent, sensitivity=True)
    changes = found.sensitivity
    best = None if found.best is None else found.best.strategy
    own = "" if best == plan.strategy else (
        f"The current plan is {describe(plan.strategy)}; of the search's own, "
        f"{'none holds all' if best is None else describe(best)} is the best."
    )  # fmt: skip
    flipped = tuple(flip_text(one) for one in changes.flips) if changes is not None else ()
    nothing = () if flipped else ("nothing that was tried",)
    same = changes.unchanged if changes is not None else ()
    runners = tuple(_runners(work))
    objectives = tuple(_objectives(work, found))
    price = (
        "the price of a GPU hour multiplies the cost of every layout on this hardware alike: it flips none; "
        "other hardware has a price of its own (/whatif H200)"
    )
    text = render(
        [
            section("", own),
            section(
                "What flips the choice (searched again under each change, simulated runs)", Bullets(flipped or nothing)
            ),
            section("", f"It stays with: {'; '.join(same)}." if same else "", f"Price: {price}."),
            section("Planned for another objective (search)", Bullets(objectives)),
            section("Runners-up, and how far they are behind (search)", Bullets(runners)),
            section("Not looked at, for the time was over", Bullets(found.left_out)),
        ],
        width=work.width,
    )
    told = {"flips": flipped, "stays": same, "objectives": objectives, "runners_up": runners, "price": price}
    return Outcome("why", text, told=told)


def _runners(work: Work) -> Iterator[str]:
    report = work.now.result.report
    for one in () if report is None else report.alternatives[:ALTERNATIVES_SHOWN]:
        yield f"{one.summary}: {one.reason}"


def _objectives(work: Work, found: SearchAnswer) -> Iterator[str]:
    """The best for each objective that was not asked for."""
    load = work.now.intent.workload
    for objective in get_args(Objective):
        if objective == load.objective or leaves_out("what another objective would choose"):
            continue
        other = work.now.intent.model_copy(update={"workload": load.model_copy(update={"objective": objective})})
        try:
            best = search_intent(other, top=1).best
        except InputError as error:
            yield f"{objective}: not searched ({error})"
            continue
        if best is None or found.best is None:
            yield f"{objective}: nothing holds the limits"
        elif best.strategy == found.best.strategy:
            yield f"{objective}: the same"
        else:
            per_gpu = "" if best.output_tokens_per_s is None else f", {best.output_tokens_per_s:,.0f} tokens/s"
            yield f"{objective}: {best.summary} on {best.strategy.gpu_count} GPUs{per_gpu}"
