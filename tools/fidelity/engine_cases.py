"""Measured serving results as the cases of a fit: one deployment under one load, with everything that it measured.

The step times of a case are taken apart by the factors of `EngineConstants`, so that other constants give other tables
without timing an operator again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import FloatArray
from ..calibration.custom import CustomCalibration
from ..calibration.engine_profile import SCALES, EngineConstants, accelerator_class, neutral
from ..catalog.hardware import find_accelerator
from ..engines.names import ENGINES
from ..performance.schedule import passes_of_host
from ..performance.serving.load import ServingTimes
from ..performance.serving.step_table import COLUMNS, StepTable
from ..performance.serving_estimate import Server, late_steps, server_of
from ..performance.setting import Setting
from ..performance.step_times import host_columns
from .deployment import layout_of
from .predict import figure_of
from .situation import Deployment, Figure, Situation

# Every part of a time in the order of `Case.parts`, but for the last.
_VARIED = (*SCALES, "recurrent_layer_us")
# Columns of decode attention, and a time of a head's token so long that nothing else counts beside it.
_DECODE = ("decode_base_s", "decode_per_token_s", "decode_per_window_token_s")
_FAR_LONGER_NS = 1e5
# The value that each constant takes to show its part, while the others are neutral.
_VARIED_TO = dict.fromkeys(SCALES, 2.0) | {"recurrent_layer_us": 1.0, "head_token_ns": _FAR_LONGER_NS}


class About(Struct, frozen=True):
    """Where a case belongs: its tier, its group of rows, and its pair of architecture and accelerator."""

    tier: str
    group: str
    pair: str


class Case(Struct, frozen=True, eq=False):
    """One deployment under one load: what was measured, and its server with the columns by factor.

    `parts[column]` has one row for each of `SCALES`, one for a microsecond in each recurrent layer, and a last one for
    what no constant scales. `head_tokens[column]` is the column for each nanosecond of
    `EngineConstants.head_token_ns`, where that takes longer than all else of decode attention; empty where the engine
    knows nothing of it.
    """

    about: About
    situation: Situation
    measured: Mapping[Figure, float]
    server: Server
    parts: Mapping[str, FloatArray]
    head_tokens: Mapping[str, FloatArray]
    host_passes: int = 1
    hides_host: bool = False
    weight: float = 1.0

    @property
    def wanted(self) -> tuple[str, str, str]:
        """Engine, generation and class of accelerators that served it."""
        return wanted_of(self.situation)

    def figure(self, times: ServingTimes, figure: Figure) -> float:
        """`figure` of this deployment and load among `times`."""
        return figure_of(times, replace(self.situation, figure=figure))

    def server_with(self, constants: EngineConstants) -> Server:
        """The server with other constants of the engine."""
        scales = np.array([*(getattr(constants, name) for name in SCALES), constants.recurrent_layer_us, 1.0])
        columns: dict[str, Any] = {name: scales @ part for name, part in self.parts.items()}
        if self.head_tokens:
            columns |= self._with_head_tokens(columns, constants.head_token_ns)
        lists = {name: [float(value) for value in column] for name, column in columns.items()}
        table = replace(
            self.server.table, **lists, **host_columns(constants, self.host_passes, hides_host=self.hides_host)
        )
        policy = replace(
            self.server.policy,
            client_s=constants.client_ms * 1e-3,
            client_s_per_token=constants.client_token_us * 1e-6,
        )
        return replace(
            self.server,
            table=table,
            policy=policy,
            first_token_steps=late_steps(constants, self.situation.deployment.engine.streams_at_intervals),
        )

    def _with_head_tokens(self, columns: Mapping[str, FloatArray], nanoseconds: float) -> dict[str, FloatArray]:
        """Decode columns as long as a kernel with one block a head takes, at the middle of the load's contexts."""
        lengths, table = self.situation.lengths, self.server.table
        middle = lengths.mean_share * (lengths.input_tokens + 0.5 * lengths.output_tokens)
        cached = np.array(table.sequences) * middle, np.array(table.sequences) * min(middle, table.window_tokens)

        def seconds(parts: Mapping[str, FloatArray]) -> FloatArray:
            base, *rates = (parts[name] for name in _DECODE)
            return base + sum(rate * tokens for rate, tokens in zip(rates, cached, strict=True) if rate.size)

        walked = {name: nanoseconds * part for name, part in self.head_tokens.items()}
        longer = seconds(walked) > seconds(columns)
        return {name: np.where(longer, walked[name], columns[name]) for name in _DECODE if columns[name].size}


Settings = dict[tuple[Deployment, str], Setting]


def case_of(
    about: About,
    situation: Situation,
    measured: Mapping[Figure, float],
    settings: Settings,
    base: CustomCalibration | None = None,
) -> Case:
    """The case of a situation; `measured` by figure (ms, or tokens per second), `base` the user's calibration.

    `settings` keeps what one deployment's loads have in common from call to call. Raises InputError: the situation
    cannot be modelled; the reason is fit to be printed.
    """
    layout = layout_of(situation)
    calibrated = layout.setting.with_calibration(base)

    def server(name: str = "") -> Server:
        known = (situation.deployment, name)
        if known not in settings:
            changes = {name: _VARIED_TO[name]} if name else {}
            settings[known] = calibrated.with_profile(neutral(calibrated.engine, **changes))
        setting = settings[known].with_workload(layout.setting.workload)
        return server_of(layout.with_setting(setting), situation.arrivals, situation.lengths)

    engine, generation, _ = wanted_of(situation)
    has_head_tokens = ENGINES[engine].gives_heads_one_block(generation)
    neutral_server = server()
    varied = [server(name) for name in _VARIED]
    parts: dict[str, FloatArray] = {}
    for name in COLUMNS:
        column = np.asarray(getattr(neutral_server.table, name), dtype=float)
        rows = [np.asarray(getattr(varied_server.table, name), dtype=float) - column for varied_server in varied]
        # The last row is what no constant scales: the whole less the parts of `SCALES`, which are in it by default.
        parts[name] = np.array([*rows, column - sum(rows[: len(SCALES)])])
    return Case(
        about=about,
        situation=situation,
        measured=dict(measured),
        server=neutral_server,
        parts=parts,
        head_tokens=_head_tokens(server("head_token_ns").table) if has_head_tokens else {},
        host_passes=passes_of_host(layout.setting, len(layout.phase("decode").stages)),
        hides_host=layout.setting.hides_host,
    )


def _head_tokens(table: StepTable) -> dict[str, FloatArray]:
    return {name: np.asarray(getattr(table, name), dtype=float) / _FAR_LONGER_NS for name in _DECODE}


def wanted_of(situation: Situation) -> tuple[str, str, str]:
    """Engine, generation and class of accelerators of a situation."""
    engine = situation.deployment.engine
    return engine.name, engine.generation, accelerator_class(find_accelerator(situation.deployment.accelerator))
