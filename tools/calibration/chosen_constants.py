"""Chooses a kernel form's constants from a profile: the best set, the sets of several stacks, or between sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from math import log2
from typing import Any, Literal, TypeVar

from msgspec import Struct, field

from .forms.constant import read_constants
from .profile import KernelProfile, Origin
from .profile_file import KernelKind

Constants = TypeVar("Constants")
Chosen = TypeVar("Chosen")


class ChosenConstants(Struct):
    """Constants out of `profile`, each chosen once.

    All methods raise InputError: the profile has no constants for the kernel.
    """

    profile: KernelProfile
    _chosen: dict[tuple[object, ...], Any] = field(default_factory=dict[tuple[object, ...], Any])

    def single(self, kernel: KernelKind, variant: str, kind: type[Constants]) -> tuple[Constants, Origin]:
        """The best single set of constants, and its origin."""

        def choose() -> tuple[Constants, Origin]:
            choice = self.profile.choose(kernel, variant)
            return read_constants(kind, choice.entry.constants), choice.origin

        return self._cached((kernel, variant), choose)

    def alternatives(
        self, kernel: KernelKind, variant: str, kind: type[Constants]
    ) -> tuple[tuple[Constants, ...], Origin]:
        """The sets of constants of all stacks whose kernel the engine may use, and their common origin."""

        def choose() -> tuple[tuple[Constants, ...], Origin]:
            choices = self.profile.alternatives(kernel, variant)
            return tuple(read_constants(kind, choice.entry.constants) for choice in choices), choices[0].origin

        return self._cached((kernel, variant, "alternatives"), choose)

    def between(
        self, kernel: KernelKind, variant: str, kind: type[Constants], axis: Literal["ranks", "nodes"], size: float
    ) -> tuple[Constants, Origin]:
        """Constants for a group of `size`, interpolated linearly in log2 of the measured sizes, and their origin."""

        def choose() -> tuple[Constants, Origin]:
            series = self.profile.series(kernel, variant)
            sizes = {
                float(getattr(choice.entry, axis) or 1): read_constants(kind, choice.entry.constants)
                for choice in series
            }
            return _at_size(sizes, size), series[0].origin

        return self._cached((kernel, variant, axis, size), choose)

    def _cached(self, key: tuple[object, ...], choose: Callable[[], Chosen]) -> Chosen:
        if key not in self._chosen:
            self._chosen[key] = choose()
        return self._chosen[key]


def _at_size(sizes: dict[float, Constants], size: float) -> Constants:
    """Constants at `size`, interpolated; beyond the last size latencies grow on, shares stay constant."""
    order = sorted(sizes)
    if size <= order[0] or len(order) == 1:
        return sizes[order[0]]
    above = next((candidate for candidate in order if candidate >= size), order[-1])
    below = order[order.index(above) - 1]
    first, second = sizes[below], sizes[above]
    weight = (log2(size) - log2(below)) / (log2(above) - log2(below))
    return _blend(first, second, weight)


def _blend(first: Constants, second: Constants, weight: float) -> Constants:
    values: dict[str, float] = {}
    for constant in fields(first):  # type: ignore[arg-type]  # every set of constants is a dataclass
        start, end = getattr(first, constant.name), getattr(second, constant.name)
        # A share of a link that fell between two sizes does not go on falling.
        grows = constant.name == "alpha_us" and end > start
        values[constant.name] = start + (end - start) * (weight if grows else min(weight, 1.0))
    return type(first)(**values)
