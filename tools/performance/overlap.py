"""Two-batch overlap: the layers of a stage run as two half batches that take turns on the compute stream and the links.

While one half waits for a collective the other computes. Inside a half operations keep their order; between the halves
turns are fixed, half 0 before half 1 at every wait, as engines run it. What a half gains is not assumed: its kernels
are timed at half the tokens, so small batches lose. The embedding, the head and transfers between stages run whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct, field

from ..plan.blocks import Block
from .overlap_halves import BEFORE, HalvedLayer, Run

# A repetition equals an earlier one when none of its times differs by more than this share of its length.
_SAME_SHARE = 1e-11
_LONGEST_CYCLE = 4

Turn = tuple[int, list[tuple[int, int]]]


class Turns(Struct):
    """Deals out the beats of both halves in turn; each item of a turn is (place in the stage, run there)."""

    _pending: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(default_factory=lambda: ([], []))
    _joins: bool = True

    def enter(self, place: int, layer: HalvedLayer) -> Iterator[Turn]:
        """The turns that the layer at `place` completes; its last beat may continue in the next layer."""
        for number, pair in enumerate(zip_longest(*(half.beats for half in layer.halves), fillvalue=())):
            if number > 0 or not self._joins:
                yield from self.close()
            for pending, beat in zip(self._pending, pair, strict=True):
                pending.extend((place, run) for run in beat)
        self._joins = not any(half.ends_on_links for half in layer.halves)

    def close(self) -> Iterator[Turn]:
        """The turns of all pending beats."""
        first, second = self._pending
        self._pending = [], []
        if first:
            yield 0, first
        if second:
            yield 1, second


class Overlapped(Struct, frozen=True):
    """Seconds of all layers, and how often each run (kind of layer, half, run) lies on the critical path."""

    seconds: float
    on_path: dict[tuple[int, int, int], int]


class _Jump(Struct):
    """Skipped repetitions: `cycles` more of the `events` that begin at `start`."""

    start: int
    events: int
    cycles: int


class _Schedule(Struct):
    """Runs turns one after the other on two resources and remembers what each run waited for."""

    layers: Sequence[HalvedLayer]
    finish: list[float] = field(default_factory=list[float])
    before: list[int] = field(default_factory=list[int])
    runs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    jumps: list[_Jump] = field(default_factory=list[_Jump])
    # The last event on the compute stream and on the links.
    last: list[int] = field(default_factory=lambda: [-1, -1])
    event_of: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])
    # The place that was run before each place.
    previous: dict[int, int] = field(default_factory=dict[int, int])

    def run(self, turn: Turn) -> None:
        """Run one turn of one half."""
        half, items = turn
        for place, number in items:
            run = self.layers[place].halves[half].runs[number]
            latest = self.last[run.on_links]
            start = self.finish[latest] if latest >= 0 else 0.0
            for event in self._waits(place, half, run):
                if self.finish[event] > start:
                    start, latest = self.finish[event], event
            event = len(self.finish)
            self.finish.append(start + run.seconds)
            self.before.append(latest)
            self.runs.append((place, half, number))
            self.event_of[place, half, number] = self.last[run.on_links] = event

    def _waits(self, place: int, half: int, run: Run) -> Iterator[int]:
        for wait in run.waits:
            if wait != BEFORE:
                yield self.event_of[place, half, wait]
            elif (earlier := self.previous.get(place)) is not None:
                for end in self.layers[earlier].halves[half].ends:
                    yield self.event_of[earlier, half, end]

    def state(self, since: int) -> list[float]:
        """When each event from `since` on ended, relative to the end of the compute stream, which comes last."""
        base = self.finish[self.last[0]] if self.last[0] >= 0 else 0.0
        link = self.finish[self.last[1]] - base if self.last[1] >= 0 else 0.0
        return [*(end - base for end in self.finish[since:]), link, base]

    def jump(self, start: int, cycles: int, seconds: float) -> None:
        """Skip `cycles` repetitions of the events from `start` on, which take `seconds` in all."""
        self.jumps.append(_Jump(start, len(self.finish) - start, cycles))
        self.finish = [end + seconds for end in self.finish]

    def path(self) -> Iterator[tuple[int, int, int]]:
        """The critical path backwards, skipped repetitions included."""
        event = max(range(len(self.finish)), key=self.finish.__getitem__, default=-1)
        jumps = list(self.jumps)
        while event >= 0:
            yield self.runs[event]
            event = self.before[event]
            while jumps and 0 <= event < jumps[-1].start:
                if jumps[-1].cycles == 0:
                    jumps.pop()
                    continue
                jumps[-1].cycles -= 1
                event += jumps[-1].events


def overlap_layers(
    kinds: Sequence[HalvedLayer], sequence: Sequence[int], blocks: Sequence[Block], *, fold: bool = True
) -> Overlapped:
    """Times the layers of a stage; `sequence` has the kind of each, `blocks` the stretches that repeat.

    With `fold` the repetitions of a block are run until one equals an earlier one; the others then need no run.
    """
    layers = [kinds[number] for number in sequence]
    schedule, turns = _Schedule(layers), Turns()
    earlier: int | None = None
    for block in blocks:
        rows = [list(range(first, first + block.period)) for first in range(block.first, block.last + 1, block.period)]
        states: list[tuple[int, list[float]]] = []
        row = 0
        while row < len(rows):
            since = len(schedule.finish)
            for place in rows[row]:
                if earlier is not None:
                    schedule.previous[place] = earlier
                for turn in turns.enter(place, layers[place]):
                    schedule.run(turn)
                earlier = place
            row += 1
            if fold and len(schedule.finish) > since:
                states.append((since, schedule.state(since)))
                row += _fold(schedule, states, len(rows) - row)
    for turn in turns.close():
        schedule.run(turn)
    on_path: dict[tuple[int, int, int], int] = {}
    for place, half, number in schedule.path():
        key = (sequence[place], half, number)
        on_path[key] = on_path.get(key, 0) + 1
    return Overlapped(max(schedule.finish, default=0.0), on_path)


def _fold(schedule: _Schedule, states: list[tuple[int, list[float]]], remaining: int) -> int:
    """How many of the `remaining` repetitions are skipped because the last one equals one shortly before it."""
    _, now = states[-1]
    for cycle in range(1, min(_LONGEST_CYCLE, len(states) - 1) + 1):
        _, then = states[-1 - cycle]
        length = now[-1] - then[-1]
        if len(then) != len(now) or length <= 0.0 or remaining < cycle:
            continue
        if all(abs(a - b) <= _SAME_SHARE * length for a, b in zip(now[:-1], then[:-1], strict=True)):
            cycles = remaining // cycle
            schedule.jump(states[-cycle][0], cycles, cycles * length)
            return cycles * cycle
    return 0
