"""What no strategy on some hardware can be quicker than, so that hardware which cannot do is known without a search."""

from __future__ import annotations

from math import inf

import numpy as np

from ..checkpoint import checkpoint
from ..errors import MissingFieldError
from ..performance.setting import Setting
from .candidate import SearchRequest
from .phase_columns import Batches, DecodeColumns
from .screen import OPTIMISM
from .space import PhaseShape, phase_shapes
from .stage_grid import Line, lines_of
from .tables import Tables

# Requests on a replica for which a decode step is timed: the step that is quickest is the floor.
_REQUESTS = 2 ** np.arange(9)


def is_out_of_reach(request: SearchRequest, setting: Setting) -> bool:
    """Whether every strategy of `request` misses its limit on TPOT, by the decode step alone.

    Stages in a row take as long as one stage with all layers, and sending between them more: so each layout of a stage
    stands for its pipelines of every length, whether or not it fits into memory.
    """
    limit_ms = request.workload.tpot_ms_max
    if limit_ms is None:
        return False
    tables = Tables(setting, request.hardware.gpus_per_node)
    try:
        return all(
            _step_seconds(setting, tables, shape) * 1e3 > limit_ms / OPTIMISM
            for shape in phase_shapes(request.space, prefill=False)
        )
    except MissingFieldError:  # a link that is not known: what needs it is refused where it is searched
        return False


def _step_seconds(setting: Setting, tables: Tables, shape: PhaseShape) -> float:
    """The quickest decode step of a layout of a stage."""
    checkpoint()
    table = tables.table("decode", shape.degrees, shape.stage)
    line = lines_of((Line.even(setting.architecture.num_layers, 1),))
    batches = Batches(np.unique(-(-_REQUESTS // np.minimum(table.groups, _REQUESTS))).astype(np.float64))
    steps = DecodeColumns(setting, table, line, batches).step(np.zeros_like(_REQUESTS), _REQUESTS)
    return float(min(steps, default=inf))
