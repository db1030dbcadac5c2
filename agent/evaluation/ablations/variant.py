"""A way of running a solver, and an ablation as a list of them; the first is what the others are compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ....tools.calibration.custom import CustomCalibration
from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ..keys import solver_digest
from ..marks import Solution
from ..posed import PosedCase
from ..results import CaseResult
from ..solver import Finishing, Solver

# A solver and the results of the first variant (none while that runs) → the solver of this variant.
Vary = Callable[[Solver, tuple[CaseResult, ...]], Solver]


class Variant(Struct, frozen=True):
    """A named way of running a solver."""

    name: str
    vary: Vary


class Ablation(Struct, frozen=True):
    """What is varied, and the question that it answers."""

    name: str
    question: str
    variants: tuple[Variant, ...]


class OfAnother(Struct, frozen=True):
    """A solver that runs another one: with its client, its options and its calibration."""

    inner: Solver

    @property
    def is_deterministic(self) -> bool:
        """As the inner solver."""
        return self.inner.is_deterministic

    @property
    def calibration(self) -> CustomCalibration | None:
        """The inner solver's calibration."""
        return self.inner.calibration

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """The inner solver's client."""
        return self.inner.client(found, epoch)


class Varied(OfAnother, frozen=True):
    """A solver run with other options than its own."""

    options: AgentOptions
    label: str

    @property
    def name(self) -> str:
        """The solver's name, and the difference."""
        return f"{self.inner.name} ({self.label})"

    @property
    def digest(self) -> str:
        """Identifies the results: the inner solver, and its varied options."""
        return solver_digest(self.inner)

    def finish(self, found: PosedCase, epoch: int, client: ModelClient | None, solution: Solution) -> None:
        """As the inner solver.

        Raises:
            ShardwrightError: as the inner solver.
        """
        if isinstance(self.inner, Finishing):
            self.inner.finish(found, epoch, client, solution)


def with_options(label: str, **changes: Any) -> Variant:
    """The variant with the options in `changes`, and the solver's own otherwise."""
    return Variant(label, lambda solver, first: Varied(solver, replace(solver.options, **changes), label))
