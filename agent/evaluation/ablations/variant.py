"""One way of running a solver, and an ablation as a list of them. The first is what the others are compared with."""

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

# A solver and the results of the first variant (none while that is run) → the solver of this variant.
Vary = Callable[[Solver, tuple[CaseResult, ...]], Solver]


class Variant(Struct, frozen=True):
    """A named way of running a solver."""

    name: str
    vary: Vary


class Ablation(Struct, frozen=True):
    """What is varied, and why one would want to know."""

    name: str
    question: str
    variants: tuple[Variant, ...]


class OfAnother(Struct, frozen=True):
    """What a solver that runs another one has of that: whom it asks, and how."""

    inner: Solver

    @property
    def is_deterministic(self) -> bool:
        """As the solver is."""
        return self.inner.is_deterministic

    @property
    def calibration(self) -> CustomCalibration | None:
        """That of the solver."""
        return self.inner.calibration

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """Whom the solver asks."""
        return self.inner.client(found, epoch)


class Varied(OfAnother, frozen=True):
    """A solver that is run with other options than its own."""

    options: AgentOptions
    label: str

    @property
    def name(self) -> str:
        """The solver's, and what is different."""
        return f"{self.inner.name} ({self.label})"

    @property
    def digest(self) -> str:
        """What its answers come of: the solver, and what is varied, which its options say."""
        return solver_digest(self.inner)

    def finish(self, found: PosedCase, epoch: int, client: ModelClient | None, solution: Solution) -> None:
        """As the solver does.

        Raises:
            ShardwrightError: as the solver's.
        """
        if isinstance(self.inner, Finishing):
            self.inner.finish(found, epoch, client, solution)


def with_options(label: str, **changes: Any) -> Variant:
    """The variant of the options in `changes`, the others being the solver's own."""
    return Variant(label, lambda solver, first: Varied(solver, replace(solver.options, **changes), label))
