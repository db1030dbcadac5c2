"""The question of a run: the request made concrete, and the built-in proposer's answer.

Hardware, number formats and load are decided here, before any model is asked: a model proposes the split, never the
request. If no plan exists, no model is asked at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...tools.engines.names import JUDGED, EngineName
from ...tools.errors import InputError
from ...tools.input.bounds import REQUESTS
from ...tools.plan.document import ModelBlock, Plan, ServingBlock, Strategy
from ...tools.plan.elements import as_mapping
from ...tools.plan.performance import PerformanceEstimate
from ...tools.plan.placement import gpu_count
from ...tools.plan.reader import read_document
from ...tools.rules.base import Violation
from ...tools.rules.registry import all_rules
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.search import base_setting
from ...tools.search.simulated import candidate_at
from ...tools.validate import find_violations
from ..intent.intent import Intent
from ..model.redaction import words_of
from ..pipeline import plan_intent
from ..results import PlanReport, PlanResult
from ..stated.arguments import checked
from ..stated.search_request import architecture_of, build_request, search_request, with_concurrency
from ..stated.strategy import build_stated
from .against import Against, against, against_candidate
from .shorten import short_text, short_value

# Blocks that state the request; a proposal's own are corrected, never trusted.
PINNED = ("format", "version", "model", "hardware", "workload", "precision", "policy", "serving")
# A strategy of more than this multiple of the hardware is not laid out: its document would be all faults.
MOST_TIMES_HARDWARE = 2
# Settings of an engine that a request may leave open.
OPEN_SETTINGS = ("prefill_chunk_tokens", "max_batch", "microbatches", "overlap")
# No deployment of one plan has more requests in flight.
MOST_CONCURRENT = int(REQUESTS.most)


class Question(Struct, frozen=True):
    """A request with everything decided but the split. `reference` is the built-in proposer's valid plan."""

    intent: Intent
    request: SearchRequest
    reference: PlanResult
    reference_plan: Plan

    @property
    def model(self) -> ModelBlock:
        """The model block of every answering plan."""
        return self.reference_plan.model

    @property
    def header(self) -> dict[str, Any]:
        """The pinned blocks as JSON values, without those that the request leaves undecided."""
        document = self.reference_plan.model_dump(mode="json")
        return {name: document[name] for name in PINNED if document.get(name) is not None}

    def pinned(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """`proposed` with the request's blocks; requests in flight are its own only if they were left open.

        A pinned block that the request does not decide is dropped; engine settings that the request leaves open are the
        proposal's.
        """
        own_blocks = {name: block for name, block in proposed.items() if name not in PINNED}
        document = {**own_blocks, **self.header}
        settings = {**document.get("serving", {}), **self._open_settings(proposed)}
        if settings:
            document["serving"] = settings
        workload = proposed.get("workload")
        concurrency = workload.get("concurrency") if isinstance(workload, Mapping) else None
        if self.intent.concurrency_open and type(concurrency) is int and 1 <= concurrency <= MOST_CONCURRENT:
            document["workload"] = {**document["workload"], "concurrency": concurrency}
        return document

    def _open_settings(self, proposed: Mapping[str, Any]) -> dict[str, Any]:
        """The engine settings of `proposed` that the request leaves open; malformed values are left to the rules."""
        serving, asked = as_mapping(proposed.get("serving")), self._asked_settings
        return {name: serving[name] for name in OPEN_SETTINGS if serving.get(name) is not None and name not in asked}

    @property
    def _asked_settings(self) -> Mapping[str, Any]:
        """The engine settings of the request; those set for the load are no demand."""
        serving = self.reference_plan.serving
        asked = {} if serving is None else serving.model_dump(mode="json", exclude_none=True)
        return {
            name: value for name, value in asked.items() if name != "max_batch" or not self.request.batch_follows_load
        }

    def contradictions(self, proposed: Mapping[str, Any]) -> tuple[str, ...]:
        """The pinned fields that `proposed` states otherwise than the request, and the dropped ones."""
        header = self.header
        differs = tuple(
            f"{name}.{field}: {_asked(name, field, wanted)}, the proposal has {_shown(block[field])}"
            for name, asked in header.items()
            if isinstance(asked, Mapping) and isinstance(block := proposed.get(name), Mapping)
            for field, wanted in asked.items()
            if field != "config"
            and block.get(field, wanted) != wanted
            and not (field == "concurrency" and self.intent.concurrency_open)
            and not (name == "serving" and field not in self._asked_settings)
        )
        dropped = [name for name in PINNED if name not in header and name != "serving" and proposed.get(name)]
        settings = as_mapping(proposed.get("serving")).keys() - {*OPEN_SETTINGS, *as_mapping(header.get("serving"))}
        dropped += (f"serving.{short_text(name, 40)}" for name in sorted(settings))
        return (*differs, *(f"{name}: the request does not decide it, so that it was left out" for name in dropped))

    def answers(self, document: Mapping[str, Any]) -> bool:
        """Whether `document` is a plan for the request: its pinned blocks are equal."""
        pinned = self.pinned(document)
        return all(document.get(name) == pinned.get(name) for name in PINNED)

    def unstartable(self, document: Mapping[str, Any]) -> tuple[Violation, ...]:
        """Errors that keep the assumed engine from starting a plan that names none (rules.md R16)."""
        engine = self.request.assumed_engine
        return () if engine is None else _unstartable_by(engine, document)

    def starts_on(self, plan: Plan) -> tuple[str, ...]:
        """The engines that start `plan`: the named one, or all that would if named."""
        named = self.request.named_engine
        document = plan.model_dump(mode="json")
        engines = JUDGED if named is None else (named,)
        return tuple(JUDGED[engine].title for engine in engines if not _unstartable_by(engine, document))

    def against(self, plan: Plan, estimate: PerformanceEstimate) -> Against:
        """`plan` compared with the built-in proposer's."""
        assert self.reference.estimate is not None
        known = self.reference_plan, self.reference.estimate
        return against(self.request.workload.objective, (plan, estimate), known)

    def against_candidate(self, candidate: Candidate) -> Against:
        """A search's candidate compared with the built-in proposer's plan."""
        assert self.reference.estimate is not None
        known = self.reference_plan, self.reference.estimate
        return against_candidate(self.request.workload.objective, candidate, known)

    def document_of(
        self, strategy: Strategy, concurrency: int | None = None, proposed: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The builder's document for `strategy`, which may break rules, with the settings of `proposed`.

        Raises:
            InputError: nothing can be built of it.
        """
        needed, there = gpu_count(strategy), self.request.facts.gpus
        if needed > MOST_TIMES_HARDWARE * there:
            raise InputError(f"GP004: the strategy needs {needed:,} GPUs, the hardware has {there:,}")
        chosen = concurrency if concurrency and self.intent.concurrency_open else self.concurrency_of(strategy)
        request = build_request(self.model, with_concurrency(self.request, chosen), strategy)
        settings = self._open_settings(proposed or {})
        if settings:
            named = {} if request.serving is None else request.serving.model_dump(exclude_none=True)
            request = replace(request, serving=checked(ServingBlock, {**named, **settings}, "serving"))
        built = build_stated(request, self.request.architecture)
        return built.model_dump(mode="json")

    def own_words(self) -> frozenset[str]:
        """Words of the format, of a report, and of the reference plan, none of them a model's."""
        plan, schemas = self.reference_plan.model_dump(mode="json"), (Plan, PlanReport)
        return words_of(plan, *(schema.model_json_schema() for schema in schemas))

    def concurrency_of(self, strategy: Strategy) -> int:
        """Requests in flight for `strategy`: as stated; if left open, the reference's, or fewer if those do not fit."""
        asked = self.reference_plan.workload.concurrency
        if not self.intent.concurrency_open:
            return asked
        setting, concurrency = base_setting(self.request), asked
        try:
            while concurrency > strategy.dp:
                if candidate_at(self.request, setting, strategy, concurrency).feasible:
                    break
                concurrency = max(strategy.dp, concurrency // 2)
        except InputError:
            return asked
        return concurrency


def _unstartable_by(engine: EngineName, document: Mapping[str, Any]) -> tuple[Violation, ...]:
    """The errors that keep `engine` from starting `document`."""
    serving = {**as_mapping(document.get("serving")), "engine": engine}
    read = read_document({**document, "serving": serving})
    violations = find_violations(read.view, [rule for rule in all_rules() if rule.id.startswith("EN")])
    read.view.release()
    return tuple(violation for violation in violations if violation.severity == "error")


def _asked(block: str, field: str, value: Any) -> str:
    """The value in the request. A model's name may be any stranger's text, and is not repeated."""
    return "it is the request's" if (block, field) == ("model", "name") else f"the request has {_shown(value)}"


def _shown(value: Any) -> str:
    return json.dumps(short_value(value, 100), ensure_ascii=False)


def ask(intent: Intent, *, with_hint: bool = True) -> Question | PlanResult:
    """The question of `intent`, or the built-in proposer's refusal if no plan exists. `with_hint` as `plan_intent`.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    # The day is sized for the final plan.
    return question_of(intent, plan_intent(intent.model_copy(update={"day": None}), with_hint=with_hint))


def question_of(intent: Intent, reference: PlanResult) -> Question | PlanResult:
    """The question of `intent` with the built-in proposer's answer `reference`; the latter if it has no plan.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    plan = reference.plan
    if plan is None:
        return reference
    architecture = architecture_of(plan.model)
    request = replace(
        search_request(intent, architecture, plan.hardware),
        precision=plan.precision,
        precisions=(),
        workload=plan.workload,
        serving=plan.serving,
        concurrency_open=False,
    )
    stated = None if intent.serving is None else intent.serving.max_batch
    follows = stated is None and plan.serving is not None and plan.serving.max_batch is not None
    request = replace(request, batch_follows_load=follows)
    return Question(intent, request, reference, plan)
