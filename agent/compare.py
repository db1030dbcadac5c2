"""Two deployments side by side: each a plan, launch commands, or a strategy in words, judged under one setting.

Words ("TP8", "DP2 of PP2 × TP4", "2 prefill of TP4 + 1 decode of TP8") and commands ("vllm serve … -tp 8") are placed
under the other side's model, hardware and load where they name none, and judged as they stand. A word that is no part
of a strategy is refused, not passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

from msgspec import Struct

from ..tools.calibration.custom import CustomCalibration, own_calibration
from ..tools.compare import compare as compare_plans
from ..tools.comparison.result import Comparison, Side
from ..tools.comparison.side import Document
from ..tools.comparison.words import concluded
from ..tools.errors import InputError
from ..tools.importing.launch import is_launch, read_launch
from ..tools.input.arguments import checks_arguments
from ..tools.input.files import shown_path
from ..tools.language.said import Said
from ..tools.plan.document import Plan
from ..tools.plan.reader import is_json_text, read_document, read_file
from .importing.api import LOAD_FIELDS, Imported, imported
from .intent.complete import complete
from .pipeline import plan_intent
from .planning.plan_of_words import experts_left_open, plan_of_words
from .stated.arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from .stated.load import HARDWARE_FIELDS, OF_LOAD, on_hardware, under_load
from .stated.words_or_file import is_words

# Assumptions that are shown elsewhere: relaxations have a row of their own, the load a line.
_TOLD_ELSEWHERE = ("relaxations", *LOAD_FIELDS)


class Words(Struct, frozen=True):
    """A parallel strategy in words, or launch commands, as opposed to the path of a file."""

    text: str


class OfB(Struct, frozen=True):
    """What is stated of the second deployment alone: the price of its GPUs, and its hardware."""

    usd_per_gpu_hour: float | None = None
    hardware: Said | None = None


_NOTHING = OfB()


@checks_arguments
def compare(
    a: Document | Words,
    b: Document | Words,
    *,
    titles: tuple[str, str] | None = None,
    calibration: CustomCalibration | str | Path | None = None,
    model: ModelArgument | None = None,
    hardware: HardwareArgument | None = None,
    workload: WorkloadArgument | None = None,
    hardware_b: HardwareArgument | None = None,
    usd_per_gpu_hour_b: float | None = None,
    **stated: Unpack[Arguments],
) -> Comparison:
    """Set two deployments side by side.

    A plan that names no engine is judged as run on that of the other, and the answer says so.

    Args:
        a: A plan: a `Plan`, an object, a JSON text, or the path of a file; or as `b`.
        b: Another plan, launch commands, or a strategy in words. What commands and words leave open is as in the other
            side. A text that is neither JSON nor the path of a file is read as words; `Words` says so.
        titles: What reports call the two.
        calibration: Times of your own, or the path of their file.
        model: As `import_plan`, where commands name none, or both sides are words.
        hardware: That of commands, and of strategies in words, where it is another one than that of the plan beside
            them.
        workload: The load of both, in place of what plans and commands say.
        hardware_b: That of `b`, commands or words, where it is another one than `hardware`.
        usd_per_gpu_hour_b: The price of the GPUs of `b`, where it is another one than `usd_per_gpu_hour`.
        **stated: As `import_plan`; fields of the load are for both sides, the others for commands.

    Raises:
        InputError: One of them cannot be read, the words name no strategy, nothing says the model or the hardware, or
            something is stated that no side takes.

    Example:
        >>> import shardwright
        >>> base = shardwright.plan("Llama-3.2-1B on 2 L4, 512 in / 32 out").plan
        >>> shardwright.compare(base, "DP2 of TP1").b.valid
        True
    """
    of_b = OfB(usd_per_gpu_hour_b, said_of_arguments(None, hardware_b, None, Arguments()))
    said = said_of_arguments(model, hardware, workload, stated)
    return compared(a, b, said, of_b, titles=titles, calibration=calibration)


def compared(
    a: Document | Words,
    b: Document | Words,
    said: Said | None,
    of_b: OfB = _NOTHING,
    *,
    titles: tuple[str, str] | None = None,
    calibration: CustomCalibration | str | Path | None = None,
) -> Comparison:
    """`compare` under what is `said` of both, and `of_b` of `b` alone.

    Raises:
        InputError: as `compare`.
    """
    custom, said = own_calibration(calibration), said or Said()
    shown = titles or (_title(a, "A"), _title(b, "B"))
    sources = _source_of(a), _source_of(b)
    both = said, said if of_b.hardware is None else _with_hardware(said, of_b.hardware)
    _refuse_untaken(sources, said, of_b.hardware)
    first, second = _resolved(sources, both, shown)
    plans = tuple(side.plan if isinstance(side, Imported) else side for side in (first, second))
    prices = said.usd_per_gpu_hour, of_b.usd_per_gpu_hour or said.usd_per_gpu_hour
    comparison = compare_plans(*plans, titles=shown, calibration=custom, usd_per_gpu_hour=prices)
    sides = {
        name: _with_caveats(getattr(comparison, name), resolved, source.text)
        for name, resolved, source in (("a", first, sources[0]), ("b", second, sources[1]))
        if isinstance(source, Words) and isinstance(resolved, Imported | Plan)
    }
    return concluded(comparison.model_copy(update=sides)) if sides else comparison


_Resolved = Document | Imported


def _source_of(side: Document | Words) -> Document | Words:
    """`Words` where `side` is words, commands or a file of commands; else the document that it is.

    Raises:
        InputError: a file cannot be read.
    """
    if isinstance(side, str) and is_words(side):
        return Words(side)
    if isinstance(side, Path) or (isinstance(side, str) and not is_json_text(side)):
        text = read_file(Path(side))
        return Words(text) if is_launch(text) else side
    return side


def _with_hardware(said: Said, hardware: Said) -> Said:
    """`said` with the hardware that `hardware` states."""
    fields = {name: getattr(hardware, name) for name in HARDWARE_FIELDS}
    words = {name: text for name, text in said.words.items() if name not in HARDWARE_FIELDS} | hardware.words
    return said.model_copy(update={**fields, "words": words})


def _refuse_untaken(sources: tuple[Document | Words, ...], said: Said, hardware_b: Said | None) -> None:
    """Refuse what neither side takes: a plan takes only a load, words beside a plan also hardware.

    Raises:
        InputError: something is said that neither takes.
    """
    opens = [_openness(source) for source in sources]
    if hardware_b is not None and opens[1] == 0:
        raise InputError(
            f"{next(iter(hardware_b.words.values()), 'hardware_b')}: B is a plan with its own; leave it out"
        )
    if 1 in opens or 0 not in opens:
        return
    why = "plans say this"
    taken = {*OF_LOAD, "words", "assumed", "readings", "unread"}
    if 2 in opens:
        why = "words are placed under the plan beside them, which says this"
        taken.update(HARDWARE_FIELDS)
    for name in Said.model_fields.keys() - taken:
        if getattr(said, name) not in (None, False, ()):
            raise InputError(f"{said.words.get(name, name)}: {why} already; leave it out")


def _resolved(
    sources: tuple[Document | Words, ...], said: tuple[Said, ...], titles: tuple[str, str]
) -> tuple[_Resolved, ...]:
    """Both sides as plans; the one that says more comes first, and the other takes from it what it leaves open.

    Raises:
        InputError: as `compare`.
    """
    resolved: dict[int, _Resolved] = {}
    order = sorted((0, 1), key=lambda place: _openness(sources[place]))
    for place in order:
        source, under = sources[place], resolved.get(order[0])
        plan = None if under is None else _plan_of(under, titles[order[0]])
        resolved[place] = _side(source, said[place], plan)
    return resolved[0], resolved[1]


def _openness(source: Document | Words) -> int:
    """How much a side leaves open: a plan nothing, commands hardware or load, a strategy the model too."""
    return 0 if not isinstance(source, Words) else 1 if is_launch(source.text) else 2


def _side(source: Document | Words, said: Said, under: Plan | None) -> _Resolved:
    if not isinstance(source, Words):
        return under_load(source, said)
    if is_launch(source.text):
        return imported(read_launch(source.text), said, under=under)
    return plan_of_words(source.text, _base_of(source.text, said) if under is None else on_hardware(under, said))


def _base_of(text: str, said: Said) -> Plan:
    """The plan for `said`, whose model, hardware and load two strategies in words share.

    Raises:
        InputError: it names no model or no hardware, or nothing can be planned for it.
    """
    if said.model is None and said.model_config_object is None:
        raise InputError(
            f"{text[:60]!r}: a strategy in words says neither model nor hardware; say both (--model, --hardware), "
            "or let one of the two sides be a plan or launch commands"
        )
    result = plan_intent(complete(said), with_hint=False)
    if result.plan is None:
        raise InputError(f"nothing to compare under what was said: {result.one_line()}")
    return result.plan


def _plan_of(side: _Resolved, title: str) -> Plan:
    if isinstance(side, Imported):
        return side.plan
    read = read_document(side)
    if read.plan is None:
        raise InputError(f"{title}: not a plan document: {read.faults[0].message}")
    return read.plan


def _with_caveats(side: Side, resolved: Imported | Plan, text: str) -> Side:
    """`side` with the caveats of `import` for launch commands, or with what other words leave open."""
    if isinstance(resolved, Imported):
        return side.model_copy(update={"caveats": tuple(_caveats(resolved)), "refused": bool(resolved.refused) or None})
    left_open = experts_left_open(text, resolved)
    return side if left_open is None else side.model_copy(update={"caveats": (left_open,)})


def _caveats(launched: Imported) -> Iterator[str]:
    yield from launched.caveats
    for assumption in launched.assumptions:
        if assumption.field not in _TOLD_ELSEWHERE:
            value = "" if assumption.value is None else f" {assumption.value}"
            yield f"Assumed: {assumption.field}{value} ({assumption.reason})"


def _title(source: Document | Words, otherwise: str) -> str:
    if isinstance(source, Words) or (isinstance(source, str) and is_words(source)):
        return source.text if isinstance(source, Words) else source
    if isinstance(source, Path) or (isinstance(source, str) and not is_json_text(source)):
        return shown_path(Path(source))
    return otherwise
