"""Keys of finished cases: whether an earlier result holds for a case that is asked now.

It holds if the case, the epoch, the solver with its options, and this package are the same. Where files lie, or how
fast the machine is, does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct
from pydantic import BaseModel

from ...tools.errors import InputError
from ..loop.agent_options import AgentOptions
from .case import Case
from .solver import Solver

# Options without effect on answers: where a record of them lies.
_WITHOUT_EFFECT = frozenset({"transcript"})
# The parts of the package that results depend on.
_PARTS = ("agent", "knowledge", "prompts", "tools")
_ENDINGS = frozenset({".py", ".json", ".yaml", ".md"})


def key_of(case: Case, epoch: int, solver: Solver) -> str:
    """SHA-256 (hex) of a case for `solver` in an epoch, by this package as it is.

    Raises:
        InputError: the solver has an option that is no plain value.
    """
    return _hashed([case.digest, epoch, solver_digest(solver), package_digest()])


def solver_digest(solver: Solver) -> str:
    """SHA-256 (hex) of a solver and its options; equal for solvers whose results are interchangeable.

    A solver's `digest` identifies further inputs (files that it plays); for any other record (a struct or a dataclass)
    all fields count, stated or default.

    Raises:
        InputError: an option is no plain value, so that it cannot be compared.
    """
    calibration = solver.calibration
    identity = {
        "kind": type(solver).__qualname__,
        "name": solver.name,
        "options": options_said(solver.options),
        "calibration": None if calibration is None else calibration.digest,
        "own": _further_inputs(solver),
    }
    return _hashed(identity)


def _further_inputs(solver: Solver) -> Any:
    """A solver's digest, or its fields beside those of every solver."""
    digest = getattr(solver, "digest", None)
    if isinstance(digest, str):
        return digest
    names = _fields(solver)
    if names is None:
        return None
    further = [name for name in names if name not in ("options", "calibration")]
    return {name: _plain(getattr(solver, name), f"solver {solver.name}: {name}") for name in further}


def options_said(options: AgentOptions) -> dict[str, Any]:
    """The options that results depend on, defaults included, as plain values."""
    return {
        name: _plain(getattr(options, name), name) for name in options.__struct_fields__ if name not in _WITHOUT_EFFECT
    }


@cache
def package_digest() -> str:
    """SHA-256 (hex) of this package as it is: its version, and every file that results depend on."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(version("shardwright").encode())
    for part in _PARTS:
        for path in sorted((root / part).rglob("*")):
            # Cases have digests of their own: a new one leaves the results of the others.
            if path.suffix in _ENDINGS and path.parent != Path(__file__).parent / "cases":
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _fields(value: object) -> tuple[str, ...] | None:
    """Field names of a record, ours or a user's dataclass; `None` for other values."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else None


def _plain(value: Any, where: str) -> Any:
    """`value` as JSON data.

    Raises:
        InputError: it is no plain value.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if (names := _fields(value)) is not None:
        return {name: _plain(getattr(value, name), f"{where}/{name}") for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, f"{where}/{name}") for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, where) for inner in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    kind = type(value).__name__
    raise InputError(f"{where}: {kind} cannot be compared with that of an earlier run; run it without a journal")


def _hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
