"""Operations on a deployment: `plan` and `search` one, `import` what runs today, `compare` two of them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from ...tools.comparison.result import Comparison
from ...tools.errors import InputError
from ...tools.plan.reader import MAX_DOCUMENT_BYTES, is_json_text
from ..agent import Agent
from ..compare import Words, compare
from ..importing.api import Imported, import_plan
from ..pipeline import plan_intent
from ..report.compare import render_comparison
from ..report.importing import render_import
from ..report.plan import render_plan
from ..report.search import render_search
from ..results import PlanResult
from ..runs.time_limit import within
from ..search_api import search_intent
from ..search_results import SearchAnswer
from .asking import Name, Request, Setting
from .operation import WIDTH, Operation, TakesPlan

_SHOWN = 10
Text = Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)]


class PlanQuestion(Request):
    """A deployment to plan, and who proposes."""

    proposer: Literal["auto", "builtin", "llm"] = Field(
        "builtin", description="llm: ask the configured language model; auto: where there is one."
    )


def _plan(question: PlanQuestion) -> PlanResult:
    if question.proposer == "llm":
        raise InputError("proposer: no language model is configured here; builtin plans without one")
    with within(question.time_limit_s):
        return plan_intent(question.intent(), keep_stated=not question.brief)


def _plan_by(question: PlanQuestion, agent: Agent) -> PlanResult:
    if question.proposer == "builtin":
        return _plan(question)
    return agent.run_intent(question.intent(), question.request or "", None)


PLAN = Operation(
    name="plan",
    summary="Plan a deployment: how to split a model over GPUs.",
    description=(
        "From a request in words, a brief, or fields to a plan document that keeps every hard rule, with TTFT, TPOT, "
        "throughput, memory, the reasons and the assumptions; or why there is none and what would do."
    ),
    asked=PlanQuestion,
    answers=(PlanResult,),
    run=_plan,
    text=partial(render_plan, width=WIDTH),
    is_long=True,
    ask=_plan_by,
)


class SearchQuestion(Request):
    """A deployment whose strategies are ranked."""

    top: int | None = Field(None, ge=1, description="How many candidates beside the front; all where left out.")
    sensitivity: bool = Field(False, description="Search again for what flips the answer: several times as long.")


def _search(question: SearchQuestion) -> SearchAnswer:
    with within(question.time_limit_s):
        return search_intent(question.intent(), top=question.top, sensitivity=question.sensitivity)


SEARCH = Operation(
    name="search",
    summary="Rank all legal strategies, with the Pareto front.",
    description="Every legal strategy for a deployment, simulated and ranked by the objective; why each family lost.",
    asked=SearchQuestion,
    answers=(SearchAnswer,),
    run=_search,
    text=partial(render_search, top=_SHOWN, width=WIDTH),
    is_long=True,
)


class ImportQuestion(Setting):
    """Launch commands or a manifest, and what these do not say."""

    source: Text = Field(description="A launch command, a script or a manifest, as text.")
    files: dict[str, Text] = Field(
        default_factory=dict[str, str], description="Texts of files that the commands name, by their names."
    )


def _import(question: ImportQuestion) -> Imported:
    return import_plan(
        question.source,
        model=question.model,
        hardware=question.hardware,
        workload=question.workload,
        files=question.files,
        **question.arguments(),
    )


IMPORT = Operation(
    name="import",
    summary="What runs today, a command or a manifest, as a plan.",
    description=(
        "A launch command of vLLM, SGLang or TensorRT-LLM, a script, or a manifest (Kubernetes, docker-compose, "
        "Dynamo, Ray Serve) as a plan, judged and estimated as it runs. Say the hardware where the text does not."
    ),
    asked=ImportQuestion,
    answers=(Imported,),
    run=_import,
    text=partial(render_import, width=WIDTH),
    is_long=True,
)

_Side = Annotated[dict[str, Any] | Text, TakesPlan()]


class CompareQuestion(Setting):
    """Two deployments, and the load of both where it is not their own."""

    a: _Side = Field(description="A plan document, or launch commands ('vllm serve … -tp 8').")
    b: _Side = Field(description="As a, or a strategy in words ('PP2 of TP4') on the hardware of a.")
    hardware_b: Name | None = Field(None, description="Hardware of b, where another.")
    usd_per_gpu_hour_b: float | None = Field(None, gt=0, description="Price of a GPU of b, where another.")


def _compare(question: CompareQuestion) -> Comparison:
    return compare(
        _side(question.a),
        _side(question.b),
        model=question.model,
        hardware=question.hardware,
        workload=question.workload,
        hardware_b=question.hardware_b,
        usd_per_gpu_hour_b=question.usd_per_gpu_hour_b,
        **question.arguments(),
    )


def _side(side: dict[str, Any] | str) -> dict[str, Any] | str | Words:
    return Words(side) if isinstance(side, str) and not is_json_text(side) else side


COMPARE = Operation(
    name="compare",
    summary="Two deployments side by side.",
    description="A plan beside another plan, a strategy in words or launch commands: what differs, which is better.",
    asked=CompareQuestion,
    answers=(Comparison,),
    run=_compare,
    text=partial(render_comparison, width=WIDTH),
    is_long=True,
)
