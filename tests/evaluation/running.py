"""Small datasets and solvers for tests of evaluation runs."""

from __future__ import annotations

from datetime import date
from typing import Any

from msgspec import Struct, field

from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.dataset import Dataset
from shardwright.agent.evaluation.posed import PosedCase
from shardwright.agent.evaluation.solver import UNHURRIED
from shardwright.agent.evaluation.solvers.builtin import BuiltIn
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.client import ModelClient
from shardwright.tools.calibration.custom import CustomCalibration
from shardwright.tools.calibration.profile_file import KernelEntry, ProfileFile

BUILTIN = BuiltIn()
_BASES = ("dense-1", "dense-tp2", "moe-ep2")


def own_calibration(share: float) -> CustomCalibration:
    """A calibration in which matmuls on an H100 reach `share` of its peak."""
    entry = KernelEntry(
        kernel="gemm", variant="bf16", framework="torch", rows=40, source="own", licence="own", date=date(2026, 11, 21),
        constants={"compute_share": share, "memory_share": share},
    )  # fmt: skip
    return CustomCalibration(name="mine", kernels=(ProfileFile(accelerator="h100-sxm", entries=(entry,)),))


def broken_plans(count: int) -> Dataset:
    """`count` different sound base plans, each with one field spoiled."""
    return Dataset("sample", tuple(_broken_plan(number) for number in range(count)))


def _broken_plan(number: int) -> Case:
    base = _BASES[number % len(_BASES)]
    edit = {"action": "set_top", "field": "/strategy/gpu_count", "value": 100 + number}
    fields: dict[str, Any] = {
        "id": f"case-{number}",
        "family": f"family-{number % 2}",
        "proposal": {"base": base, "edits": [edit]},
        "goldens": [{"base": base, "by": "builder"}],
    }
    return Case.model_validate(fields)


class Failing(Struct, frozen=True):
    """A solver that breaks in the cases it names: it raises an unforeseen error, or ends its process."""

    raises: tuple[str, ...] = ()
    dies: tuple[str, ...] = ()
    is_deterministic: bool = True
    calibration: CustomCalibration | None = None
    options: AgentOptions = field(default=UNHURRIED)
    name: str = "failing"

    def client(self, posed: PosedCase, epoch: int) -> ModelClient | None:
        """`None`, unless the case is to fail."""
        if posed.case.id in self.raises:
            raise ZeroDivisionError("not foreseen\nby anybody")
        if posed.case.id in self.dies:
            import os

            os._exit(9)
        return None
