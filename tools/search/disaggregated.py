"""Screens all pairs of x prefill replicas and y decode replicas, of any two layouts, that the devices hold.

The replicas of each phase are timed by themselves. Before they are paired, a row that needs the same devices as
another, and is no quicker, no simpler and no better placed, is left out, as is one that alone takes longer than a
limit: nothing that it is part of can win (counted as pruned).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct

from ..arrays import BoolArray, FloatArray, IntArray, distinct, floats, ints
from ..checkpoint import checkpoint
from ..performance.collectives import PATHS
from ..performance.limits import first_token_ms_max, token_ms_max
from ..performance.service import PhaseSeconds, Prompts, client_seconds, disaggregated_service
from ..performance.setting import Setting
from ..performance.transfer import send_seconds
from ..plan.document import PHASES, Strategy
from .candidate import SearchRequest
from .devices import billed_gpus, end_of_replicas
from .loads import MOST_SEQUENCES, ladder, shared_batches, yielded
from .phase_replicas import PhaseRows, PhaseScreen
from .ranking import TWO_LAYOUTS
from .space import SpaceRequest, split_strategy
from .strategy_rows import StrategyRows, strategy_rows

# Pairs evaluated together: some 100 MB of columns.
_CHUNK = 500_000
# Rows compared at a time with all before them.
_BLOCK = 256


class Counts(Struct, frozen=True):
    """Counts of strategies: all, those that fit into memory, those of these that are quick enough, those evaluated.

    `fitting`: at the fewest requests. `timely`: each side alone is quick enough for the limits.
    """

    total: int
    fitting: int
    timely: int
    evaluated: int


class DisaggregatedScreen:
    """Screens disaggregated strategies under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting, self.space = request, setting, request.space
        self.workload = request.workload
        # For both phases: whether each row can hold the limits, and whether it was paired.
        self._timely: list[BoolArray] = []
        self._paired: list[BoolArray] = []

    @cached_property
    def loads(self) -> IntArray:
        """The numbers of requests in flight to try [L]."""
        return ladder(MOST_SEQUENCES) if self.request.finds_requests else np.array([self.workload.concurrency])

    @cached_property
    def phases(self) -> tuple[PhaseScreen, PhaseScreen]:
        """The screens of the replicas that prefill and of those that decode."""
        batches = shared_batches(self.loads, self.space.gpus)
        prefill, decode = (PhaseScreen(self.request, self.setting, phase, batches, self.loads) for phase in PHASES)
        return prefill, decode

    @property
    def refused(self) -> Counter[str]:
        """How many degrees of the replicas of either phase each rule or constraint refused."""
        return sum((phase.space.refused for phase in self.phases), self.space.refused.copy())

    def fits_somehow(self) -> bool:
        """Whether replicas of both kinds fit into memory at their fewest requests, and the devices hold them."""
        prefill, decode = (_Places.of(phase.places()) for phase in self.phases)
        return prefill.pairs(decode, self.space) > 0

    def strategy(self, rows: StrategyRows, row: int) -> Strategy:
        """The strategy of one row."""
        prefill = self.phases[0].options[int(rows.prefill[row])].degrees("prefill")
        decode = self.phases[1].options[int(rows.decode[row])].degrees("decode")
        return split_strategy(prefill, decode, int(rows.prefill_replicas[row]), int(rows.decode_replicas[row]))

    def rows(self) -> Iterator[StrategyRows]:
        """All rows that are not pruned, in pieces, by rising numbers of requests in flight."""
        tables = [phase.rows for phase in self.phases]
        self._timely = [np.zeros(len(table), dtype=np.bool_) for table in tables]
        self._paired = [np.zeros(len(table), dtype=np.bool_) for table in tables]
        limits_ms = first_token_ms_max(self.workload), token_ms_max(self.workload)
        for number, concurrency in enumerate(self.loads):
            chosen: list[PhaseRows] = []
            for phase, (table, limit_ms) in enumerate(zip(tables, limits_ms, strict=True)):
                places = np.flatnonzero(table.load == number)
                rows = table.take(places)
                timely = within(rows, limit_ms)
                paired = timely & undominated(rows)
                self._timely[phase][places], self._paired[phase][places] = timely, paired
                chosen.append(rows.take(paired))
            if not all(map(len, chosen)):
                # With more requests even less fits.
                break
            yield from self._pairs(chosen[0], chosen[1], int(concurrency))

    def counts(self) -> Counts:
        """How many strategies there are, and of the rows that were made, how many were evaluated and pruned."""
        rooms = [[(*room.footprint, count) for room in phase.rooms for count in room.counts] for phase in self.phases]
        total = [_Places.of(np.array(places, dtype=np.int64).reshape(-1, 3)) for places in rooms]
        tables = [phase.rows for phase in self.phases]
        fitting = [_Places.of_rows(table.take(table.load == 0)) for table in tables]
        timely, paired = (
            [_Places.of_rows(table.take(rows)) for table, rows in zip(tables, masks, strict=True)]
            for masks in (self._timely, self._paired)
        )
        return Counts(*(sides[0].pairs(sides[1], self.space) for sides in (total, fitting, timely, paired)))

    def _pairs(self, prefill: PhaseRows, decode: PhaseRows, concurrency: int) -> Iterator[StrategyRows]:
        """Every pair of rows that the devices hold."""
        node, decodes = self.space.gpus_per_node, len(decode)
        prefill_end = ints(end_of_replicas(node, 0, prefill.replicas, prefill.footprint))
        for start in range(0, len(prefill), max(1, _CHUNK // decodes)):
            first = np.arange(start, min(start + max(1, _CHUNK // decodes), len(prefill)))
            end = ints(end_of_replicas(node, prefill_end[first, None], decode.replicas, decode.footprint))
            fits = end <= self.space.gpus
            fits &= self.space.allowed(prefill.replicas[first, None], decode.replicas[None, :])
            row, column = np.nonzero(fits)
            if len(row):
                yield self._judged(prefill.take(first[row]), decode.take(column), concurrency)

    def _judged(self, prefill: PhaseRows, decode: PhaseRows, concurrency: int) -> StrategyRows:
        """The strategies of each row of `prefill` with the same row of `decode` [R]."""
        checkpoint()
        seconds = PhaseSeconds(
            prompts=Prompts(prefill.pass_s, prefill.prompts_s, prefill.prompts_s),
            step=decode.pass_s,
            transfer=self._transfer_seconds(prefill, decode),
            client=client_seconds(self.setting),
        )
        service = disaggregated_service(seconds, concurrency, self.workload.output_tokens)
        replicas = prefill.replicas + decode.replicas
        gpus = billed = prefill.replicas * prefill.gpus + decode.replicas * decode.gpus
        if self.workload.objective == "cost":
            end = self._end(prefill, decode, decode.replicas)
            billed = ints(billed_gpus(self.space.gpus_per_node, end))
        return strategy_rows(
            self.workload,
            prefill=prefill.replica, decode=decode.replica,
            prefill_replicas=prefill.replicas, decode_replicas=decode.replicas, concurrency=ints(concurrency),
            gpus=gpus, billed_gpus=billed, ttft_s=service.ttft, tpot_s=service.tpot,
            tokens_per_s=yielded(self.workload, floats(service.output_tokens_per_s)),
            memory_bytes=np.maximum(prefill.memory_bytes, decode.memory_bytes),
            complexity=prefill.complexity + decode.complexity + np.log2(replicas).astype(np.int64) + TWO_LAYOUTS,
            warnings=prefill.warnings | decode.warnings,
        )  # fmt: skip

    def _end(self, prefill: PhaseRows, decode: PhaseRows, decodes: IntArray | int) -> IntArray:
        """The first GPU that is free after the prefill replicas and `decodes` decode replicas [R]."""
        node = self.space.gpus_per_node
        prefill_end = end_of_replicas(node, 0, prefill.replicas, prefill.footprint)
        return ints(end_of_replicas(node, prefill_end, decodes, decode.footprint))

    def _transfer_seconds(self, prefill: PhaseRows, decode: PhaseRows) -> FloatArray:
        """Seconds to hand on a request [R], over the path between the first replicas of the phases."""
        hardware, end = self.setting.hardware, self._end(prefill, decode, 1)
        domain = hardware.nodes_per_domain * self.space.gpus_per_node
        inside = np.where(end > (hardware.island_gpus or domain), PATHS.index("host"), PATHS.index("link"))
        paths = np.where(end > domain, PATHS.index("network"), inside)
        links = np.minimum(prefill.links, decode.links)
        seconds = decode.copy_s + (self.setting.engine.facts.handoff_s or 0.0)
        for count in distinct(links):
            for number in distinct(paths):
                rows = (links == count) & (paths == number)
                if rows.any():
                    seconds[rows] += send_seconds(self.setting, int(count), PATHS[int(number)])
        return seconds


class _Places(Struct, frozen=True):
    """Different footprints [F] of a number of replicas of one phase: how many `rows` have each, for which loads [F, L].

    Whether two fit together depends on that alone: few different ones, however many strategies there are.
    """

    footprint: tuple[IntArray, IntArray]
    replicas: IntArray
    rows: IntArray
    loads: FloatArray

    @classmethod
    def of(cls, places: IntArray, loads: IntArray | None = None) -> _Places:
        """Places of stride, extent and number [R, 3]; `loads` [R, L]: which loads each counts for, by default one."""
        loads = np.ones((len(places), 1), dtype=np.int64) if loads is None else loads
        table, rows = np.unique(np.concatenate((places, loads), axis=1), axis=0, return_counts=True)
        return cls((table[:, 0], table[:, 1]), table[:, 2], rows, table[:, 3:].astype(np.float64))

    @classmethod
    def of_rows(cls, rows: PhaseRows) -> _Places:
        """The places of `rows`, each replica in each number once, with all its loads."""
        key = rows.replica * (rows.replicas.max(initial=0) + 1) + rows.replicas
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        loads = np.zeros((len(first), int(rows.load.max(initial=0)) + 1), dtype=np.int64)
        loads[place, rows.load] = 1
        return cls.of(np.stack((rows.stride, rows.extent, rows.replicas), axis=1)[first], loads)

    def pairs(self, decode: _Places, space: SpaceRequest) -> int:
        """How many pairs of a row here and a row of `decode` the devices hold, with a load for which both count."""
        node, most = space.gpus_per_node, min(self.loads.shape[1], decode.loads.shape[1])
        prefill_end = ints(end_of_replicas(node, np.zeros_like(self.replicas), self.replicas, self.footprint))
        end = ints(end_of_replicas(node, prefill_end[:, None], decode.replicas[None, :], decode.footprint))
        fits = (end <= space.gpus) & (self.loads[:, :most] @ decode.loads[:, :most].T > 0.0)
        fits &= space.allowed(self.replicas[:, None], decode.replicas[None, :])
        return int((self.rows[:, None] * decode.rows[None, :] * fits).sum())


def within(rows: PhaseRows, limit_ms: float | None) -> BoolArray:
    """Mask of the rows whose single prompt or step is within the limit, and of the quickest on the same devices [R].

    A user never waits less than that, so that no pair with another row holds the limit, or misses it by less.
    """
    if limit_ms is None:
        return np.ones(len(rows), dtype=np.bool_)
    keep = rows.pass_s <= limit_ms / 1e3
    sequence = np.lexsort((rows.pass_s, rows.replicas, rows.extent, rows.stride))
    keep[[group[0] for group in _by_devices(rows, sequence) if len(group)]] = True
    return keep


def _by_devices(rows: PhaseRows, sequence: IntArray) -> list[IntArray]:
    """The rows that take the same devices together, of a `sequence` in which they are neighbours."""
    places = np.stack((rows.stride, rows.extent, rows.replicas), axis=1)[sequence]
    return np.split(sequence, np.flatnonzero((places[1:] != places[:-1]).any(axis=1)) + 1)


def undominated(rows: PhaseRows) -> BoolArray:
    """Mask of the rows that no other row on the same devices dominates [R].

    More links for a cache never slow its way.
    """
    keep = np.ones(len(rows), dtype=np.bool_)
    columns = (rows.pass_s, rows.prompts_s, rows.copy_s, rows.gpus, -rows.links, rows.complexity, rows.warnings > 0)
    figures = np.stack(columns, axis=1)
    # Among rows of the same devices sorted by their figures, a dominating row comes before those that it dominates.
    sequence = np.lexsort((*figures.T[::-1], rows.replicas, rows.extent, rows.stride))
    for group in _by_devices(rows, sequence):
        for start in range(0, len(group), _BLOCK):
            block = group[start : start + _BLOCK]
            before = group[: start + _BLOCK]
            before = before[keep[before]]
            no_worse = (figures[before, None, :] <= figures[None, block, :]).all(axis=2)
            better = no_worse & (figures[before, None, :] < figures[None, block, :]).any(axis=2)
            keep[block] = ~better.any(axis=0)
    return keep
