"""Evaluates every strategy whose replicas serve both phases: one replica of each layout is timed for all loads at once.

Replicas are alike and independent: times stay, rates and requests multiply with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..calibration.forms.elementary import pick
from ..performance.layout import Layout, make_layout
from ..performance.queueing import Prompts, client_seconds, held_back
from ..performance.service import PhaseSeconds, Service, Shares, colocated_service
from ..performance.setting import Setting
from ..plan.document import Strategy
from ..plan.placement import place
from .candidate import SearchRequest
from .columns import Columns, Mask, Whole, columns
from .cuts import TYPICAL_BATCH, chosen_cut
from .loads import open_batches, replica_ladder, shared_batches
from .memory_columns import MemoryColumns
from .phase_columns import Batches, DecodeColumns, PrefillColumns
from .ranking import UNEVEN_STAGES, complexity, layout_warnings, warning_bits
from .space import PairOption


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A layout that does not fit, at the fewest requests that it was asked for, and what its fullest GPU lacks."""

    pair: PairOption
    strategy: Strategy
    concurrency: int
    memory_bytes: int
    shortfall_bytes: int


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A pair as it was cut, one row for each number of its replicas, and the rows that the front is made of."""

    pair: PairOption
    rows: Columns
    points: Columns


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica with the memory of its fullest device for each number of requests, and whether that fits."""

    pair: PairOption
    layout: Layout
    requests: Whole
    memory: Whole
    fits: Mask


class PairEvaluator:
    """Evaluates replicas that serve both phases under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting = request, setting
        self.workload = request.workload
        # Whether pipelines are cut in the best way too, not only evenly.
        self.cuts = True
        self.usable_bytes = int(setting.hardware.memory_bytes * setting.memory_utilization)

    @cached_property
    def batches(self) -> Batches:
        """The batches that any strategy may be asked for."""
        if self.request.concurrency_open:
            return open_batches()
        return shared_batches(np.array([self.workload.concurrency]), self.request.space.gpus)

    def layout(self, pair: PairOption) -> Layout:
        """One replica on the first devices."""
        hardware, strategy = self.request.hardware, pair.strategy(1)
        layers = self.request.architecture.num_layers
        placement = place(strategy, layers, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
        assert placement is not None
        return make_layout(self.setting, strategy, placement)

    def requests(self, pair: PairOption) -> Whole:
        """Requests on one replica: for each number of replicas, or the steps of the ladder."""
        if self.request.concurrency_open:
            stated = None if self.setting.serving is None else self.setting.serving.microbatches
            return replica_ladder(pair.decode.attention_dp or 1, stated or pair.decode.pp)
        return -(-self.workload.concurrency // np.arange(1, pair.room + 1))

    def variants(self, pair: PairOption) -> tuple[Replica, ...]:
        """One replica of the pair in the even cut, and where it is another in the best one."""
        requests = self.requests(pair)
        plain = self.held(pair, requests)
        if pair.decode.pp == 1 or not plain.fits.any() or not (self.cuts or self.request.space.engine):
            return (plain,)
        share = -(-int(requests[-1]) // (pair.decode.pp * (pair.decode.attention_dp or 1)))
        batch = TYPICAL_BATCH if self.request.concurrency_open else share
        engine = self.request.space.engine
        found = chosen_cut(self.setting, engine, plain.layout.replicas[0].phases, batch)
        if found is None:
            return (plain,)
        cut = self.held(pair.with_cut(found), requests)
        # A named engine has one cut of its own.
        return (plain, cut) if engine is None else (cut,)

    def held(self, pair: PairOption, requests: Whole) -> Replica:
        """One replica of the pair, and which of `requests` its memory holds."""
        layout = self.layout(pair)
        memory = MemoryColumns(self.setting, layout.replicas[0]).fullest(requests)
        return Replica(pair, layout, requests, memory, memory <= self.usable_bytes)

    def fits_somehow(self, pair: PairOption) -> bool:
        """Whether it fits into memory at its fewest requests."""
        return bool(self.held(pair, self.requests(pair)).fits.any())

    def evaluate(self, index: int, option: PairOption) -> Iterator[Evaluated | TooLarge]:
        """For each cut a row for each number of replicas, and rows for the front; or that it fits in no number of them.

        Cuts are numbered from `index` on.

        Where concurrency is open, a row is at the step that the objective wants: the best one within the limits, or the
        fewest requests that hold them.
        """
        for number, ready in enumerate(self.variants(option), start=index):
            if not ready.fits.any():
                yield self._too_large(ready)
                continue
            rows = self.rows(number, ready)
            chosen = self.chosen(rows, int(ready.fits.sum())) if self.request.concurrency_open else slice(None)
            yield Evaluated(ready.pair, rows.take(chosen), rows)

    def _too_large(self, ready: Replica) -> TooLarge:
        least = int(ready.memory.argmin())
        count = 1 if self.request.concurrency_open else least + 1
        asked = int(ready.requests[least]) if self.request.concurrency_open else self.workload.concurrency
        lacking = int(ready.memory[least]) - self.usable_bytes
        return TooLarge(ready.pair, ready.pair.strategy(count), asked, int(ready.memory[least]), lacking)

    def rows(self, index: int, ready: Replica) -> Columns:
        """All rows of a replica: numbers of replicas, and where concurrency is open the steps that fit for each."""
        layout, pair, requests = ready.layout, ready.pair, ready.requests[ready.fits]
        replicas = np.arange(1, pair.room + 1)
        decode = DecodeColumns(self.setting, layout.phase("decode"), self.batches)
        prefill = PrefillColumns(self.setting, layout.phase("prefill"))
        service = self._service(decode, prefill, requests)
        bits = warning_bits(layout_warnings(self.setting, layout.replicas[0].phases))
        if self.request.concurrency_open:
            replicas = replicas[:, None]
            concurrency, times = replicas * requests[None, :], replicas
        else:
            replicas = replicas[ready.fits]
            concurrency, times = self.workload.concurrency, 1
        machinery = np.array([complexity(pair.strategy(int(count))) for count in replicas.ravel()])
        return columns(
            self.workload,
            prefill=np.int64(index), decode=np.int64(index),
            prefill_replicas=replicas, decode_replicas=replicas, concurrency=concurrency,
            gpus=replicas * (pair.decode.pp * pair.stage),
            ttft=service.ttft, tpot=service.tpot, rate=service.output_tokens_per_s * times,
            memory=ready.memory[ready.fits], complexity=machinery.reshape(replicas.shape),
            warned=bits | UNEVEN_STAGES * (decode.is_uneven(requests) | prefill.is_uneven),
        )  # fmt: skip

    def _service(self, decode: DecodeColumns, prefill: PrefillColumns, requests: Whole) -> Service:
        prompts = Prompts(*prefill.seconds(requests), prefill.apart(requests))
        held = held_back(self.setting, decode.groups, requests, self.workload.output_tokens - 1)
        seconds = PhaseSeconds(prompts, decode.step(requests), 0.0, client_seconds(self.setting), held)
        concurrency = requests if self.request.concurrency_open else self.workload.concurrency
        return colocated_service(seconds, Shares(concurrency, requests), self.workload.output_tokens)

    def chosen(self, rows: Columns, steps: int) -> Whole:
        """Of each number of replicas the row at the best step."""
        over, cost = rows.over.reshape(-1, steps), rows.cost.reshape(-1, steps)
        if self.request.fills_upwards:
            cost = np.broadcast_to(np.arange(steps, dtype=np.float64), cost.shape)
        holds = over <= 0.0
        found = pick(holds.any(axis=1), pick(holds, cost, np.inf).argmin(axis=1), over.argmin(axis=1))
        numbers: Whole = np.arange(len(over)) * steps + found
        return numbers
