"""Profiles of kernel times: which fitted constants serve an accelerator and an engine.

Nothing is guessed silently: constants that were not measured on the same accelerator and in the same format say where
they come from (`Origin`). The formulas are in `kernel_times.py` and `forms/`.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from msgspec import Struct

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import find_accelerator
from ..errors import InputError
from .profile_file import (
    FRAMEWORKS,
    POOLED,
    STAND_INS,
    KernelEntry,
    KernelKind,
    ProfileFile,
    kernel_generation,
    link_relatives_of,
    read_profile_file,
    relatives_of,
)

# Kernels whose constants belong to the links, not to the chip.
_OVER_LINKS: tuple[KernelKind, ...] = ("collective", "exchange")
# On this generation vLLM, SGLang and TensorRT-LLM all take dense and grouped matmuls from the same libraries
# (FlashInfer, which has the kernels of TensorRT-LLM, and DeepGEMM).
_SHARING = "blackwell"
# The lower bound of `sustained_loss`, a matmul's loss at the power limit.
_NO_LOSS = 0.001


class Origin(Struct, frozen=True):
    """Where the constants behind a time come from: measured for the kernel on the same card, or not.

    `of`: what they were carried over from, in words.
    """

    kind: Literal["measured", "carried", "datasheet"]
    of: str = ""


MEASURED, DATASHEET = Origin("measured"), Origin("datasheet")


class Choice(Struct, frozen=True):
    """An entry, the accelerator of its file, and whether it is what was asked for."""

    entry: KernelEntry
    accelerator: str
    origin: Origin


class KernelProfile(Struct, frozen=True):
    """The entries that serve one accelerator and stack: its own, then those of its relatives, then the pooled ones.

    `shares_matmuls`: the stacks call the same matmul libraries, so the kernels timed in one are available in all.
    """

    accelerator: str
    framework: str | None
    files: tuple[ProfileFile, ...]
    link_files: tuple[ProfileFile, ...]
    shares_matmuls: bool = False

    def _files_for(self, kernel: KernelKind) -> tuple[ProfileFile, ...]:
        return self.link_files if kernel in _OVER_LINKS else self.files

    def choose(self, kernel: KernelKind, variant: str) -> Choice:
        """The best single entry for `kernel` in `variant`; see `series`."""
        return self.series(kernel, variant)[0]

    def alternatives(self, kernel: KernelKind, variant: str) -> tuple[Choice, ...]:
        """The best entry for a matmul, and those of the other stacks if the stacks share matmuls.

        Raises InputError: no profile has constants for it.
        """
        best = self.choose(kernel, variant)
        if not self.shares_matmuls:
            return (best,)
        # Only from the same file: the user's measurements take precedence over every table.
        same = next(file for file in self._files_for(kernel) if best.entry in file.entries)
        others = {
            entry.framework: entry
            for entry in same.entries
            if (entry.kernel, entry.variant) == (kernel, best.entry.variant) and entry.framework != best.entry.framework
        }
        return (
            best,
            *(Choice(other, best.accelerator, best.origin) for _, other in sorted(others.items())),
        )

    def series(self, kernel: KernelKind, variant: str) -> tuple[Choice, ...]:
        """All entries (one for each number of ranks, ascending) of the best stack for `kernel` in `variant`.

        Order: this accelerator, its relatives, the pooled profile; within each, the format itself before its stand-ins;
        within each, the stack asked for before the others (`FRAMEWORKS`). Raises InputError: no profile has constants
        for it.
        """
        for file in self._files_for(kernel):
            for name in (variant, *STAND_INS.get(variant, ())):
                candidates = [entry for entry in file.entries if entry.kernel == kernel and entry.variant == name]
                if best := self._best_stack(candidates):
                    origin = self._origin(best[0], file.accelerator, variant)
                    return tuple(Choice(entry, file.accelerator, origin) for entry in best)
        raise InputError(f"no profile has constants for {kernel} in {variant} (accelerator {self.accelerator})")

    def _best_stack(self, candidates: list[KernelEntry]) -> list[KernelEntry]:
        stacks = [entry.framework for entry in candidates]
        stack = next((name for name in (self.framework, *FRAMEWORKS, *stacks) if name in stacks), None)
        entries = [entry for entry in candidates if entry.framework == stack]
        return sorted(entries, key=lambda entry: (entry.nodes or 1, entry.ranks or 1))

    def _origin(self, entry: KernelEntry, accelerator: str, variant: str) -> Origin:
        if accelerator != self.accelerator:
            return Origin("carried", "the median of other cards" if accelerator == POOLED else accelerator)
        exact = entry.variant == variant and entry.rows > 0
        return MEASURED if exact else Origin("carried", "another format on this card")


def profile_of(accelerator: Accelerator, framework: str | None) -> KernelProfile:
    """The profile of `accelerator`, which need not be in the catalogue, served by `framework`."""
    shared = kernel_generation(accelerator) == _SHARING
    return KernelProfile(
        accelerator.id,
        framework,
        tuple(_powered_as(accelerator, file) for file in _read(accelerator.id, relatives_of(accelerator))),
        _read(accelerator.id, link_relatives_of(accelerator)),
        shared,
    )


def _read(accelerator_id: str, relatives: tuple[str, ...]) -> tuple[ProfileFile, ...]:
    names = dict.fromkeys((accelerator_id, *relatives, POOLED))
    return tuple(file for file in map(read_profile_file, names) if file is not None)


def _powered_as(accelerator: Accelerator, file: ProfileFile) -> ProfileFile:
    """A relative's file with its matmuls' loss at the power limit reduced to that of `accelerator`.

    A card with fewer FLOP/s per watt of its limit slows down by that much less. How much more a card with a tighter
    limit slows down was not measured, so it keeps its relative's loss.
    """
    rate, measured = _flops_s_per_watt(accelerator), _measured_on(file.accelerator)
    if file.accelerator == accelerator.id or rate is None or measured is None or rate >= measured:
        return file
    entries = tuple(_with_loss(entry, rate / measured) if entry.kernel == "gemm" else entry for entry in file.entries)
    return file.model_copy(update={"entries": entries})


def _with_loss(entry: KernelEntry, share: float) -> KernelEntry:
    """The entry of a matmul on a card with `share` of the FLOP/s per watt."""
    lost = (1.0 + entry.constants["sustained_loss"]) * share - 1.0
    return entry.model_copy(update={"constants": entry.constants | {"sustained_loss": max(_NO_LOSS, lost)}})


@cache
def _measured_on(accelerator_id: str) -> float | None:
    return None if accelerator_id == POOLED else _flops_s_per_watt(find_accelerator(accelerator_id))


def _flops_s_per_watt(accelerator: Accelerator) -> float | None:
    """Dense 16-bit peak over the board's power limit, in TFLOP/s per watt; `None` unless both are known."""
    peaks, watts = accelerator.dense_peak_tflops, accelerator.tdp_w
    peak = peaks.bf16 or peaks.fp16
    return peak / watts if peak and watts else None
