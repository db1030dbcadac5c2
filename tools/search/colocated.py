"""Evaluates every strategy whose replicas serve both phases: one replica of each layout is timed for all loads at once.

Replicas are alike and independent: times stay, rates and requests multiply with their number. A layout of a stage is
evaluated with every number of stages together, in the even cut and in the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from ..bounds import REQUESTS
from ..performance.queueing import Prompts, client_seconds, held_back
from ..performance.schedule import microbatches
from ..performance.service import PhaseSeconds, Service, Shares, colocated_service
from ..performance.setting import Setting
from ..performance.throughput import prompts_of_pass
from ..plan.document import Strategy
from .arrays import Mask, Whole, floats, wholes
from .candidate import SearchRequest
from .columns import Columns, columns
from .cuts import TYPICAL_BATCH, BestCuts, StageCosts, engine_cut, phase_costs, rounded_batch
from .inventory import billed_gpus, end_of_replicas, footprint
from .loads import at_once, open_batches, replica_ladder, shared_batches, yielded
from .memory_columns import MemoryColumns
from .phase_columns import Batches, DecodeColumns, PrefillColumns, prompts_together
from .ranking import UNEVEN_STAGES, pair_complexity, pipeline_complexity
from .space import PairOption, PairShape
from .stage_grid import Line, Lines, lines_of
from .tables import Tables


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica: a layout of a stage as a pipeline."""

    shape: PairShape
    line: Line

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of such replicas that are looked at."""
        return self.shape.numbers[self.line.stages]

    @property
    def width(self) -> int:
        """Devices of one."""
        return self.shape.stage * self.line.stages

    @property
    def option(self) -> PairOption:
        """Its degrees in both phases."""
        return self.shape.option(self.line.stages, self.line.cut)

    def strategy(self, dp: int) -> Strategy:
        """`dp` of them."""
        return self.option.strategy(dp)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A replica that does not fit, at the fewest requests that it was asked for, and what its fullest GPU lacks."""

    replica: Replica
    count: int
    concurrency: int
    memory_bytes: int
    shortfall_bytes: int

    @property
    def gpus(self) -> int:
        """Devices of all its replicas."""
        return self.count * self.replica.width


@dataclass(frozen=True, slots=True)
class Held:
    """Pipelines of one layout; entry by entry the line, how many replicas (0: any), requests on each, and memory."""

    shape: PairShape
    columns: MemoryColumns
    lines: Lines
    line: Whole
    replicas: Whole
    requests: Whole
    memory: Whole
    fits: Mask

    def fitting(self) -> Mask:
        """Whether each line fits with any number of requests that it was asked for."""
        return np.bincount(self.line[self.fits], minlength=len(self.lines)) > 0

    def plus(self, other: Held) -> Held:
        """The lines of both."""
        both = lines_of((*self.lines.lines, *other.lines.lines))
        line = np.concatenate((self.line, other.line + len(self.lines)))
        names = ("replicas", "requests", "memory", "fits")
        rows = (np.concatenate((getattr(self, name), getattr(other, name))) for name in names)
        return Held(self.shape, self.columns, both, line, *rows)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one layout: line, number of replicas and requests.

    Where loads are open `group` numbers those of one line and number. `leads` are those that no fewer replicas with as
    many requests on each hold every limit with.
    """

    columns: Columns
    group: Whole
    leads: Mask


class PairEvaluator:
    """Evaluates replicas that serve both phases under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting = request, setting
        self.workload = request.workload
        self.usable_bytes = int(setting.hardware.memory_bytes * setting.memory_utilization)
        self.tables = Tables(setting, request.hardware.gpus_per_node)

    @cached_property
    def batches(self) -> Batches:
        """The batches that any strategy may be asked for."""
        together = prompts_of_pass(self.setting)
        if self.request.concurrency_open or self.request.comes_at_rate:
            return open_batches(together)
        return shared_batches(np.array([self.workload.concurrency]), self.request.space.gpus, together)

    def requests(self, shape: PairShape, stages: int) -> Whole:
        """Requests on one replica: for each number of replicas, or the steps of the ladder."""
        if self.request.concurrency_open:
            groups = shape.decode.attention_dp or 1
            steps = replica_ladder(groups, microbatches(self.setting, stages))
            # More than the schedulers take at once would only wait.
            return steps[steps <= self.setting.max_sequences * groups]
        return -(-self.workload.concurrency // np.array(shape.numbers[stages]))

    def held(self, shape: PairShape, lines: Lines) -> Held:
        """The memory of each of `lines` for every number of requests, and whether that fits."""
        each = [self.requests(shape, line.stages) for line in lines.lines]
        line, requests = np.repeat(np.arange(len(each)), [len(one) for one in each]), np.concatenate(each)
        replicas = np.zeros_like(requests)
        if not self.request.concurrency_open:
            replicas = np.concatenate([Replica(shape, line).numbers for line in lines.lines])
        tables = self.tables.pair(shape)
        columns = MemoryColumns(self.setting, tuple(one.layout for one in tables))
        memory = columns.fullest(lines, line, requests)
        return Held(shape, columns, lines, line, replicas, requests, memory, memory <= self.usable_bytes)

    def variants(self, shape: PairShape, least_stages: int = 1) -> Held:
        """Pipelines of `least_stages` and more in the even cut, and those that fit in the best one too."""
        layers, engine = self.request.architecture.num_layers, self.request.named_engine
        numbers = [stages for stages in shape.rooms if stages >= least_stages]
        if engine is not None:
            # A named engine has one cut of its own.
            cuts = {stages: engine_cut(engine, layers, stages) for stages in numbers}
            own = (
                Line.even(layers, stages) if cut is None else Line(cut, is_own_cut=True) for stages, cut in cuts.items()
            )
            return self.held(shape, lines_of(tuple(own)))
        even = self.held(shape, lines_of(tuple(Line.even(layers, stages) for stages in numbers)))
        fitting = [line.stages for line, fits in zip(even.lines.lines, even.fitting(), strict=True) if fits]
        best = tuple(self._best_lines(shape, [stages for stages in fitting if stages > 1]))
        return even.plus(self.held(shape, lines_of(best))) if best else even

    def _best_lines(self, shape: PairShape, numbers: Sequence[int]) -> list[Line]:
        """The best cut into each number of stages, where it is another than the even one."""
        known: dict[object, BestCuts] = {}
        found: list[Line] = []
        for stages in numbers:
            batch = TYPICAL_BATCH
            if not self.request.concurrency_open:
                least = -(-self.workload.concurrency // shape.rooms[stages])
                batch = rounded_batch(-(-least // (stages * (shape.decode.attention_dp or 1))))
            ends = [table.ends(stages) for table in self.tables.pair(shape)]
            key = batch, *(id(last) for _, last in ends)
            if key not in known:
                known[key] = BestCuts(reduce(StageCosts.plus, (phase_costs(*one, batch) for one in ends)))
            cut = known[key].cut(stages)
            if cut is not None:
                found.append(Line(cut, is_own_cut=True))
        return found

    def fits_somehow(self, shape: PairShape) -> bool:
        """Whether it fits into memory at its fewest requests with any number of stages."""
        layers = self.request.architecture.num_layers
        lines = lines_of(tuple(Line.even(layers, stages) for stages in shape.rooms))
        return bool(self.held(shape, lines).fits.any())

    def too_large(self, held: Held) -> list[TooLarge]:
        """The lines that fit with no number of requests."""
        found: list[TooLarge] = []
        for number in np.flatnonzero(~held.fitting()):
            own = np.flatnonzero(held.line == number)
            least = own[held.memory[own].argmin()]
            is_open = self.request.concurrency_open
            asked = int(held.requests[least]) if is_open else self.workload.concurrency
            memory_bytes, count = int(held.memory[least]), 1 if is_open else int(held.replicas[least])
            replica = Replica(held.shape, held.lines.lines[number])
            found.append(TooLarge(replica, count, asked, memory_bytes, memory_bytes - self.usable_bytes))
        return found

    def rows(self, index: int, held: Held) -> Rows:
        """All rows of a layout, whose lines are numbered from `index` on: every number of replicas with every load."""
        shape, lines, fits = held.shape, held.lines, np.flatnonzero(held.fits)
        numbers = [Replica(shape, line).numbers for line in lines.lines]
        line, requests = held.line[fits], held.requests[fits]
        rooms = np.array([len(one) for one in numbers])
        many = rooms[line] if self.request.concurrency_open else np.ones_like(line)
        entry = np.repeat(np.arange(len(fits)), many)
        row, offsets = line[entry], np.cumsum(many) - many
        group = (np.cumsum(rooms) - rooms)[row] + np.arange(len(entry)) - offsets[entry]
        if self.request.concurrency_open:
            replicas = np.concatenate(numbers)[group]
            # More requests than a plan may state are nobody's load.
            stated = replicas * requests[entry] <= REQUESTS.most
            entry, row, group, replicas = entry[stated], row[stated], group[stated], replicas[stated]
        else:
            replicas = held.replicas[fits]
        service, warned = self._service(held, line, requests)
        rate = floats(service.output_tokens_per_s)[entry] * (replicas if self.request.concurrency_open else 1)
        own = np.array([pipeline_complexity(one.stages, is_own_cut=one.is_own_cut) for one in lines.lines])
        gpus = replicas * (lines.stages * shape.stage)[row]
        is_billed = self.workload.objective == "cost"
        found = columns(
            self.workload,
            prefill=index + row, decode=index + row, prefill_replicas=wholes(0), decode_replicas=replicas,
            concurrency=replicas * requests[entry] if self.request.concurrency_open else self.workload.concurrency,
            gpus=gpus, billed=self._billed(shape, lines)[row, replicas - 1] if is_billed else gpus,
            ttft=floats(service.ttft)[entry], tpot=floats(service.tpot)[entry], rate=yielded(self.request, rate),
            memory=held.memory[fits][entry],
            complexity=pair_complexity(shape.prefill, shape.decode) + own[row] + np.frexp(replicas)[1] - 1,
            warned=warned[entry],
        )  # fmt: skip
        holds = found.over <= 0.0
        fewer = np.concatenate(([False], holds[:-1] & (entry[1:] == entry[:-1])))
        return Rows(found, group, holds & ~fewer)

    def _billed(self, shape: PairShape, lines: Lines) -> Whole:
        """Devices of all nodes that 1, 2, … replicas of each line are in."""
        node, counts = self.request.hardware.gpus_per_node, np.arange(1, max(shape.rooms.values(), default=0) + 1)
        prints = (footprint(node, shape.stage, int(stages)) for stages in lines.stages)
        found = [billed_gpus(node, end_of_replicas(node, 0, counts, one)) for one in prints]
        return np.array(found, dtype=np.int64).reshape(len(found), len(counts))

    def _service(self, held: Held, line: Whole, requests: Whole) -> tuple[Service, Whole]:
        """What users see of each entry, and the rules that warn of it."""
        (first, second), lines = self.tables.pair(held.shape), held.lines
        most, output_tokens = held.columns.running(lines)[line], self.workload.output_tokens
        if not self.request.comes_at_rate:
            most = np.minimum(requests, most)
        prefill = PrefillColumns(self.setting, first, lines, prompts_together(self.setting, first.groups, most))
        decode = DecodeColumns(self.setting, second, lines, self.batches).narrowed(line, most)
        if self.request.comes_at_rate:
            share = held.replicas[held.fits].astype(np.float64)
        else:
            share = np.ones(len(line)) if self.request.concurrency_open else self.workload.concurrency / requests

        def served(there: Whole) -> Service:
            running = np.minimum(there, most)
            prompts = Prompts(*prefill.seconds(line, running), prefill.apart(line, running))
            back = held_back(self.setting, second.groups, running, output_tokens - 1)
            seconds = PhaseSeconds(prompts, decode.step(line, running), 0.0, client_seconds(self.setting), back)
            return colocated_service(seconds, Shares(share * there, there, running), output_tokens)

        there = at_once(
            self.request, requests, 1.0 / share, most, lambda there: served(there).request_seconds(output_tokens)
        )
        service = served(there)
        uneven = decode.is_uneven(line, requests) | prefill.uneven[line]
        bits = first.warnings(lines) | second.warnings(lines)
        return service, bits[line] | UNEVEN_STAGES * uneven

    def chosen(self, rows: Rows) -> Columns:
        """Of each number of replicas the row at the load that the objective wants, where loads are open.

        The best one within the limits, or the fewest requests that hold them.
        """
        if not self.request.concurrency_open:
            return rows.columns
        over, group = rows.columns.over, rows.group
        cost = rows.columns.concurrency if self.request.fills_upwards else rows.columns.cost
        holds = over <= 0.0
        some = np.bincount(group[holds], minlength=int(group.max(initial=0)) + 1) > 0
        value = np.where(some[group], np.where(holds, cost, np.inf), over)
        sequence = np.lexsort((value, group))
        first = np.concatenate(([True], group[sequence][1:] != group[sequence][:-1]))[: len(sequence)]
        return rows.columns.take(sequence[first])
