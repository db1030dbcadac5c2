"""Evaluates every x prefill replicas : y decode replicas of every two layouts that the devices hold.

Each side is timed by itself. Before they are paired, a side that needs the same devices as another, and is no quicker,
no simpler and no better placed, is left out: nothing that it is part of can win (counted as pruned).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np

from ..performance.layout import phase_layout
from ..performance.queueing import Prompts, client_seconds
from ..performance.service import PhaseSeconds, Shares, disaggregated_service
from ..performance.setting import Setting
from ..performance.shape import PhaseLayout, ReplicaLayout
from ..performance.transfer import cache_ends, copy_seconds, send_seconds
from ..plan.document import PHASES, Phase, Strategy
from ..plan.placement import place
from .candidate import SearchRequest
from .columns import Columns, Floats, Mask, Whole, columns
from .cuts import TYPICAL_BATCH, chosen_cut
from .footprints import Counts, Footprints, Side
from .inventory import end_of_replicas
from .loads import MOST_SEQUENCES, ladder, shared_batches
from .memory_columns import MemoryColumns
from .phase_columns import Batches, DecodeColumns, PrefillColumns
from .ranking import UNEVEN_STAGES, layout_warnings, phase_complexity, warning_bits
from .space import PhaseOption, phase_options, split_strategy
from .weights import weights_bytes

# Pairs that are looked at together: some 100 MB of columns.
_CHUNK = 500_000


class _Timed:
    """One option of one phase, timed as a replica on the first devices."""

    def __init__(self, setting: Setting, request: SearchRequest, phase: Phase, option: PhaseOption) -> None:
        hardware, count = request.hardware, option.width
        strategy = Strategy(dp=1, gpu_count=count, prefill=option.degrees, decode=option.degrees)
        layers = request.architecture.num_layers
        placement = place(strategy, layers, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
        assert placement is not None and placement[0].prefill is not None
        self.setting, self.option = setting, option
        self.layout: PhaseLayout = phase_layout(setting, phase, option.degrees, placement[0].prefill)
        one, other = (self.layout, None) if phase == "prefill" else (None, self.layout)
        self.memory = MemoryColumns(setting, ReplicaLayout(0, one, other))
        self.warned = warning_bits(layout_warnings(setting, (self.layout,)))
        self.room = option.footprint.room(request.space.nodes, request.space.gpus_per_node)

    @cached_property
    def ends(self) -> int:
        """Devices that send or receive the cache of one request."""
        return cache_ends(self.layout)


class SplitEvaluator:
    """Evaluates disaggregated strategies under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting, self.space = request, setting, request.space
        self.workload = request.workload
        self.usable_bytes = int(setting.hardware.memory_bytes * setting.memory_utilization)
        self._counted: tuple[list[tuple[Side, Mask]], list[tuple[Side, Mask]]] = ([], [])

    @cached_property
    def loads(self) -> Whole:
        """Requests in flight that are looked at."""
        return ladder(MOST_SEQUENCES) if self.request.concurrency_open else np.array([self.workload.concurrency])

    @cached_property
    def batches(self) -> Batches:
        """The batches that any strategy may be asked for."""
        return shared_batches(self.loads, self.space.gpus)

    @cached_property
    def prefills(self) -> tuple[tuple[_Timed, PrefillColumns], ...]:
        """The prefill options whose replica holds the weights and one prompt."""
        return tuple((one, PrefillColumns(self.setting, one.layout)) for one in self._fitting("prefill"))

    @cached_property
    def decodes(self) -> tuple[tuple[_Timed, DecodeColumns], ...]:
        """The decode options whose replica holds the weights and one request."""
        return tuple((one, DecodeColumns(self.setting, one.layout, self.batches)) for one in self._fitting("decode"))

    def _fitting(self, phase: Phase) -> tuple[_Timed, ...]:
        return tuple(one for one in self._options[phase] if isinstance(one, _Timed))

    @cached_property
    def _options(self) -> dict[Phase, tuple[_Timed | PhaseOption, ...]]:
        """The options of each phase, in the even cut and where it is another in the best one.

        Those whose replica holds the weights and one request are timed.
        """
        return {phase: tuple(self._cuts(phase)) for phase in PHASES}

    def _cuts(self, phase: Phase) -> Iterator[_Timed | PhaseOption]:
        weights, engine = weights_bytes(self.setting), self.space.engine
        for option in phase_options(self.space, prefill=phase == "prefill"):
            timed = self._timed(phase, option) if weights <= option.width * self.usable_bytes else None
            cut = None if timed is None or option.degrees.pp == 1 else self._cut(timed)
            if cut is None or engine is None:
                yield timed or option
            if cut is not None:
                other = option.with_cut(cut)
                yield self._timed(phase, other) or other

    def _timed(self, phase: Phase, option: PhaseOption) -> _Timed | None:
        timed = _Timed(self.setting, self.request, phase, option)
        return timed if timed.memory.fullest(np.array([1]))[0] <= self.usable_bytes else None

    def _cut(self, timed: _Timed) -> tuple[int, ...] | None:
        replicas = timed.option.degrees.pp * timed.room * timed.layout.attention_groups
        batch = TYPICAL_BATCH if self.request.concurrency_open else -(-int(self.loads[-1]) // replicas)
        return chosen_cut(self.setting, self.space.engine, (timed.layout,), batch)

    def fits_somehow(self) -> bool:
        """Whether replicas of both kinds fit into memory with one request each, and the devices hold one of each."""
        sides = [[one.option.footprint for one in self._fitting(phase)] for phase in PHASES]
        node = self.space.gpus_per_node
        return any(
            end_of_replicas(node, end_of_replicas(node, 0, 1, prefill), 1, decode) <= self.space.gpus
            for prefill in set(sides[0])
            for decode in set(sides[1])
        )

    def strategy(self, rows: Columns, row: int) -> Strategy:
        """The strategy of one row."""
        prefill = self.prefills[int(rows.prefill[row])][0].option
        decode = self.decodes[int(rows.decode[row])][0].option
        counts = int(rows.prefill_replicas[row]), int(rows.decode_replicas[row])
        return split_strategy(prefill.degrees, decode.degrees, *counts)

    def rows(self) -> Iterator[Columns]:
        """All rows that are not pruned, in pieces, by rising numbers of requests in flight."""
        for concurrency in self.loads:
            sides = (
                self._side(self.prefills, int(concurrency), "prefill"),
                self._side(self.decodes, int(concurrency), "decode"),
            )
            if not len(sides[0]) or not len(sides[1]):
                # With more requests even less fits.
                break
            kept = undominated(sides[0]), undominated(sides[1])
            for counted, side, mask in zip(self._counted, sides, kept, strict=True):
                counted.append((side, mask))
            yield from self._pairs(sides[0].take(kept[0]), sides[1].take(kept[1]), int(concurrency))

    def counts(self) -> Counts:
        """How many strategies there are; of the rows that were made, how many were evaluated and pruned."""
        whole = [
            Footprints.of_options(
                self.space, [one.option if isinstance(one, _Timed) else one for one in self._options[phase]]
            )
            for phase in PHASES
        ]
        total = whole[0].pairs(whole[1], self.space)
        if not self._counted[0]:
            return Counts(total, 0, 0)
        fitting = [Footprints.of_side(side[0][0]) for side in self._counted]
        kept = [Footprints.of_loads(side) for side in self._counted]
        return Counts(total, fitting[0].pairs(fitting[1], self.space), kept[0].pairs(kept[1], self.space))

    def _side(self, timed: Sequence[tuple[_Timed, Any]], concurrency: int, phase: Phase) -> Side:
        parts: list[Side] = []
        for index, (one, times) in enumerate(timed):
            replicas = np.arange(1, one.room + 1)
            requests = -(-concurrency // replicas)
            memory = one.memory.fullest(requests)
            fits = memory <= self.usable_bytes
            if not fits.any():
                continue
            replicas, requests, memory = replicas[fits], requests[fits], memory[fits]
            if phase == "prefill":
                first, second = times.seconds(requests)
                warned = np.full(len(requests), one.warned | UNEVEN_STAGES * times.is_uneven)
            else:
                first = times.step(requests)
                second = np.full(len(requests), copy_seconds(self.setting, one.layout))
                warned = one.warned | UNEVEN_STAGES * times.is_uneven(requests)
            degrees = one.option.degrees
            same = np.full(len(requests), 1)
            parts.append(
                Side(
                    index * same, replicas, requests, one.option.width * same, one.option.footprint.unit * same,
                    one.option.footprint.tail * same, one.ends * same,
                    first, second, memory, phase_complexity(degrees) * same, warned,
                )
            )  # fmt: skip
        if not parts:
            nothing: Any = np.empty(0, dtype=np.int64)
            return Side(*(nothing for _ in fields(Side)))
        return Side(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Side)))

    def _pairs(self, prefill: Side, decode: Side, concurrency: int) -> Iterator[Columns]:
        """Every pair of rows that the devices hold."""
        many = max(1, _CHUNK // len(decode))
        for start in range(0, len(prefill), many):
            first = np.repeat(np.arange(start, min(start + many, len(prefill))), len(decode))
            second = np.tile(np.arange(len(decode)), len(first) // len(decode))
            fits = self._end(prefill, decode, first, second) <= self.space.gpus
            if fits.any():
                yield self._columns(prefill.take(first[fits]), decode.take(second[fits]), concurrency)

    def _end(self, prefill: Side, decode: Side, first: Whole, second: Whole) -> Whole:
        """The first device that is free after both sides."""
        taken = end_of_replicas(self.space.gpus_per_node, 0, prefill.replicas, prefill)[first]
        after = decode.take(second)
        end: Whole = end_of_replicas(self.space.gpus_per_node, taken, after.replicas, after)
        return end

    def _columns(self, prefill: Side, decode: Side, concurrency: int) -> Columns:
        seconds = PhaseSeconds(
            prompts=Prompts(prefill.first, prefill.second, prefill.second),
            step=decode.first,
            transfer=self._transfer(prefill, decode),
            client=client_seconds(self.setting),
        )
        shares = Shares(concurrency, decode.requests)
        service = disaggregated_service(seconds, shares, self.workload.output_tokens)
        replicas = prefill.replicas + decode.replicas
        return columns(
            self.workload,
            prefill=prefill.option, decode=decode.option,
            prefill_replicas=prefill.replicas, decode_replicas=decode.replicas, concurrency=np.int64(concurrency),
            gpus=prefill.replicas * prefill.width + decode.replicas * decode.width,
            ttft=service.ttft, tpot=service.tpot, rate=service.output_tokens_per_s,
            memory=np.maximum(prefill.memory, decode.memory),
            complexity=prefill.complexity + decode.complexity + np.log2(replicas).astype(np.int64) + 4,
            warned=prefill.warned | decode.warned,
        )  # fmt: skip

    def _transfer(self, prefill: Side, decode: Side) -> Floats:
        """Seconds of the cache's way: over the network unless the first replica of each kind are in one domain."""
        domain = self.setting.hardware.nodes_per_domain * self.space.gpus_per_node
        taken = end_of_replicas(self.space.gpus_per_node, 0, prefill.replicas, prefill)
        end = end_of_replicas(self.space.gpus_per_node, taken, 1, decode)
        apart: Mask = end > domain
        links = np.minimum(prefill.ends, decode.ends)
        found = decode.second.copy()
        for count in np.unique(links):
            for between in (False, True):
                rows = (links == count) & (apart == between)
                if rows.any():
                    found[rows] += send_seconds(self.setting, int(count), between_domains=between)
        return found


def undominated(side: Side) -> Mask:
    """The rows of `side` that no other row makes needless: one that takes the same devices and is no worse in anything.

    More ends for a cache never slow its way.
    """
    keep = np.ones(len(side), dtype=np.bool_)
    _, groups = np.unique(np.stack((side.unit, side.tail, side.replicas), axis=1), axis=0, return_inverse=True)
    figures = np.stack((side.first, side.second, side.width, -side.ends, side.complexity, side.warned > 0), axis=1)
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups.ravel() == group)
        values = figures[rows]
        no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
        better = no_worse & (values[:, None, :] < values[None, :, :]).any(axis=2)
        keep[rows] = ~better.any(axis=0)
    return keep
