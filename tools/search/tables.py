"""The tables that layouts of one search share: each phase in each degrees is timed once, whatever it is paired with."""

from __future__ import annotations

from ..performance.setting import Setting
from ..plan.document import Phase, PhaseStrategy
from .phase_table import PhaseTable
from .space import PairShape
from .stage_grid import StageGrid


class Tables:
    """Tables of phases on nodes of `gpus_per_node`, made when they are first asked for."""

    def __init__(self, setting: Setting, gpus_per_node: int) -> None:
        self._setting, self._node = setting, gpus_per_node
        self._grids: dict[int, StageGrid] = {}
        self._tables: dict[tuple[Phase, PhaseStrategy], PhaseTable] = {}

    def table(self, phase: Phase, degrees: PhaseStrategy, stage: int) -> PhaseTable:
        """The table of `phase` in `degrees` with stages of `stage` devices."""
        key = phase, degrees
        if key not in self._tables:
            if stage not in self._grids:
                self._grids[stage] = StageGrid(self._setting.hardware, self._node, stage)
            self._tables[key] = PhaseTable(self._setting, phase, degrees, self._grids[stage])
        return self._tables[key]

    def pair(self, shape: PairShape) -> tuple[PhaseTable, PhaseTable]:
        """The tables of both phases."""
        prefill = self.table("prefill", shape.prefill, shape.stage)
        return prefill, self.table("decode", shape.decode, shape.stage)
