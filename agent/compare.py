"""Two deployments side by side: two plans, or a plan and what runs today, said in words.

Words ("TP8", "DP2 of PP2 × TP4", "2 prefill of TP4 + 1 decode of TP8") are placed under the plan's own model, hardware
and load, and judged as they stand. A word that is no part of a strategy is refused, not passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..tools.calibration.custom import CustomCalibration, own_calibration
from ..tools.catalog.config import read_architecture
from ..tools.compare import compare as compare_plans
from ..tools.comparison.result import Comparison
from ..tools.comparison.side import Document
from ..tools.errors import InputError
from ..tools.files import shown_path
from ..tools.language.claims import Claims
from ..tools.language.page import TAKEN, Page
from ..tools.language.quantities import normalise
from ..tools.language.said import StatedStrategy
from ..tools.language.strategy_words import read_strategy as read_strategy_words
from ..tools.plan.builder import BuildRequest
from ..tools.plan.document import PHASES, Plan
from ..tools.plan.reader import is_json_text, read_document
from .stated_strategy import build_stated, read_strategy

MAX_WORDS = 500
# A name that ends like this is a file's, whether there is one or not.
_FILES = (".json", ".yaml", ".yml", ".txt", ".md")
# What may stand between degrees.
_GLUE = re.compile(
    r"[\s,;:.*×/&+\-|()=]{1,9}|(?<![a-z])(?:x|of|and|with|then|on|for|in|each|the|prefill|decode|phase|replicas?|"
    r"strategy|layout|instances?|workers?|nodes?)(?![a-z])",
    re.IGNORECASE,
)
# One device has no degree to name.
_ONE_DEVICE = re.compile(r"(?<![a-z0-9])(?:one|1|a single|single)\s{1,3}(?:device|gpu)(?![a-z])", re.IGNORECASE)
_REPLICAS = re.compile(r"(?<![A-Za-z0-9.])(?P<count>\d{1,6})\s{0,3}x?\s{0,3}(?P<phase>prefill|decode)(?![a-z])", re.I)


@dataclass(frozen=True, slots=True)
class Words:
    """A parallel strategy in words, told apart from the path of a file."""

    text: str


def compare(
    a: Document,
    b: Document | Words,
    *,
    titles: tuple[str, str] | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    usd_per_gpu_hour: float | None = None,
) -> Comparison:
    """Set plan `a` beside plan `b`, or beside a strategy in words under the model, hardware and load of `a`.

    A plan is a `Plan`, an object, a JSON text or the path of a file. A text for `b` that is neither JSON nor the path
    of a file is read as words; `Words` says so. `calibration` is a user's own, or the path of its file.

    Raises:
        InputError: one of them cannot be read as a plan document, or the words name no strategy.
    """
    own = own_calibration(calibration)
    words = b if isinstance(b, Words) else Words(b) if isinstance(b, str) and is_words(b) else None
    shown = titles or (_title(a, "A"), words.text if words is not None else _title(b, "B"))
    if words is not None:
        read = read_document(a)
        if read.plan is None:
            raise InputError(f"{shown[0]}: not a plan document: {read.faults[0].message}")
        a, b = read.plan, plan_of_words(words.text, read.plan)
    assert not isinstance(b, Words)
    return compare_plans(a, b, titles=shown, calibration=own, usd_per_gpu_hour=usd_per_gpu_hour)


def _title(source: Document | Words, otherwise: str) -> str:
    if isinstance(source, Path) or (isinstance(source, str) and not is_json_text(source)):
        return shown_path(Path(source))
    return otherwise


def is_words(text: str) -> bool:
    """Whether `text` is a strategy in words: neither JSON nor the path of a file."""
    if is_json_text(text) or text.lower().endswith(_FILES):
        return False
    try:
        return not Path(text).is_file()
    except (OSError, ValueError):  # too long a name, or one that no path may have
        return True


def plan_of_words(text: str, plan: Plan) -> Plan:
    """The strategy that `text` states, laid out under the model, hardware and load of `plan`.

    Degrees that are left out are what a serving engine would take. A relaxation that the words name by its degree is
    in force.

    Raises:
        InputError: the words name no strategy, or one that no document can hold.
    """
    return plan_of_stated(strategy_of_words(text), plan)


def plan_of_stated(stated: StatedStrategy, plan: Plan) -> Plan:
    """A stated strategy laid out under the model, hardware and load of `plan`, as `plan_of_words`.

    Raises:
        InputError: it is one that no document can hold.
    """
    architecture = read_architecture(plan.model.config, where=f"config of {plan.model.name}")
    strategy = read_strategy(stated, architecture, plan.hardware)
    policy = plan.policy
    named = any((phase.attention_dp or 1) > 1 for phase in (strategy.prefill, strategy.decode))
    if named and "attention_dp" not in policy.relaxations:
        policy = policy.model_copy(update={"relaxations": (*policy.relaxations, "attention_dp")})
    request = BuildRequest(
        model=plan.model,
        hardware=plan.hardware,
        workload=plan.workload,
        precision=plan.precision,
        strategy=strategy,
        policy=policy,
        serving=plan.serving,
    )
    return build_stated(request, architecture)


def strategy_of_words(text: str) -> StatedStrategy:
    """The parallel strategy that `text` states, and nothing else.

    Raises:
        InputError: it states none, several, or says something that is no part of one.
    """
    if len(text) > MAX_WORDS:
        raise InputError(f"a strategy in words has at most {MAX_WORDS} characters")
    if _ONE_DEVICE.fullmatch(text.strip()):
        return StatedStrategy(dp=1)
    page, claims = Page(normalise(_ONE_DEVICE.sub("TP1", text))), Claims()
    for match in page.search(_REPLICAS):
        words = page.take(*match.span("count"))
        name = f"strategy.{match['phase'].lower()}.replicas"
        claims.claim(name, claims.checked_degree(float(match["count"]), words), words)
    read_strategy_words(page, claims)
    stated = claims.values.get("strategy")
    left = _GLUE.sub(" ", page.text.replace(TAKEN, " ")).split()
    if stated is None or left:
        what = (
            f"{_quoted(' '.join(left))} is no part of a parallel strategy" if left else "it names no parallel strategy"
        )
        raise InputError(
            f"{_quoted(text)}: {what}; write one such as TP8, PP2 x TP4 or DP2 of TP4, or the path of a plan"
        )
    assert isinstance(stated, StatedStrategy)
    return _apart(stated)


def _quoted(text: str) -> str:
    return repr("".join(letter if letter.isprintable() else "?" for letter in text[:80]))


def _apart(stated: StatedStrategy) -> StatedStrategy:
    """Phases that were stated each with degrees of its own: what one leaves out is 1, not the other's."""
    degrees = {name: getattr(stated, name).model_dump(exclude={"replicas"}) for name in PHASES}
    if degrees["prefill"] == degrees["decode"] or not all(any(one.values()) for one in degrees.values()):
        return stated
    said = {name for one in degrees.values() for name, value in one.items() if value is not None}
    alone = said & {"tp", "pp", "attention_dp"}
    phases = {
        phase: getattr(stated, phase).model_copy(update={name: one[name] or 1 for name in alone})
        for phase, one in degrees.items()
    }
    return stated.model_copy(update=phases)
