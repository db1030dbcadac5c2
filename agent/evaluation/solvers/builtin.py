"""The built-in proposer as a solver: its one plan, or the repair of a case's proposal."""

from __future__ import annotations

from msgspec import Struct, field

from ....tools.calibration.custom import CustomCalibration
from ...loop.agent_options import AgentOptions
from ...model.client import ModelClient
from ..posed import PosedCase
from ..solver import UNHURRIED


class BuiltIn(Struct, frozen=True):
    """The built-in proposer; `calibration` changes the constants of its search, not those that judge it."""

    calibration: CustomCalibration | None = None
    options: AgentOptions = field(default=UNHURRIED)
    is_deterministic: bool = True

    @property
    def name(self) -> str:
        """`builtin`, and its constants."""
        return "builtin" if self.calibration is None else f"builtin by {self.calibration.name}"

    def client(self, found: PosedCase, epoch: int) -> ModelClient | None:
        """`None`: the built-in proposer answers itself."""
        return None
