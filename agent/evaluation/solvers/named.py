"""Solvers by name, for the command line. Modules with HTTP are imported on use."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ....tools.calibration.custom import CustomCalibration
from ....tools.errors import InputError, UnknownNameError
from ...loop.agent_options import AgentOptions
from ..solver import UNHURRIED, Solver
from .builtin import BuiltIn
from .careless import Careless, Stubborn
from .golden import Golden
from .obedient import Obedient
from .opener import Opener
from .scripted import Scripted
from .student import Student
from .supposer import Supposer
from .unconnected import Unconnected

if TYPE_CHECKING:
    from ...model.settings import EndpointFlags


class SolverSpec(Struct, frozen=True):
    """The solver to use: `name` is one of `SOLVERS`, with a place as `name:PLACE`.

    `options` replace the solver's own; `flags`, `record` (the folder of recorded exchanges) and `dataset_hash` are for
    a live model; `calibration` is for the built-in proposer.
    """

    name: str
    options: AgentOptions | None = None
    flags: EndpointFlags | None = None
    record: Path | None = None
    dataset_hash: str = ""
    calibration: CustomCalibration | None = None


def solver_named(spec: SolverSpec) -> Solver:
    """The solver of `spec`.

    Raises:
        InputError: no such solver, its file, folder or endpoint cannot be used, or it takes no such option.
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


def _with_pace(defaults: AgentOptions, spec: SolverSpec) -> AgentOptions:
    """The given options with the pace and reference of a solver that is no live model; its own if none are given."""
    if spec.options is None:
        return defaults
    limits = spec.options.limits.model_copy(update={"seconds": defaults.limits.seconds})
    return replace(spec.options, limits=limits, reference=defaults.reference)


def _builtin(spec: SolverSpec, place: Path) -> Solver:
    return BuiltIn(spec.calibration, _with_pace(UNHURRIED, spec))


def _golden(spec: SolverSpec, place: Path) -> Solver:
    if spec.options is not None:
        raise InputError("a golden is submitted as it is: it takes no options of the agent")
    return Golden()


def _persona(kind: Callable[..., Solver], spec: SolverSpec, place: Path) -> Solver:
    return kind(_with_pace(kind().options, spec))


def _scripted(spec: SolverSpec, place: Path) -> Solver:
    return Scripted.of_file(place, _with_pace(UNHURRIED, spec))


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


_PERSONAS = (Careless, Stubborn, Student, Obedient, Opener, Supposer, Unconnected)
_MAKERS: dict[str, Callable[[SolverSpec, Path], Solver]] = {
    "builtin": _builtin,
    "golden": _golden,
    **{kind().name: partial(_persona, kind) for kind in _PERSONAS},
    "scripted": _scripted,
    "cassette": _cassette,
    "live": _live,
}
_WITH_PLACE = {"scripted": "FILE", "cassette": "FOLDER"}
# In the form that people type.
SOLVERS = tuple(f"{name}:{_WITH_PLACE[name]}" if name in _WITH_PLACE else name for name in _MAKERS)
