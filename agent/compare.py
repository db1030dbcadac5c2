"""Two deployments side by side: two plans, or a plan and what runs today, said in words or as launch commands.

Words ("TP8", "DP2 of PP2 × TP4", "2 prefill of TP4 + 1 decode of TP8") and commands ("vllm serve … -tp 8") are placed
under the plan's own model, hardware and load where they name none, and judged as they stand. A word that is no part of
a strategy is refused, not passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..tools.arguments import checks_arguments
from ..tools.calibration.custom import CustomCalibration, own_calibration
from ..tools.catalog.architecture import Architecture
from ..tools.catalog.config import read_architecture
from ..tools.compare import compare as compare_plans
from ..tools.comparison.result import Comparison
from ..tools.comparison.side import Document
from ..tools.comparison.words import concluded
from ..tools.errors import InputError
from ..tools.files import is_there, shown_path
from ..tools.importing.launch import is_launch, read_launch
from ..tools.language import whole_strategy
from ..tools.language.said import StatedStrategy
from ..tools.plan.builder import BuildRequest
from ..tools.plan.document import PHASES, Plan, PolicyBlock, Strategy
from ..tools.plan.reader import is_json_text, read_document
from ..tools.plan.shorthand import read_shorthand
from ..tools.rules.legality import RELAXATION_OF
from .import_api import Imported, imported
from .stated_strategy import build_stated, read_block, read_strategy

# A name that ends like this is a file's, whether there is one or not.
_FILES = (".json", ".yaml", ".yml", ".txt", ".md")


@dataclass(frozen=True, slots=True)
class Words:
    """A parallel strategy in words, or launch commands, told apart from the path of a file."""

    text: str


@checks_arguments
def compare(
    a: Document,
    b: Document | Words,
    *,
    titles: tuple[str, str] | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    usd_per_gpu_hour: float | None = None,
) -> Comparison:
    """Set two deployments side by side.

    Args:
        a: A plan: a `Plan`, an object, a JSON text, or the path of a file.
        b: Another plan, or a strategy in words or launch commands, placed under the model, hardware and load of `a`.
            A text that is neither JSON nor the path of a file is read as words; `Words` says so.
        titles: What reports call the two.
        calibration: Times of your own, or the path of their file.
        usd_per_gpu_hour: The price of both; the catalogue's where it is `None`.

    Raises:
        InputError: One of them cannot be read as a plan document, or the words name no strategy.

    Example:
        >>> import shardwright
        >>> one = shardwright.plan("Llama-3.2-1B on 2 L4, 512 in / 32 out").plan
        >>> shardwright.compare(one, "DP2 of TP1").b.valid
        True
    """
    own = own_calibration(calibration)
    words = b if isinstance(b, Words) else Words(b) if isinstance(b, str) and is_words(b) else None
    shown = titles or (_title(a, "A"), words.text if words is not None else _title(b, "B"))
    launched = None
    if words is not None:
        read = read_document(a)
        if read.plan is None:
            raise InputError(f"{shown[0]}: not a plan document: {read.faults[0].message}")
        a, launched = read.plan, launched_beside(words.text, read.plan)
        b = plan_of_words(words.text, a) if launched is None else launched.plan
    assert not isinstance(b, Words)
    found = compare_plans(a, b, titles=shown, calibration=own, usd_per_gpu_hour=usd_per_gpu_hour)
    return found if launched is None else _with_caveats(found, launched)


def _with_caveats(found: Comparison, launched: Imported) -> Comparison:
    """The comparison with what `import` says first of the commands that B is."""
    assumed = (one for one in launched.assumptions if one.field != "relaxations")
    caveats = (*launched.caveats, *(f"Assumed: {one.field} {one.value} ({one.reason})" for one in assumed))
    said = {"caveats": caveats, "refused": bool(launched.refused) or None}
    return concluded(found.model_copy(update={"b": found.b.model_copy(update=said)}))


def _title(source: Document | Words, otherwise: str) -> str:
    if isinstance(source, Path) or (isinstance(source, str) and not is_json_text(source)):
        return shown_path(Path(source))
    return otherwise


def is_words(text: str) -> bool:
    """Whether `text` is a strategy in words: neither JSON nor the path of a file."""
    if is_json_text(text) or text.lower().endswith(_FILES):
        return False
    return not is_there(text)


def launched_beside(text: str, plan: Plan) -> Imported | None:
    """What launch commands run under the model, hardware and load of `plan`; `None` where `text` is none.

    Raises:
        InputError: as `imported`.
    """
    if not is_launch(text):
        return None
    asked = plan.model_dump(mode="json", include={"hardware", "workload", "precision"}, exclude_none=True)
    launch = read_launch(text)
    return imported(replace(launch, planned=launch.planned or {"model": plan.model.name, **asked}), None)


def plan_of_words(text: str, plan: Plan) -> Plan:
    """The strategy that `text` states, or the commands that it is, under the model, hardware and load of `plan`.

    Degrees that are left out are what a serving engine would take. A relaxation that the words name by its degree is
    in force.

    Raises:
        InputError: the words name no strategy, or one that no document can hold.
    """
    launched = launched_beside(text, plan)
    if launched is not None:
        return launched.plan
    architecture = read_architecture(plan.model.config, where=f"config of {plan.model.name}")
    try:
        strategy = read_strategy(strategy_of_words(text), architecture, plan.hardware)
    except InputError:
        # What reports print of a strategy has parts that people do not state: cuts of stages, TP in experts.
        strategy = read_block(read_shorthand(text) or {}, architecture, plan.hardware)
        if strategy is None:
            raise
    return _laid_out(strategy, architecture, plan)


def plan_of_stated(stated: StatedStrategy, plan: Plan) -> Plan:
    """A stated strategy laid out under the model, hardware and load of `plan`, as `plan_of_words`.

    Raises:
        InputError: it is one that no document can hold.
    """
    architecture = read_architecture(plan.model.config, where=f"config of {plan.model.name}")
    return _laid_out(read_strategy(stated, architecture, plan.hardware), architecture, plan)


def _laid_out(strategy: Strategy, architecture: Architecture, plan: Plan) -> Plan:
    policy, phases = plan.policy, (strategy.prefill, strategy.decode)
    used = [name for degree, name in RELAXATION_OF.items() if any((getattr(one, degree) or 1) > 1 for one in phases)]
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
