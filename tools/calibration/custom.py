"""A user's own calibration: constants fitted to the user's measurements, read from a file and laid over what ships.

The file is JSON from `calibrate` or from anywhere: its size is bounded, it is checked against its schema, and every
constant against the bounds of its form. Shipped constants stay where it has none. It changes times, never a rule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from msgspec.structs import replace
from pydantic import Field, ValidationError

from ..catalog.accelerators import Accelerator
from ..engines.names import ENGINES, engine_name
from ..errors import InputError, expect
from ..frozen import Frozen
from ..input.files import read_bounded, shown_path
from ..input.strict_json import parse
from ..input.strict_values import JsonError
from .engine_profile import EngineEntry, EngineProfile, accelerator_class
from .forms.attention import DecodeConstants, PrefillConstants
from .forms.collective import CollectiveConstants
from .forms.constant import ElementwiseConstants, read_constants
from .forms.exchange import ExchangeConstants
from .forms.gemm import GemmConstants, GroupedGemmConstants
from .forms.mla import MlaDecodeConstants, MlaPrefillConstants
from .profile import KernelProfile
from .profile_file import KernelKind, ProfileFile

MAX_FILE_BYTES = 4 << 20
_MOST_ENTRIES = 2000

_FORMS: Mapping[KernelKind, type[Any]] = {
    "gemm": GemmConstants,
    "attention_prefill": PrefillConstants,
    "attention_decode": DecodeConstants,
    "mla_prefill": MlaPrefillConstants,
    "mla_decode": MlaDecodeConstants,
    "grouped_gemm": GroupedGemmConstants,
    "elementwise": ElementwiseConstants,
    "collective": CollectiveConstants,
    "exchange": ExchangeConstants,
}


class CustomCalibration(Frozen):
    """A user's own constants: of kernels, by accelerator, and of serving engines.

    `name` is how estimates call it; `made_from` says what was measured.
    """

    format: Literal["shardwright-calibration/1"] = "shardwright-calibration/1"
    name: Annotated[str, Field(min_length=1, max_length=100)]
    made_from: Annotated[str, Field(max_length=500)] = ""
    kernels: Annotated[tuple[ProfileFile, ...], Field(max_length=200)] = ()
    engines: Annotated[tuple[EngineEntry, ...], Field(max_length=200)] = ()

    @cached_property
    def digest(self) -> str:
        """What tells two calibrations apart."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def kernel_file(self, accelerator_id: str) -> ProfileFile | None:
        """The kernels that were measured on an accelerator; `None`: none."""
        return next((file for file in self.kernels if file.accelerator == accelerator_id), None)

    def laid_over(self, profile: KernelProfile) -> KernelProfile:
        """`profile` with the own entries in place of those that ship for the same kernel, format and ranks."""
        custom = self.kernel_file(profile.accelerator)
        if custom is None:
            return profile
        return replace(profile, files=_merged(custom, profile.files), link_files=_merged(custom, profile.link_files))

    def engine(self, engine: str | None, version: str | None, accelerator: Accelerator) -> EngineProfile | None:
        """The own entry for an engine on an accelerator; `None` where it has none.

        An engine that nobody names is the one that was measured, where it was only one.
        """
        class_ = accelerator_class(accelerator)
        entries = [entry for entry in self.engines if entry.accelerator_class == class_]
        if engine:
            name = engine_name(engine)
            generation = None if name is None else ENGINES[name].generation(version)
            entries = [entry for entry in entries if (entry.engine, entry.generation) == (name, generation)]
        return EngineProfile(entry=entries[0]) if len(entries) == 1 else None

    def covers(self, engine: str | None, version: str | None, accelerator: Accelerator) -> tuple[str, ...]:
        """What of a deployment it has constants for, in words; empty: nothing."""
        covered: list[str] = []
        file = self.kernel_file(accelerator.id)
        if file is not None:
            names = dict.fromkeys(f"{entry.kernel} {entry.variant}" for entry in file.entries)
            covered.append(f"kernels of {accelerator.id} ({', '.join(names)})")
        profile = self.engine(engine, version, accelerator)
        if profile is not None:
            covered.append(profile.name)
        return tuple(covered)


def _merged(custom: ProfileFile, files: tuple[ProfileFile, ...]) -> tuple[ProfileFile, ...]:
    """`files` with the user's entries over those that ship for the same accelerator, before the other files."""
    shipped = next((file for file in files if file.accelerator == custom.accelerator), None)
    return (custom.over(shipped), *(file for file in files if file.accelerator != custom.accelerator))


def read_calibration(path: Path) -> CustomCalibration:
    """The calibration in the file at `path`.

    Raises InputError: it cannot be read, is no calibration, or has a constant out of its bounds.
    """
    where = shown_path(path)
    return parse_calibration(
        read_bounded(path, MAX_FILE_BYTES, where, "; a calibration has a few hundred constants"), where
    )


def own_calibration(calibration: object) -> CustomCalibration | None:
    """The user's calibration, given as such or as the path of its file; `None` for `None`.

    Raises InputError: as `read_calibration`, or it is none of these.
    """
    if calibration is None or isinstance(calibration, CustomCalibration):
        return calibration
    expect(calibration, (str, Path), "calibration", "the path of its file is expected")
    return read_calibration(Path(cast("str | Path", calibration)))


def parse_calibration(data: bytes | str, where: str) -> CustomCalibration:
    """The calibration in JSON text; `where` names it in errors.

    Raises InputError: as `read_calibration`.
    """
    try:
        calibration = CustomCalibration.model_validate(parse(data, where))
    except JsonError as error:
        raise InputError(f"{error}: no calibration that `shardwright calibrate` wrote") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(str(part) for part in first["loc"])
        reason = f"{place}: {first['msg']}" if place else first["msg"]
        # A key from the file may be any text.
        shown = "".join(letter if letter.isprintable() else "?" for letter in reason[:300])
        raise InputError(f"{where}: no calibration that `shardwright calibrate` wrote: {shown}") from None
    _check(calibration, where)
    return calibration


def _check(custom: CustomCalibration, where: str) -> None:
    entries = [(file, entry) for file in custom.kernels for entry in file.entries]
    if len(entries) > _MOST_ENTRIES:
        raise InputError(f"{where}: more than {_MOST_ENTRIES:,} entries")
    for names, role in (
        ([file.accelerator for file in custom.kernels], "accelerator"),
        ([(engine.engine, engine.generation, engine.accelerator_class) for engine in custom.engines], "engine entry"),
    ):
        if len(set(names)) < len(names):
            raise InputError(f"{where}: the same {role} twice")
    for file, entry in entries:
        try:
            read_constants(_FORMS[entry.kernel], entry.constants)
        except InputError as error:
            raise InputError(f"{where}: {file.accelerator}: {entry.kernel} {entry.variant}: {error}") from None
    for engine in custom.engines:
        if engine_name(engine.engine) != engine.engine:
            raise InputError(f"{where}: engine {engine.engine[:40]!r} is none that is known")
    words = [custom.name, *(file.accelerator for file in custom.kernels)]
    words += [word for _, entry in entries for word in (entry.variant, entry.framework, entry.note or "")]
    words += [word for engine in custom.engines for word in (engine.generation, engine.accelerator_class)]
    if any(not word.isprintable() or len(word) > 500 for word in words):
        raise InputError(f"{where}: a name holds characters that cannot be printed, or has more than 500")
    if not custom.kernels and not custom.engines:
        raise InputError(f"{where}: it has no constants")
