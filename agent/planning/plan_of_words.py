"""A strategy in words, or launch commands, as a plan under the model, hardware and load of another one."""

from __future__ import annotations

from ...tools.catalog.architecture import Architecture
from ...tools.errors import InputError
from ...tools.importing.launch import is_launch, read_launch
from ...tools.language.layouts import whole_strategy
from ...tools.language.said import StatedStrategy
from ...tools.plan.builder import BuildRequest
from ...tools.plan.describe import read_shorthand
from ...tools.plan.document import PHASES, Plan, PolicyBlock, Strategy
from ...tools.rules.legality import RELAXATION_OF
from ..importing.api import imported
from ..stated.search_request import architecture_of
from ..stated.strategy import build_stated, read_block, read_strategy


def plan_of_words(text: str, plan: Plan) -> Plan:
    """The strategy that `text` states, or the commands that it is, under the model, hardware and load of `plan`.

    Degrees that are left out are what a serving engine would take. A relaxation that the words name by its degree is
    in force.

    Raises:
        InputError: the words name no strategy, or one that no document can hold.
    """
    if is_launch(text):
        return imported(read_launch(text), None, under=plan).plan
    architecture = architecture_of(plan.model)
    try:
        strategy = read_strategy(strategy_of_words(text), architecture, plan.hardware)
    except InputError:
        # Strategies as reports print them have parts that people do not state: cuts of stages, TP in experts.
        strategy = read_block(read_shorthand(text) or {}, architecture, plan.hardware)
        if strategy is None:
            raise
    return _laid_out(strategy, architecture, plan)


def experts_left_open(text: str, plan: Plan) -> str | None:
    """How `plan` lays out the experts that `text` leaves open; `None` if it leaves none open."""
    architecture = architecture_of(plan.model)
    ep = max(plan.strategy.prefill.ep, plan.strategy.decode.ep)
    try:
        stated = strategy_of_words(text)
    except InputError:  # the shorthand of reports, which states them
        return None
    if not architecture.is_moe or ep == 1 or any(getattr(stated, phase).ep is not None for phase in PHASES):
        return None
    return (
        f"the words do not say how experts lie: they are kept whole, in {ep} groups (EP{ep}), as plans have them; an "
        'engine that is told of TP alone cuts each of them over its ranks: add "no EP" to compare that'
    )


def plan_of_stated(stated: StatedStrategy, plan: Plan) -> Plan:
    """A stated strategy laid out under the model, hardware and load of `plan`, as `plan_of_words`.

    Raises:
        InputError: it is one that no document can hold.
    """
    architecture = architecture_of(plan.model)
    return _laid_out(read_strategy(stated, architecture, plan.hardware), architecture, plan)


def plan_of_strategy(strategy: Strategy, plan: Plan) -> Plan:
    """A whole strategy laid out under the model, hardware and load of `plan`, as `plan_of_words`.

    Raises:
        InputError: it is one that no document can hold.
    """
    return _laid_out(strategy, architecture_of(plan.model), plan)


def _laid_out(strategy: Strategy, architecture: Architecture, plan: Plan) -> Plan:
    policy, phases = plan.policy, (strategy.prefill, strategy.decode)
    used = [
        name for degree, name in RELAXATION_OF.items() if any((getattr(phase, degree) or 1) > 1 for phase in phases)
    ]
    if used:
        policy = PolicyBlock.model_validate(
            {**policy.model_dump(), "relaxations": tuple(dict.fromkeys((*policy.relaxations, *used)))}
        )
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
    """The parallel strategy that `text` states, and nothing else; phases that were stated apart share nothing.

    Raises:
        InputError: as `whole_strategy.strategy_of_words`.
    """
    return _apart(whole_strategy.strategy_of_words(text))


def _apart(stated: StatedStrategy) -> StatedStrategy:
    """Phases that were stated apart, each with its own degrees: one that a phase leaves out is 1, not the other's."""
    degrees = {name: getattr(stated, name).model_dump(exclude={"replicas"}) for name in PHASES}
    if degrees["prefill"] == degrees["decode"] or not all(any(values.values()) for values in degrees.values()):
        return stated
    stated_names = {name for values in degrees.values() for name, value in values.items() if value is not None}
    alone = stated_names & {"tp", "pp", "attention_dp"}
    phases = {
        phase: getattr(stated, phase).model_copy(update={name: values[name] or 1 for name in alone})
        for phase, values in degrees.items()
    }
    return stated.model_copy(update=phases)
