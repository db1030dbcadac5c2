"""Who proposes in an evaluation. A solver gives a client for a case; the loop, the tools and the judge are shared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ...tools.calibration.custom import CustomCalibration
from ..loop.agent import AgentOptions
from ..loop.budget import Limits
from ..model.client import ModelClient
from .asked import Asked

# A solver that is no live model is never cut off by a clock: its answers are to be the same on any machine.
UNHURRIED = AgentOptions(limits=Limits(seconds=86_400), knowledge_tokens=0)


class Solver(Protocol):
    """Someone who proposes.

    `name` says who, for reports; `is_deterministic` that it answers a case in the same way each time. The built-in
    proposer's own search, on which every run can fall back, is done with `calibration` where there is one.
    """

    @property
    def name(self) -> str: ...
    @property
    def is_deterministic(self) -> bool: ...
    @property
    def options(self) -> AgentOptions: ...
    @property
    def calibration(self) -> CustomCalibration | None: ...
    def client(self, found: Asked, epoch: int) -> ModelClient | None:
        """Who proposes for this case; `None`: the built-in proposer."""
        ...


@dataclass(frozen=True)
class BuiltIn:
    """The built-in proposer; with a `calibration` it searches by those constants, and is judged by what ships."""

    calibration: CustomCalibration | None = None
    options: AgentOptions = field(default=UNHURRIED)
    is_deterministic: bool = True

    @property
    def name(self) -> str:
        """`builtin`, and by which constants."""
        return "builtin" if self.calibration is None else f"builtin by {self.calibration.name}"

    def client(self, found: Asked, epoch: int) -> ModelClient | None:
        """Nobody else proposes."""
        return None
