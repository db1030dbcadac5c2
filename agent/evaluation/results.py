"""The results of an evaluation as data: for the JSON report, the journal, and the comparison of two runs.

Nothing in a `CaseResult` depends on the clock: two runs of a deterministic solver are equal, byte for byte. Seconds
are kept apart.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from ...tools.frozen import Frozen
from ..runs.spent import Spent
from .case import Case
from .marks import Mark

# Stages of an answer, in order; `after_1` and on are those after corrections.
FIRST_STAGES = ("at_once", "after_fix")
FINAL = "final"
STAGE_TITLES = {"at_once": "at once", "after_fix": "after auto-fix", FINAL: "at the end"}
# The rungs that a right answer passes at the end, if they apply.
DECISIVE = ("outcome", "own", "intent", "diagnosis", "rules", "regret", "reading")


class Proposed(Frozen):
    """A proposal for people: what it was, what was found of it, what was repaired."""

    verdict: str
    strategy: str | None = None
    text: str = ""
    findings: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()


class Detail(Frozen):
    """What a page shows of a case beside its marks. `picture` is an SVG of the final DAG."""

    request: str = ""
    why: str = ""
    golden: str = ""
    proposals: tuple[Proposed, ...] = ()
    explanation: str = ""
    picture: str = ""


class Gain(Frozen):
    """The plan of an answer beside the built-in proposer's, by the objective's own figure.

    `pct` is above zero where the plan is better; `same`: the search does not tell the two apart.
    """

    objective: str
    own: float
    built_in: float
    unit: str
    pct: float
    verdict: Literal["better", "same", "behind"]


class CaseResult(Frozen):
    """What one solver did in one case, one time.

    `case` is the digest of the case. `stages` are the marks of each plan rung at each stage, `marks` those of the
    rungs about the whole answer. `is_repair`: the case gives a broken proposal. `answer` is the kind of answer,
    `strategy` what was answered and `golden` what is right, as it was read, in the field's shorthand. `gain` is there
    where someone was asked beside the built-in proposer. `fault` says what broke in the harness or the dataset: such a
    case counts as lost.
    """

    id: str
    family: str
    case: str = ""
    epoch: int = 1
    by_builder: bool = False
    is_repair: bool = False
    answer: str
    strategy: str = ""
    golden: str = ""
    stages: dict[str, dict[str, Mark]] = Field(default_factory=dict[str, dict[str, Mark]])
    marks: dict[str, Mark] = Field(default_factory=dict[str, Mark])
    status: str = ""
    plan_from: str = ""
    proposals: int = 0
    gain: Gain | None = None
    spent: Spent = Spent()
    rules_broken: tuple[str, ...] = ()
    fault: str | None = None

    def passed(self, rung: str, stage: str = FINAL) -> bool | None:
        """Whether a rung was passed at a stage; `None` where it does not apply. A stage not reached is the last one."""
        if rung in self.marks:
            return self.marks[rung].passed
        marks = self.stages.get(stage) or self.stages.get(self._last_before(stage), {})
        return marks[rung].passed if rung in marks else None

    def _last_before(self, stage: str) -> str:
        """The stage of the last proposal by `stage`; at the end, the built-in plan if no proposal stands."""
        corrections = [
            name for name in self.stages if name not in STAGE_TITLES and stage_order(name) < stage_order(stage)
        ]
        return max(corrections, key=stage_order, default="after_fix")

    @property
    def is_solved(self) -> bool:
        """Whether the answer is right: of the right kind, his own, read as meant, valid, no worse than the golden.

        Another plan than the golden that is as good is right; what is equal to a golden is reported apart.
        """
        return self.fault is None and all(self.passed(rung) is not False for rung in DECISIVE)


def stage_order(stage: str) -> int:
    """A stage's place in order: the first stages, corrections by number, the end, then unknown ones."""
    number = stage.rpartition("_")[2]
    is_correction = number.isdecimal() and len(number) < 10
    return {"at_once": -2, "after_fix": -1}.get(stage, int(number) if is_correction else 1 << 30)


def about_case(case: Case, epoch: int) -> dict[str, Any]:
    """The fields of a result that identify its case."""
    return {
        "id": case.id,
        "family": case.family,
        "case": case.digest,
        "epoch": epoch,
        "by_builder": case.by_builder,
        "is_repair": case.proposal is not None,
    }


def lost_everywhere(case: Case, epoch: int, fault: str) -> CaseResult:
    """The result of an unfinished case: lost on every rung that applies to it."""
    no = Mark(passed=False, why=fault)
    wants_plan = case.expect == "plan"
    compared = ("equivalent", "strategy", "regret") if case.goldens else ()
    plan_rungs: dict[str, Mark] = {name: no for name in ("parses", "schema", "rules", *compared) if wants_plan}
    about = {
        "outcome": case.expect != "reading",
        "intent": case.intent,
        "explanation": case.decided_by,
        "diagnosis": case.proposal,
    }
    about["reading"] = case.expect == "reading"
    return CaseResult(
        **about_case(case, epoch),
        answer="failed",
        stages=dict.fromkeys((*FIRST_STAGES, FINAL), plan_rungs) if plan_rungs else {},
        marks={name: no for name, applies in about.items() if applies},
        fault=fault,
    )


class Kept(Frozen):
    """One finished case as a journal keeps it.

    `model_fault` says why a model could not be reached, in words that are not the same each time.
    """

    key: str
    result: CaseResult
    detail: Detail | None = None
    seconds: float = 0.0
    model_fault: str | None = None


class Rate(Frozen):
    """A share of cases with its confidence interval (95%), clustered by family. `n` counts cases, not epochs."""

    rate: float
    low: float
    high: float
    n: int
    families: int


class Header(Frozen):
    """What was run: enough to say whether two runs can be compared."""

    format: Literal["shardwright/eval"] = "shardwright/eval"
    version: Literal["1"] = "1"
    shardwright: str
    dataset: str
    dataset_hash: str
    solver: str
    is_deterministic: bool
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    epochs: int = 1


def digest_of(results: tuple[CaseResult, ...]) -> str:
    """SHA-256 (hex) of results: equal for runs with equal marks."""
    text = json.dumps([result.model_dump(mode="json") for result in results], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
