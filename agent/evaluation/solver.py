"""Solvers: who proposes in an evaluation. A solver gives a client for a case; the loop, tools and judge are shared."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import replace

from ...tools.calibration.custom import CustomCalibration
from ..loop.agent_options import AgentOptions
from ..loop.budget import Limits
from ..model.client import ModelClient
from .marks import Solution
from .posed import PosedCase

# No clock cuts off a solver that is no live model: its answers must be the same on any machine. Its proposals are
# judged by themselves, not against the built-in plan.
UNHURRIED = AgentOptions(limits=Limits(seconds=86_400), knowledge_tokens=0, reference=False)
# The same with the built-in plan as the reference, for solvers that read it or try to beat it.
HELD = replace(UNHURRIED, reference=True)


@runtime_checkable
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
    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """Who proposes for this case; `None`: the built-in proposer."""
        ...


class Persona(Struct, frozen=True):
    """Fields that scripted solvers share; each adds its `name` and its `client`."""

    options: AgentOptions = field(default=UNHURRIED)
    calibration: CustomCalibration | None = None
    name: str = ""
    is_deterministic: bool = True


@runtime_checkable
class OwnWay(Protocol):
    """A solver with its own way of answering a case that has a question."""

    def solve(self, found: PosedCase, epoch: int) -> Solution:
        """Its answer."""
        ...


@runtime_checkable
class Reading(Protocol):
    """A solver whose client can read a request."""

    @property
    def reads(self) -> bool:
        """Whether it is asked to."""
        ...


@runtime_checkable
class Fixed(Protocol):
    """A solver that works only with the options it was made for."""

    @property
    def why_fixed(self) -> str:
        """Why, and what to use instead, in one line."""
        ...


@runtime_checkable
class Finishing(Protocol):
    """A solver with something to store or check when a run is over."""

    def finish(self, found: PosedCase, epoch: int, client: ModelClient | None, solution: Solution) -> None:
        """Called once the case is answered; `client` is the one that was asked, or `None`.

        Raises:
            ShardwrightError: the run does not meet the solver's conditions.
        """
        ...
