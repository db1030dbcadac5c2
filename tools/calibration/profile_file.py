"""The data files of kernel times: fitted constants of one accelerator, one entry for each kernel, variant and stack.

They are written by `benchmarks/fit_kernels.py` from measured tables. It knows no formula and chooses nothing.
"""

from __future__ import annotations

from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError

KernelKind = Literal[
    "gemm", "attention_prefill", "attention_decode", "mla_prefill", "mla_decode",
    "grouped_gemm", "elementwise", "collective", "exchange",
]  # fmt: skip
Name = Annotated[str, Field(min_length=1, max_length=100)]
Percent = Annotated[float, Field(ge=0, le=1e6)]


class KernelEntry(BaseModel):
    """Constants of one kernel as one stack runs it, with how well they predict shapes that were held back.

    `variant` is the format (GEMM, experts), the KV format (attention), the kind (element-wise) or the operation
    (collectives, exchange); `ranks` and `nodes` are those of a collective. Errors are absolute percentages.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kernel: KernelKind
    variant: Name
    framework: Name
    version: Annotated[str, Field(max_length=100)] = ""
    ranks: Annotated[int, Field(ge=1, le=10**6)] | None = None
    nodes: Annotated[int, Field(ge=1, le=10**6)] | None = None
    constants: dict[Name, float]
    rows: Annotated[int, Field(ge=0)]
    held_back_rows: Annotated[int, Field(ge=0)] = 0
    held_back_median_pct: Percent | None = None
    held_back_p90_pct: Percent | None = None
    source: Annotated[str, Field(max_length=300)]
    licence: Annotated[str, Field(max_length=60)]
    date: date
    note: Annotated[str, Field(max_length=500)] | None = None


class CarryCheck(BaseModel):
    """How well constants of `source` predicted rows measured on this accelerator: the band of a carry-over."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kernel: KernelKind
    variant: Name
    framework: Name
    source: Name
    rows: Annotated[int, Field(ge=1)]
    median_pct: Percent
    p90_pct: Percent


class ProfileFile(BaseModel):
    """One data file: all entries of one accelerator (or of none: `pooled`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    accelerator: Name
    entries: tuple[KernelEntry, ...] = ()
    carry_checks: tuple[CarryCheck, ...] = ()


_PACKAGE = __name__.rpartition(".")[0]


def _folder() -> Traversable:
    return files(_PACKAGE).joinpath("data", "kernels")


@lru_cache(maxsize=256)
def read_profile_file(accelerator_id: str) -> ProfileFile | None:
    """The data file that ships for `accelerator_id`; None where there is none.

    Raises:
        InputError: the file is not of the format.
    """
    if accelerator_id not in _shipped():
        return None
    path = _folder().joinpath(f"{accelerator_id}.json")
    try:
        return ProfileFile.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"kernel profile {accelerator_id}: {place}: {first['msg']}") from None


def shipped_profiles() -> tuple[str, ...]:
    """The accelerators with a data file of their own, and the pooled one."""
    return tuple(sorted(_shipped()))


@cache
def _shipped() -> frozenset[str]:
    """Names with a file: what a caller asks for is looked up here, never joined to a path unseen."""
    folder = _folder()
    if not folder.is_dir():
        return frozenset()
    return frozenset(one.name.removesuffix(".json") for one in folder.iterdir() if one.name.endswith(".json"))
