"""One kind of replica of disaggregated strategies: every layout and pipeline of one phase, for every load at once.

A side is timed by itself; what it is paired with is decided elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..checkpoint import leaves_out
from ..performance.setting import Setting
from ..performance.transfer import stage_copy_seconds
from ..plan.document import Phase, PhaseStrategy
from .arrays import Floats, Mask, Whole
from .candidate import SearchRequest
from .cuts import TYPICAL_BATCH, BestCuts, engine_cut, phase_costs, rounded_batch
from .footprints import Footprints, Side, sides_joined
from .inventory import Footprint
from .loads import at_once
from .memory_columns import MemoryColumns
from .phase_columns import Batches, DecodeColumns, PrefillColumns, prompts_together, whole_requests
from .phase_table import PhaseTable
from .ranking import UNEVEN_STAGES, phase_complexity
from .space import PhaseShape, phase_shapes
from .stage_grid import Line, Lines, lines_of
from .tables import Tables
from .weights import weights_bytes


@dataclass(frozen=True, slots=True)
class PhaseReplica:
    """A layout of a stage of one phase as a pipeline."""

    shape: PhaseShape
    line: Line

    @property
    def footprint(self) -> Footprint:
        """The devices that it takes."""
        return self.shape.prints[self.line.stages]

    @property
    def degrees(self) -> PhaseStrategy:
        """Its degrees."""
        return self.shape.replica(self.line.stages, self.line.cut)


@dataclass(frozen=True, slots=True)
class _Held:
    """Pipelines of one layout that hold the weights and one request; `first` is the place of the first among all."""

    table: PhaseTable
    memory: MemoryColumns
    lines: Lines
    first: int
    replicas: tuple[PhaseReplica, ...]


@dataclass(frozen=True)
class _Block:
    """Pipelines of one layout in every number: row by row the line and how many; rows x loads what they take."""

    first: int
    replicas: tuple[PhaseReplica, ...]
    line: Whole
    counts: Whole
    memory: Whole
    fits: Mask
    ends: Whole
    seconds: tuple[Floats, Floats]
    warned: Whole

    def side(self, load: int) -> Side:
        """The rows that fit, under one of the loads."""
        rows = np.flatnonzero(self.fits[:, load])
        line, shape = self.line[rows], self.replicas[0].shape
        prints = [one.footprint for one in self.replicas]
        own = [phase_complexity(one.degrees) for one in self.replicas]
        return Side(
            self.first + line, self.counts[rows],
            np.array([shape.stage * one.line.stages for one in self.replicas])[line],
            np.array([one.unit for one in prints])[line], np.array([one.tail for one in prints])[line],
            self.ends[line], self.seconds[0][rows, load], self.seconds[1][rows, load], self.memory[rows, load],
            np.array(own)[line], self.warned[rows, load],
        )  # fmt: skip


class PhaseSides:
    """All replicas of one phase under the loads of a search."""

    def __init__(self, request: SearchRequest, setting: Setting, phase: Phase, batches: Batches, loads: Whole) -> None:
        self.request, self.setting = request, setting
        self.phase: Phase = phase
        self._batches, self._loads = batches, loads
        self._tables = Tables(setting, request.hardware.gpus_per_node)
        self.usable_bytes = int(setting.hardware.memory_bytes * setting.memory_utilization)
        # Those that hold the weights and one request; and the footprints of all, in the order of the space.
        self.replicas: list[PhaseReplica] = []
        self.prints: list[Footprint] = []
        self._held = list(self._held_lines())

    def _held_lines(self) -> Iterator[_Held]:
        for shape in phase_shapes(self.request.space, prefill=self.phase == "prefill"):
            if self.replicas and leaves_out(f"some of the layouts of {self.phase} replicas"):
                return
            yield from self._of(shape)

    def side(self, load: int) -> Side:
        """Every layout in every number that fits under one of the loads."""
        return sides_joined([block.side(load) for block in self._blocks])

    @cached_property
    def _blocks(self) -> list[_Block]:
        found: list[_Block] = []
        for held in self._held:
            if found and leaves_out(f"some of the layouts of {self.phase} replicas"):
                break
            found.append(self._block(held))
        return found

    def _of(self, shape: PhaseShape) -> Iterator[_Held]:
        """The pipelines of a layout that hold the weights and one request, in the even cut and in the best one."""
        layers, engine = self.request.architecture.num_layers, self.request.named_engine
        least = math.ceil(weights_bytes(self.setting) / self.usable_bytes / shape.stage)
        self.prints.extend(one for stages, one in shape.prints.items() if stages < least)
        numbers = [stages for stages in shape.prints if stages >= least]
        if not numbers:
            return
        table = self._tables.table(self.phase, shape.degrees, shape.stage)
        memory = MemoryColumns(self.setting, (table.layout,))
        if engine is not None:
            # A named engine has one cut of its own.
            cuts = ((stages, engine_cut(engine, layers, stages)) for stages in numbers)
            fitting = self._fitting(
                shape,
                memory,
                [Line.even(layers, stages) if cut is None else Line(cut, is_own_cut=True) for stages, cut in cuts],
            )
        else:
            fitting = self._fitting(shape, memory, [Line.even(layers, stages) for stages in numbers])
            fitting += self._fitting(shape, memory, self._best_lines(shape, table, fitting))
        if fitting:
            first, own = len(self.replicas), tuple(PhaseReplica(shape, line) for line in fitting)
            self.replicas.extend(own)
            yield _Held(table, memory, lines_of(tuple(fitting)), first, own)

    def _fitting(self, shape: PhaseShape, memory: MemoryColumns, lines: Sequence[Line]) -> list[Line]:
        """Those of `lines` that hold one request."""
        if not lines:
            return []
        self.prints.extend(shape.prints[line.stages] for line in lines)
        every, ones = np.arange(len(lines)), np.ones(len(lines), dtype=np.int64)
        fits = memory.fullest(lines_of(tuple(lines)), every, ones) <= self.usable_bytes
        return [line for line, one in zip(lines, fits, strict=True) if one]

    def _best_lines(self, shape: PhaseShape, table: PhaseTable, lines: Sequence[Line]) -> list[Line]:
        """The best cut into as many stages as each of `lines` has, where it is another than the even one."""
        known: dict[object, BestCuts] = {}
        found: list[Line] = []
        for stages in (line.stages for line in lines if line.stages > 1):
            batch = TYPICAL_BATCH
            if not self.request.concurrency_open:
                batch = rounded_batch(-(-int(self._loads[-1]) // (stages * shape.rooms[stages] * table.groups)))
            ends = table.ends(stages)
            key = batch, id(ends[1])
            if key not in known:
                known[key] = BestCuts(phase_costs(*ends, batch))
            cut = known[key].cut(stages)
            if cut is not None:
                found.append(Line(cut, is_own_cut=True))
        return found

    def fitting(self) -> Footprints:
        """Where every layout lies in each number that fits under the fewest requests; nothing is timed."""
        prints: list[tuple[int, int, int]] = []
        for held in self._held:
            line, counts = self._numbers(held)
            fits = held.memory.fullest(held.lines, line, -(-self._loads[0] // counts)) <= self.usable_bytes
            for row in np.flatnonzero(fits):
                one = held.replicas[int(line[row])].footprint
                prints.append((one.unit, one.tail, int(counts[row])))
        return Footprints.of(prints, np.ones((len(prints), 1), dtype=np.bool_))

    def _numbers(self, held: _Held) -> tuple[Whole, Whole]:
        """Row by row the line, and how many replicas of it."""
        numbers = [self.request.space.numbers(one.shape.rooms[one.line.stages]) for one in held.replicas]
        return np.repeat(np.arange(len(numbers)), [len(one) for one in numbers]), np.concatenate(numbers)

    def _block(self, held: _Held) -> _Block:
        table, memory, lines = held.table, held.memory, held.lines
        line, counts = self._numbers(held)
        requests = -(-self._loads[None, :] // counts[:, None])
        lines_flat = np.repeat(line, len(self._loads))
        taken = memory.fullest(lines, lines_flat, requests.ravel())
        fits = taken <= self.usable_bytes
        if self.request.concurrency_open and self.phase == "decode":
            # More than the schedulers take at once would only wait.
            fits &= requests.ravel() <= self.setting.max_sequences * table.groups
        first, second, warned = (np.zeros(len(taken)) for _ in range(3))
        shares = (self._loads[None, :] / counts[:, None]).ravel()
        timed = self._prefilled if self.phase == "prefill" else partial(self._decoded, memory)
        first[fits], second[fits], warned[fits] = timed(table, lines, lines_flat[fits], shares[fits])
        shape = requests.shape
        stage = table.layout.stages[0]
        ends = max(1, len(stage.attention_devices) // table.groups) * lines.stages
        return _Block(
            held.first, held.replicas, line, counts, taken.reshape(shape), fits.reshape(shape), ends,
            (first.reshape(shape), second.reshape(shape)), warned.astype(np.int64).reshape(shape),
        )  # fmt: skip

    def _prefilled(self, table: PhaseTable, lines: Lines, line: Whole, shares: Floats) -> tuple[Floats, Floats, Whole]:
        """Seconds of what a side shows (see `Side`) and the rules that warn of it, for each mean number of requests."""
        together = prompts_together(self.setting, table.groups * lines.stages[line], whole_requests(shares))
        prompts = PrefillColumns(self.setting, table, lines, together)
        requests, part = whole_requests(shares), shares / self._loads[-1]
        there = at_once(
            self.request, requests, part, requests, lambda there: prompts.alone(line, there.astype(np.float64))[0]
        )
        shares = np.minimum(shares, there)
        return *prompts.alone(line, shares), table.warnings(lines)[line] | UNEVEN_STAGES * prompts.uneven[line]

    def _decoded(
        self, memory: MemoryColumns, table: PhaseTable, lines: Lines, line: Whole, shares: Floats
    ) -> tuple[Floats, Floats, Whole]:
        """The same of replicas that decode: what they do not run at once waits behind its first token."""
        most, requests = memory.running(lines)[line], whole_requests(shares)
        steps = DecodeColumns(self.setting, table, lines, self._batches).narrowed(line, np.minimum(requests, most))

        def per_token(there: Whole) -> Floats:
            running = np.minimum(there, most)
            return steps.step(line, running) * (there / running)

        part, later = shares / self._loads[-1], self.request.workload.output_tokens - 1
        there = at_once(self.request, requests, part, requests, lambda there: later * per_token(there))
        running = np.minimum(there, most)
        warned = table.warnings(lines)[line] | UNEVEN_STAGES * steps.is_uneven(line, running)
        return per_token(there), self._copies(table, lines)[line], warned

    def _copies(self, table: PhaseTable, lines: Lines) -> Floats:
        """Seconds in which the ranks of each line copy what they repeat of a cache."""
        stages = zip(table.stages(lines), lines.first.tolist(), lines.last.tolist(), strict=True)
        own = [stage_copy_seconds(self.setting, table.layout, stage, (first, last)) for stage, first, last in stages]
        return np.add.reduceat(np.array(own), lines.starts)
