"""Evaluates every x prefill replicas : y decode replicas of every two layouts that the devices hold.

Each side is timed by itself. Before they are paired, a side that needs the same devices as another, and is no quicker,
no simpler and no better placed, is left out, as is one that alone takes longer than a limit: nothing that it is part
of can win (counted as pruned).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..checkpoint import checkpoint
from ..performance.queueing import Prompts, client_seconds
from ..performance.service import PhaseSeconds, disaggregated_service
from ..performance.setting import Setting
from ..performance.transfer import counted_handoff_seconds, send_seconds
from ..plan.document import PHASES, Strategy
from .arrays import Floats, Mask, Whole, floats, wholes
from .candidate import SearchRequest
from .columns import Columns, columns
from .footprints import Counts, Footprints, Side
from .inventory import billed_gpus, end_of_replicas
from .loads import MOST_SEQUENCES, ladder, shared_batches, yielded
from .sides import PhaseSides
from .space import split_strategy

# Pairs that are looked at together: some 100 MB of columns.
_CHUNK = 500_000
# Rows that are compared with all before them at a time.
_BLOCK = 256


class SplitEvaluator:
    """Evaluates disaggregated strategies under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting, self.space = request, setting, request.space
        self.workload = request.workload
        # Of both sides, under each load: the rows that can hold the limits, and those of them that were paired.
        self._timely: tuple[list[tuple[Side, Mask]], list[tuple[Side, Mask]]] = ([], [])
        self._kept: tuple[list[tuple[Side, Mask]], list[tuple[Side, Mask]]] = ([], [])

    @cached_property
    def loads(self) -> Whole:
        """Requests in flight that are looked at."""
        return ladder(MOST_SEQUENCES) if self.request.concurrency_open else np.array([self.workload.concurrency])

    @cached_property
    def sides(self) -> tuple[PhaseSides, PhaseSides]:
        """The replicas that prefill, and those that decode."""
        batches = shared_batches(self.loads, self.space.gpus)
        first, second = (PhaseSides(self.request, self.setting, phase, batches, self.loads) for phase in PHASES)
        return first, second

    def fits_somehow(self) -> bool:
        """Whether replicas of both kinds fit into memory at their fewest requests, and the devices hold them."""
        prefill, decode = (side.fitting() for side in self.sides)
        return prefill.pairs(decode, self.space) > 0

    def strategy(self, rows: Columns, row: int) -> Strategy:
        """The strategy of one row."""
        prefill = self.sides[0].replicas[int(rows.prefill[row])].degrees
        decode = self.sides[1].replicas[int(rows.decode[row])].degrees
        counts = int(rows.prefill_replicas[row]), int(rows.decode_replicas[row])
        return split_strategy(prefill, decode, *counts)

    def rows(self) -> Iterator[Columns]:
        """All rows that are not pruned, in pieces, by rising numbers of requests in flight."""
        for number, concurrency in enumerate(self.loads):
            sides = self.sides[0].side(number), self.sides[1].side(number)
            if not len(sides[0]) or not len(sides[1]):
                # With more requests even less fits.
                break
            limits_ms = self.workload.ttft_ms_max, self.workload.tpot_ms_max
            timely = [within(side, limit_ms) for side, limit_ms in zip(sides, limits_ms, strict=True)]
            kept = [mask & undominated(side) for side, mask in zip(sides, timely, strict=True)]
            for place, side in enumerate(sides):
                self._timely[place].append((side, timely[place]))
                self._kept[place].append((side, kept[place]))
            yield from self._pairs(sides[0].take(kept[0]), sides[1].take(kept[1]), int(concurrency))

    def counts(self) -> Counts:
        """How many strategies there are; of the rows that were made, how many were evaluated and pruned."""
        whole = [Footprints.of_layouts(self.space, side.prints) for side in self.sides]
        total = whole[0].pairs(whole[1], self.space)
        if not self._kept[0]:
            return Counts(total, 0, 0, 0)
        fitting = [Footprints.of_side(side[0][0]) for side in self._kept]
        timely, kept = ([Footprints.of_loads(side) for side in sides] for sides in (self._timely, self._kept))
        return Counts(total, *(one[0].pairs(one[1], self.space) for one in (fitting, timely, kept)))

    def _pairs(self, prefill: Side, decode: Side, concurrency: int) -> Iterator[Columns]:
        """Every pair of rows that the devices hold."""
        many = max(1, _CHUNK // len(decode))
        for start in range(0, len(prefill), many):
            first = np.repeat(np.arange(start, min(start + many, len(prefill))), len(decode))
            second = np.tile(np.arange(len(decode)), len(first) // len(decode))
            fits = self._end(prefill, decode, first, second) <= self.space.gpus
            fits &= self.space.allowed(prefill.replicas[first], decode.replicas[second])
            if fits.any():
                yield self._columns(prefill.take(first[fits]), decode.take(second[fits]), concurrency)

    def _end(self, prefill: Side, decode: Side, first: Whole, second: Whole) -> Whole:
        """The first device that is free after both sides."""
        taken = wholes(end_of_replicas(self.space.gpus_per_node, 0, prefill.replicas, prefill))[first]
        after = decode.take(second)
        return wholes(end_of_replicas(self.space.gpus_per_node, taken, after.replicas, after))

    def _columns(self, prefill: Side, decode: Side, concurrency: int) -> Columns:
        checkpoint()
        seconds = PhaseSeconds(
            prompts=Prompts(prefill.first, prefill.second, prefill.second),
            step=decode.first,
            transfer=self._transfer(prefill, decode),
            client=client_seconds(self.setting),
        )
        service = disaggregated_service(seconds, concurrency, self.workload.output_tokens)
        replicas = prefill.replicas + decode.replicas
        gpus = prefill.replicas * prefill.width + decode.replicas * decode.width
        return columns(
            self.workload,
            prefill=prefill.option, decode=decode.option,
            prefill_replicas=prefill.replicas, decode_replicas=decode.replicas, concurrency=wholes(concurrency),
            gpus=gpus, billed=self._billed(prefill, decode) if self.request.workload.objective == "cost" else gpus,
            ttft=service.ttft, tpot=service.tpot, rate=yielded(self.request, floats(service.output_tokens_per_s)),
            memory=np.maximum(prefill.memory, decode.memory),
            complexity=prefill.complexity + decode.complexity + np.log2(replicas).astype(np.int64) + 4,
            warned=prefill.warned | decode.warned,
        )  # fmt: skip

    def _billed(self, prefill: Side, decode: Side) -> Whole:
        """Devices of all nodes that both kinds of replica are in."""
        node = self.space.gpus_per_node
        taken = end_of_replicas(node, 0, prefill.replicas, prefill)
        return wholes(billed_gpus(node, end_of_replicas(node, taken, decode.replicas, decode)))

    def _transfer(self, prefill: Side, decode: Side) -> Floats:
        """Seconds to hand on a request: its cache takes a network unless the first of each kind are in one domain."""
        domain = self.setting.hardware.nodes_per_domain * self.space.gpus_per_node
        taken = end_of_replicas(self.space.gpus_per_node, 0, prefill.replicas, prefill)
        apart = wholes(end_of_replicas(self.space.gpus_per_node, taken, 1, decode)) > domain
        links = np.minimum(prefill.ends, decode.ends)
        found = decode.second + counted_handoff_seconds(self.setting)
        for count in np.unique(links):
            for between in (False, True):
                rows = (links == count) & (apart == between)
                if rows.any():
                    found[rows] += send_seconds(self.setting, int(count), between_domains=between)
        return found


def within(side: Side, limit_ms: float | None) -> Mask:
    """The rows of `side` whose one prompt, or one step, is within the limit, and of the same devices the quickest.

    What a user waits for is never shorter, so that no pair of another row holds the limit, or misses it by less.
    """
    if limit_ms is None:
        return np.ones(len(side), dtype=np.bool_)
    keep = side.first <= limit_ms / 1e3
    sequence = np.lexsort((side.first, side.replicas, side.tail, side.unit))
    keep[[rows[0] for rows in _by_devices(side, sequence)]] = True
    return keep


def _by_devices(side: Side, sequence: Whole) -> list[Whole]:
    """The rows of `side` that take the same devices together, of a `sequence` in which they are neighbours."""
    places = np.stack((side.unit, side.tail, side.replicas), axis=1)[sequence]
    return np.split(sequence, np.flatnonzero((places[1:] != places[:-1]).any(axis=1)) + 1)


def undominated(side: Side) -> Mask:
    """The rows of `side` that no other row makes needless: one that takes the same devices and is no worse in anything.

    More ends for a cache never slow its way.
    """
    keep = np.ones(len(side), dtype=np.bool_)
    figures = np.stack((side.first, side.second, side.width, -side.ends, side.complexity, side.warned > 0), axis=1)
    # What makes a row needless comes before it where rows of the same devices are sorted by their figures.
    sequence = np.lexsort((*figures.T[::-1], side.replicas, side.tail, side.unit))
    for rows in _by_devices(side, sequence):
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            before = rows[: start + _BLOCK]
            before = before[keep[before]]
            no_worse = (figures[before, None, :] <= figures[None, block, :]).all(axis=2)
            better = no_worse & (figures[before, None, :] < figures[None, block, :]).any(axis=2)
            keep[block] = ~better.any(axis=0)
    return keep
