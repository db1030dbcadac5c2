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
from ..tools.input.files import is_there, shown_path
from ..tools.language.said import Said
from ..tools.plan.document import Plan
from ..tools.plan.reader import is_json_text, read_document, read_file
from .import_api import LOAD_FIELDS, Imported, imported
from .intent.complete import complete
from .pipeline import plan_intent
from .plan_of_words import experts_left_open, plan_of_words
from .stated_arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from .stated_load import HARDWARE_FIELDS, OF_LOAD, on_hardware, under_load

# A name that ends like this is a file's, whether there is one or not.
_FILES = (".json", ".yaml", ".yml", ".txt", ".md", ".sh", ".bash", ".sbatch", ".slurm", ".conf")
# Assumptions that are told elsewhere: relaxations have a row of their own, the load a line.
_TOLD_ELSEWHERE = ("relaxations", *LOAD_FIELDS)


class Words(Struct, frozen=True):
    """A parallel strategy in words, or launch commands, told apart from the path of a file."""

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
        >>> one = shardwright.plan("Llama-3.2-1B on 2 L4, 512 in / 32 out").plan
        >>> shardwright.compare(one, "DP2 of TP1").b.valid
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
    """`compare` under what was `said` already, and what is of `b` alone.

    Raises:
        InputError: as `compare`.
    """
    own, said = own_calibration(calibration), said or Said()
    shown = titles or (_title(a, "A"), _title(b, "B"))
    given = _given(a), _given(b)
    both = said, said if of_b.hardware is None else _with_hardware(said, of_b.hardware)
    _refuse_untaken(given, said, of_b.hardware)
    first, second = _resolved(given, both, shown)
    plans = tuple(one.plan if isinstance(one, Imported) else one for one in (first, second))
    prices = said.usd_per_gpu_hour, of_b.usd_per_gpu_hour or said.usd_per_gpu_hour
    found = compare_plans(*plans, titles=shown, calibration=own, usd_per_gpu_hour=prices)
    sides = {
        name: _with_caveats(getattr(found, name), one, source.text)
        for name, one, source in (("a", first, given[0]), ("b", second, given[1]))
        if isinstance(source, Words) and isinstance(one, Imported | Plan)
    }
    return concluded(found.model_copy(update=sides)) if sides else found


_Resolved = Document | Imported


def _given(one: Document | Words) -> Document | Words:
    """One side with words and commands told apart from documents, those in files too.

    Raises:
        InputError: a file cannot be read.
    """
    if isinstance(one, str) and is_words(one):
        return Words(one)
    if isinstance(one, Path) or (isinstance(one, str) and not is_json_text(one)):
        text = read_file(Path(one))
        return Words(text) if is_launch(text) else one
    return one


def _with_hardware(said: Said, hardware: Said) -> Said:
    """What is said, of the hardware that another says."""
    fields = {name: getattr(hardware, name) for name in HARDWARE_FIELDS}
    words = {name: text for name, text in said.words.items() if name not in HARDWARE_FIELDS} | hardware.words
    return said.model_copy(update={**fields, "words": words})


def _refuse_untaken(given: tuple[Document | Words, ...], said: Said, hardware_b: Said | None) -> None:
    """Refuse what is said and no side takes: a plan has all but a load, words beside it all but a load and hardware.

    Raises:
        InputError: something is.
    """
    opens = [_openness(one) for one in given]
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
    given: tuple[Document | Words, ...], said: tuple[Said, ...], titles: tuple[str, str]
) -> tuple[_Resolved, ...]:
    """Both sides as plans; what one leaves open is as in the other, that which says more by itself first.

    Raises:
        InputError: as `compare`.
    """
    found: dict[int, _Resolved] = {}
    order = sorted((0, 1), key=lambda place: _openness(given[place]))
    for place in order:
        one, under = given[place], found.get(order[0])
        plan = None if under is None else _plan_of(under, titles[order[0]])
        found[place] = _side(one, said[place], plan)
    return found[0], found[1]


def _openness(one: Document | Words) -> int:
    """How much a side leaves open: a plan nothing, commands hardware or load, a strategy the model too."""
    return 0 if not isinstance(one, Words) else 1 if is_launch(one.text) else 2


def _side(one: Document | Words, said: Said, under: Plan | None) -> _Resolved:
    if not isinstance(one, Words):
        return under_load(one, said)
    if is_launch(one.text):
        return imported(read_launch(one.text), said, under=under)
    return plan_of_words(one.text, _base_of(one.text, said) if under is None else on_hardware(under, said))


def _base_of(text: str, said: Said) -> Plan:
    """The plan for what was said, where both sides are strategies in words: its model, hardware and load are theirs.

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


def _plan_of(one: _Resolved, title: str) -> Plan:
    if isinstance(one, Imported):
        return one.plan
    read = read_document(one)
    if read.plan is None:
        raise InputError(f"{title}: not a plan document: {read.faults[0].message}")
    return read.plan


def _with_caveats(side: Side, one: Imported | Plan, text: str) -> Side:
    """The side of launch commands with what `import` says first; that of other words with what they leave open."""
    if isinstance(one, Imported):
        return side.model_copy(update={"caveats": tuple(_caveats(one)), "refused": bool(one.refused) or None})
    left_open = experts_left_open(text, one)
    return side if left_open is None else side.model_copy(update={"caveats": (left_open,)})


def _caveats(launched: Imported) -> Iterator[str]:
    yield from launched.caveats
    for one in launched.assumptions:
        if one.field not in _TOLD_ELSEWHERE:
            value = "" if one.value is None else f" {one.value}"
            yield f"Assumed: {one.field}{value} ({one.reason})"


def _title(source: Document | Words, otherwise: str) -> str:
    if isinstance(source, Words) or (isinstance(source, str) and is_words(source)):
        return source.text if isinstance(source, Words) else source
    if isinstance(source, Path) or (isinstance(source, str) and not is_json_text(source)):
        return shown_path(Path(source))
    return otherwise


def is_words(text: str) -> bool:
    """Whether `text` is a strategy in words or a command line: neither JSON nor the path of a file."""
    if is_json_text(text) or (text.lower().endswith(_FILES) and " " not in text.strip()):
        return False
    return not is_there(text, or_no_file=True)
