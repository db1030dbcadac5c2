"""Solvers by name, as a command line names them. What a solver needs is imported when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError, UnknownNameError
from ...loop.agent_options import AgentOptions
from ..solver import HELD, UNHURRIED, Solver

if TYPE_CHECKING:
    from ...model.settings import EndpointFlags


@dataclass(frozen=True)
class SolverSpec:
    """Who is to propose: `name` is one of `SOLVERS`, those with a place as `name:PLACE`.

    `options` are the agent's where they are not the solver's own; `flags`, `record` (the folder that exchanges are kept
    in) and `dataset_hash` are a live model's; `calibration` is the built-in proposer's own.
    """

    name: str
    options: AgentOptions | None = None
    flags: EndpointFlags | None = field(default=None, repr=False)
    record: Path | None = None
    dataset_hash: str = ""
    calibration: CustomCalibration | None = None


def solver_named(spec: SolverSpec) -> Solver:
    """The solver of `spec`.

    Raises:
        InputError: there is none of that name, its file, folder or endpoint cannot be used, or it takes no such option.
    """
    name, _, place = spec.name.partition(":")
    make = _MAKERS.get(name)
    if make is None:
        raise UnknownNameError("solver", spec.name[:100], tuple(difflib.get_close_matches(name, _MAKERS, 3)) or SOLVERS)
    if (name in _WITH_PLACE) != bool(place):
        needs = (
            f"needs its {_WITH_PLACE[name]}: {name}:{_WITH_PLACE[name]}" if name in _WITH_PLACE else "takes no place"
        )
        raise InputError(f"solver {spec.name[:100]!r}: {name} {needs}")
    if spec.record is not None and name != "live":
        raise InputError(f"only a live model is recorded; {name} asks none")
    if spec.calibration is not None and name != "builtin":
        raise InputError(f"only the built-in proposer plans by a calibration of its own; {name} does not")
    return make(spec, Path(place))


def _builtin(spec: SolverSpec, place: Path) -> Solver:
    from .builtin import BuiltIn

    return BuiltIn(spec.calibration, _options(spec))


def _golden(spec: SolverSpec, place: Path) -> Solver:
    from .golden import Golden

    if spec.options is not None:
        raise InputError("a golden is submitted as it is: it takes no options of the agent")
    return Golden()


def _careless(spec: SolverSpec, place: Path) -> Solver:
    from .careless import Careless

    return Careless(_options(spec))


def _stubborn(spec: SolverSpec, place: Path) -> Solver:
    from .careless import Stubborn

    return Stubborn(_options(spec))


def _student(spec: SolverSpec, place: Path) -> Solver:
    from .student import Student

    return Student(_options(spec))


def _obedient(spec: SolverSpec, place: Path) -> Solver:
    from .obedient import Obedient

    return Obedient(options=_options(spec, reference=True))


def _opener(spec: SolverSpec, place: Path) -> Solver:
    from .opener import Opener

    return Opener(_options(spec, reference=True))


def _supposer(spec: SolverSpec, place: Path) -> Solver:
    from .supposer import Supposer

    return Supposer(_options(spec, reference=True))


def _unconnected(spec: SolverSpec, place: Path) -> Solver:
    from .unconnected import Unconnected

    return Unconnected(_options(spec))


def _scripted(spec: SolverSpec, place: Path) -> Solver:
    from .scripted import Scripted

    return Scripted.of_file(place, _options(spec))


def _cassette(spec: SolverSpec, place: Path) -> Solver:
    from .cassette import Played

    if spec.options is not None:
        raise InputError("a recording is played as it was made: it takes no options of the agent")
    return Played.of(place)


def _live(spec: SolverSpec, place: Path) -> Solver:
    from .live import Live

    live = Live.of(spec.flags, spec.options)
    if spec.record is None:
        return live
    from .recorder import Recorder

    return Recorder.into(spec.record, live, spec.dataset_hash)


def _options(spec: SolverSpec, *, reference: bool = False) -> AgentOptions:
    """The options that were given, if any were, with what makes them those of a solver that is no live model."""
    if spec.options is None:
        return HELD if reference else UNHURRIED
    limits = spec.options.limits.model_copy(update={"seconds": UNHURRIED.limits.seconds})
    return replace(spec.options, limits=limits, reference=reference)


_MAKERS: dict[str, Callable[[SolverSpec, Path], Solver]] = {
    "builtin": _builtin,
    "golden": _golden,
    "careless": _careless,
    "stubborn": _stubborn,
    "student": _student,
    "obedient": _obedient,
    "opener": _opener,
    "supposer": _supposer,
    "unconnected": _unconnected,
    "scripted": _scripted,
    "cassette": _cassette,
    "live": _live,
}
_WITH_PLACE = {"scripted": "FILE", "cassette": "FOLDER"}
# As a person writes them.
SOLVERS = tuple(f"{name}:{_WITH_PLACE[name]}" if name in _WITH_PLACE else name for name in _MAKERS)
