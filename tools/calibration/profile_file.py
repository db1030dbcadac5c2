"""The data files of kernel times, and the order of those that stand in for missing ones.

A file has the fitted constants of one accelerator: an entry for each kernel, variant and stack, written by
`benchmarks/fit_kernels.py` from measured tables. The order of accelerators comes from their catalogue entries;
`profile.py` chooses along it and notes its choice.
"""

from __future__ import annotations

from datetime import date
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import all_accelerators, find_accelerator
from ..errors import InputError
from ..frozen import Frozen

KernelKind = Literal[
    "gemm", "attention_prefill", "attention_decode", "mla_prefill", "mla_decode",
    "grouped_gemm", "elementwise", "collective", "exchange",
]  # fmt: skip
Name = Annotated[str, Field(min_length=1, max_length=100)]
Percent = Annotated[float, Field(ge=0, le=1e6)]


class KernelEntry(Frozen):
    """Constants of one kernel as one stack runs it, with how well they predict shapes that were held back.

    `variant` is the format (GEMM, experts), the KV format (attention), the kind (element-wise) or the operation
    (collectives, exchange); `ranks` and `nodes` are those of a collective. Errors are absolute percentages.
    """

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

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Identifies the kernel that it has constants for: entries with equal keys replace each other."""
        return self.kernel, self.variant, self.ranks or 1, self.nodes or 1


class CarryCheck(Frozen):
    """How well constants of `source` predicted rows measured on this accelerator: the band of a carry-over."""

    kernel: KernelKind
    variant: Name
    framework: Name
    source: Name
    rows: Annotated[int, Field(ge=1)]
    median_pct: Percent
    p90_pct: Percent


class ProfileFile(Frozen):
    """One data file: all entries of one accelerator (or of none: `pooled`)."""

    accelerator: Name
    entries: tuple[KernelEntry, ...] = ()
    carry_checks: tuple[CarryCheck, ...] = ()

    def over(self, other: ProfileFile | None) -> ProfileFile:
        """This file, with the entries of `other` whose keys it lacks appended."""
        keys = {entry.key for entry in self.entries}
        added = () if other is None else (entry for entry in other.entries if entry.key not in keys)
        return self.model_copy(update={"entries": (*self.entries, *added)})


_PACKAGE = __name__.rpartition(".")[0]


def _folder() -> Traversable:
    return files(_PACKAGE).joinpath("data", "kernels")


@lru_cache(maxsize=256)
def read_profile_file(accelerator_id: str) -> ProfileFile | None:
    """The data file that ships for `accelerator_id`; `None` if absent.

    Raises InputError: the file does not have the format.
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
    """The names of accelerators with a data file, and the pooled one."""
    return tuple(sorted(_shipped()))


@cache
def _shipped() -> frozenset[str]:
    """Names with a file: requested names are looked up here, so that no unchecked name becomes a path."""
    folder = _folder()
    if not folder.is_dir():
        return frozenset()
    return frozenset(path.name.removesuffix(".json") for path in folder.iterdir() if path.name.endswith(".json"))


# The profile without a chip: medians over those that were measured.
POOLED = "pooled"
# Stacks whose constants stand in for a stack without its own, best first: vLLM's tables are the most complete, and
# NVIDIA's GEMM and attention kernels differ least from them.
FRAMEWORKS: tuple[str, ...] = ("vllm", "trtllm", "sglang", "deepep", "deepgemm", "nccl", "vidur", POOLED)
# Formats (variants) whose constants stand in for a format that no table covers, nearest first. Constants are shares of
# a format's own peak, so bytes and FLOP/s remain those of the requested format.
STAND_INS: dict[str, tuple[str, ...]] = {
    "fp32": ("bf16",),
    "fp16": ("bf16",),
    "bf16": ("fp16",),
    "fp8": ("fp8_block", "mxfp8"),
    "fp8_block": ("fp8", "mxfp8"),
    "mxfp8": ("fp8_block", "fp8"),
    "int8": ("sq", "fp8", "fp8_block"),
    "int4": ("sq", "fp8", "fp8_block"),
    "fp4": ("nvfp4", "mxfp4", "fp8", "fp8_block"),
    "mxfp4": ("nvfp4", "fp8", "fp8_block"),
    "nvfp4": ("mxfp4", "fp8", "fp8_block"),
    "mxfp4_wo": ("int4_wo", "int8_wo", "bf16"),
    "int4_wo": ("mxfp4_wo", "int8_wo", "bf16"),
    "int8_wo": ("int4_wo", "mxfp4_wo", "bf16"),
    "send_recv": ("all_to_all",),
    "send_recv_staged": ("all_to_all_staged",),
    "routing": ("norm",),
    "rope": ("activation",),
}


def relatives_of(accelerator: Accelerator) -> tuple[str, ...]:
    """Accelerators whose constants stand in for those of `accelerator`, nearest first, each once, without itself.

    The entry names them (`kernels_like`); otherwise it is the first of the same architecture in the catalogue. Raises
    UnknownNameError: the entry, which may be a user's, names one that the catalogue does not have.
    """
    known = {part.id: part for part in all_accelerators()}
    order = [find_accelerator(name).id for name in accelerator.kernels_like]
    if not order and accelerator.architecture:
        alike = (part.id for part in known.values() if _alike(part, accelerator))
        order = [name for name in (next(alike, None),) if name is not None]
    # A relative's relatives come after it: a B300 has a B200 and, through it, an H200.
    for name in order:
        order.extend(relative for relative in known[name].kernels_like if relative not in order)
    return tuple(name for name in order if name != accelerator.id)


def kernel_generation(accelerator: Accelerator) -> str:
    """The generation whose kernels serve `accelerator`: its own, or its nearest relative's if its own has no data.

    Raises UnknownNameError: as `relatives_of`.
    """
    measured = {part.generation for part in all_accelerators() if part.id in shipped_profiles()}
    near = (find_accelerator(name).generation for name in relatives_of(accelerator))
    order = (accelerator.generation, *near)
    return next((generation for generation in order if generation in measured), accelerator.generation)


def _alike(first: Accelerator, second: Accelerator) -> bool:
    return first.id != second.id and (first.architecture or "").lower() == (second.architecture or "").lower()


def link_relatives_of(accelerator: Accelerator) -> tuple[str, ...]:
    """As `relatives_of`, for kernels over links: accelerators with PCIe links like its own come first."""
    if accelerator.scale_up_domain_accelerators != 1:
        return relatives_of(accelerator)
    alike = (part.id for part in all_accelerators() if part.scale_up_domain_accelerators == 1)
    return tuple(dict.fromkeys((*(name for name in alike if name != accelerator.id), *relatives_of(accelerator))))
