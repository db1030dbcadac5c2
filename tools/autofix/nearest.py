"""Legal strategies that fit into memory, nearest to an author's first: a best-first walk over pairs of phase options.

The walk is exact: the next strategy is the nearest of all remaining ones, by `distance.preference`. After
`MOST_LAYOUTS` layouts or `MOST_PAIRS` pairs no more are looked at: what was found is left, and `is_complete` is false.

Options are those of the search's space and the author's own, if legal: stage widths that are neither part of a node nor
whole nodes, sequence shards of a short prompt, attention groups of a dense model, cuts of the stages. No relaxation is
used that the policy does not name, and constraints are kept.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import count, groupby
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from ..checkpoint import checkpoint
from ..errors import InputError
from ..performance.layout import LoadedLayout, make_layout
from ..performance.memory import shortfall_bytes
from ..performance.weights import model_bytes
from ..plan.document import Phase, PhaseStrategy, Strategy
from ..plan.layout import ReplicaLayout
from ..plan.placement import StageDegrees, gpu_count, layout_key, phase_width, stage_width
from ..search.candidate import SearchRequest
from ..search.devices import replica_numbers
from ..search.search import base_setting
from ..search.space import SpaceRequest, split_strategy, stage_degrees, stage_widths
from .distance import pair_preference, phase_distance, stages_distance

_NODE = 8
# Layouts (counted per node of devices) whose memory is checked, and pairs, before the walk ends.
MOST_LAYOUTS = 4000
MOST_PAIRS = 200_000
# Sorting this many strategies takes as long as checking the memory of one layout.
_STRATEGIES_OF_A_LAYOUT = 25
# Up to this many replicas that serve both phases every number is tried; above, numbers in steps and the author's.
_ALL_ALIKE = 1024

_Key = tuple[float, int, int, str]
# Whether this many replicas hold their requests.
_Holds = Callable[[int], bool]
_Keyed = Iterator[tuple[_Key, Strategy]]
# Replicas for prefill and for decode; the same number twice if the replicas serve both.
_Counts = list[tuple[int, int]]


class Option(Struct, frozen=True):
    """Legal degrees of one phase, and their distance from the author's."""

    degrees: PhaseStrategy
    cost: float

    @property
    def width(self) -> int:
        """Devices of a replica of this phase."""
        return phase_width(self.degrees)


def phase_options(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> list[Option]:
    """Every option of `phase` that the devices have room for, nearest first; `replicas` is left open."""
    options: dict[PhaseStrategy, Option] = {}
    has_ffn = space.architecture.has_split_ffn
    # Also options: legal degrees that the author uses and a search leaves out unless asked.
    faults = space.judge.faults(StageDegrees.of(author, phase))
    accepting = replace(space, accepted=frozenset(rule.id for rule, fault in faults if fault.severity != "error"))
    for stage in _stages(accepting, author, phase):
        # With the author's number of stages; the cost of another number is added separately.
        with_author_pp = stage.model_copy(update={"pp": author.pp})
        cost = phase_distance(author, with_author_pp, phase, has_ffn=has_ffn)
        for degrees in _with_stages(space, stage, author, phase):
            if degrees.stage_layers is None:
                options.setdefault(degrees, Option(degrees, cost + stages_distance(author, degrees.pp)))
            else:
                options.setdefault(degrees, Option(degrees, phase_distance(author, degrees, phase, has_ffn=has_ffn)))
    return sorted(options.values(), key=lambda option: (option.cost, option.width, option.degrees.model_dump_json()))


def _stages(space: SpaceRequest, author: PhaseStrategy, phase: Phase) -> Iterator[PhaseStrategy]:
    """Legal degrees of one stage: the author's, then those of the space."""
    author_stage = author.model_copy(update={"pp": 1, "replicas": None, "stage_layers": None})
    width = stage_width(author_stage)
    if (
        width <= space.gpus
        and space.judge.accepts(StageDegrees.of(author_stage, phase))
        and space.keeps_stage(phase, author_stage, width)
    ):
        yield author_stage
    for stage in sorted({*stage_widths(space)} | {fitting for fitting in (width,) if fitting <= space.gpus}):
        for degrees in stage_degrees(space, stage, phase):
            # With the author's exchange of sequence shards, if that is legal.
            is_split = degrees.sp > 1 and author.sp_kind is not None
            exchanged = degrees.model_copy(update={"sp_kind": author.sp_kind}) if is_split else degrees
            yield exchanged if space.judge.accepts(StageDegrees.of(exchanged, phase)) else degrees


def _with_stages(
    space: SpaceRequest, stage: PhaseStrategy, author: PhaseStrategy, phase: Phase
) -> Iterator[PhaseStrategy]:
    """`stage` with every legal number of stages, each with the even cut, and with the author's cut if it fits."""
    layers, width = space.architecture.num_layers, stage_width(stage)
    for pp in range(1, min(layers, space.gpus // width) + 1):
        if not space.keeps_pipeline(phase, width, pp):
            continue
        cut = author.stage_layers
        if cut is not None and len(cut) == pp > 1 and sum(cut) == layers and min(cut) >= 1:
            yield stage.model_copy(update={"pp": pp, "stage_layers": cut})
        yield stage.model_copy(update={"pp": pp})


class _Frontier(Struct, frozen=True):
    """One prefill option with a decode option, at `place` in the list of its decode partners; later ones follow."""

    prefill: int
    decode: int
    place: int
    is_apart: bool


class Nearest:
    """Walks the strategies for `request` by their distance from `author`."""

    def __init__(self, request: SearchRequest, author: Strategy) -> None:
        self.request, self.author = request, author
        self.setting, self.space = base_setting(request), request.space
        self.is_complete = True
        self.looked_at = 0
        least = model_bytes(self.setting) / request.usable_bytes_per_gpu
        phases: tuple[tuple[Phase, PhaseStrategy], ...] = (("prefill", author.prefill), ("decode", author.decode))
        options = {phase: phase_options(self.space, degrees, phase) for phase, degrees in phases}
        # The phases without any option: rules or the number of devices refuse all degrees.
        self.refused: tuple[Phase, ...] = tuple(phase for phase, _ in phases if not options[phase])
        # Options that could hold the weights if these were spread evenly.
        self.prefill, self.decode = (
            [option for option in of_phase if option.width >= least] for of_phase in options.values()
        )
        self._least: dict[tuple[Phase, int], int | None] = {}
        self._prefill_fits: dict[int, bool] = {}

    def strategies(self) -> Iterator[Strategy]:
        """Every strategy that fits into memory, nearest first."""
        serial = count()
        heap: list[tuple[_Key, int, _Frontier | Strategy, _Keyed | None]] = []

        def push(key: _Key, entry: _Frontier | Strategy, remaining: _Keyed | None = None) -> None:
            heapq.heappush(heap, (key, next(serial), entry, remaining))

        pairs = 0
        for is_apart in (False, True):
            for first in self._opened(0, is_apart=is_apart):
                push(self._bound(first), first)
        while heap:
            checkpoint()
            _, _, entry, remaining = heapq.heappop(heap)
            if isinstance(entry, Strategy):
                yield entry
            elif not self.is_complete:
                continue
            else:
                pairs += 1
                for frontier in self._beyond(entry):
                    push(self._bound(frontier), frontier)
                remaining = self._of_pair(entry)
            following = next(remaining, None) if remaining is not None else None
            if following is not None:
                push(following[0], following[1], remaining)
            if self.looked_at > MOST_LAYOUTS or pairs > MOST_PAIRS:
                # No more pairs are opened; what was found is still legal.
                self.is_complete = False

    def _partners(self, prefill: int, *, is_apart: bool) -> Sequence[int]:
        """Numbers of decode options for a prefill option, nearest first; with an engine those of the same layout."""
        if is_apart or self.space.engine is None:
            return range(len(self.decode))
        return self._by_layout.get(layout_key(self.prefill[prefill].degrees), ())

    @cached_property
    def _by_layout(self) -> dict[tuple[object, ...], list[int]]:
        by_layout: dict[tuple[object, ...], list[int]] = {}
        for number, option in enumerate(self.decode):
            by_layout.setdefault(layout_key(option.degrees), []).append(number)
        return by_layout

    def _bound(self, frontier: _Frontier) -> _Key:
        """A lower bound on the key of every strategy of this pair and of later ones."""
        cost = self.prefill[frontier.prefill].cost + self.decode[frontier.decode].cost
        return round(cost, 9) - 1e-9, -1, 0, ""

    def _opened(self, prefill: int, *, is_apart: bool) -> Iterator[_Frontier]:
        """The first pair of the next prefill option, from number `prefill` on, that fits alone and has a partner."""
        for number in range(prefill, len(self.prefill)):
            partners = self._partners(number, is_apart=is_apart)
            if partners and self._prefill_fits_alone(number):
                yield _Frontier(number, partners[0], 0, is_apart)
                return

    def _beyond(self, pair: _Frontier) -> Iterator[_Frontier]:
        """The next pair of the same prefill option; after its first pair also the first of the next option."""
        partners = self._partners(pair.prefill, is_apart=pair.is_apart)
        for rank in range(pair.place + 1, len(partners)):
            if self._least_replicas("decode", partners[rank]) is not None:
                yield _Frontier(pair.prefill, partners[rank], rank, pair.is_apart)
                break
        if pair.place == 0:
            yield from self._opened(pair.prefill + 1, is_apart=pair.is_apart)

    def _prefill_fits_alone(self, number: int) -> bool:
        """Whether the devices hold prefill alone, with one prompt per replica."""
        if number not in self._prefill_fits:
            holds = self._side_holds("prefill", self.prefill[number].degrees)
            self._prefill_fits[number] = holds(self.request.workload.concurrency)
        return self._prefill_fits[number]

    def _of_pair(self, pair: _Frontier) -> _Keyed:
        """The strategies of one pair that fit into memory, nearest first."""
        prefill, decode = self.prefill[pair.prefill], self.decode[pair.decode]
        if self._least_replicas("decode", pair.decode) is None:
            return iter(())
        counts = self._apart(pair) if pair.is_apart else self._together(prefill, decode)
        self.looked_at += len(counts) // _STRATEGIES_OF_A_LAYOUT
        return self._in_order(prefill, decode, counts, is_apart=pair.is_apart)

    def _in_order(self, prefill: Option, decode: Option, counts: _Counts, *, is_apart: bool) -> _Keyed:
        """The strategies with these counts of replicas, nearest first, each built when it is asked for."""
        degrees = prefill.degrees, decode.degrees
        key_of = pair_preference(self.author, *degrees, prefill.cost + decode.cost, is_apart=is_apart)
        keyed = sorted((key_of(*count), count) for count in counts)
        for key, same_key in groupby(keyed, key=itemgetter(0)):
            strategies = (
                split_strategy(*degrees, *count) if is_apart else _shared(*degrees, count[0]) for _, count in same_key
            )
            written = sorted((strategy.model_dump_json(), strategy) for strategy in strategies)
            yield from (((*key, text), strategy) for text, strategy in written)

    def _together(self, prefill: Option, decode: Option) -> _Counts:
        """Counts of replicas that serve both phases."""
        width = max(prefill.width, decode.width)
        room = self.space.gpus // width
        fewest = (
            _fewest(room, self._share_fits(self.layout(_shared(prefill.degrees, decode.degrees, 1)))) if room else None
        )
        if fewest is None:
            return []
        stated = self.author.dp, min(self.author.gpu_count // width, room)
        counts = replica_numbers(fewest, room, stated, all_of=_ALL_ALIKE)
        return [(dp, dp) for dp in counts if self.space.allows(None, dp)]

    def _apart(self, pair: _Frontier) -> _Counts:
        """Counts of replicas for each phase, where the phases are apart."""
        gpus, widths = self.space.gpus, (self.prefill[pair.prefill].width, self.decode[pair.decode].width)
        least = self._least_replicas("prefill", pair.prefill), self._least_replicas("decode", pair.decode)
        if least[0] is None or least[1] is None:
            return []
        stated = self.author.prefill.replicas, self.author.decode.replicas
        return [
            (x, y)
            for x in replica_numbers(least[0], (gpus - least[1] * widths[1]) // widths[0], stated[:1])
            for y in replica_numbers(least[1], (gpus - x * widths[0]) // widths[1], stated[1:])
            if self.space.allows(x, y)
        ]

    def _least_replicas(self, phase: Phase, number: int) -> int | None:
        """The fewest replicas of one phase alone that hold their share; `None` if no number of them does."""
        if (phase, number) not in self._least:
            chosen = (self.prefill if phase == "prefill" else self.decode)[number]
            room = self.space.gpus // chosen.width
            self._least[phase, number] = _fewest(room, self._side_holds(phase, chosen.degrees))
        return self._least[phase, number]

    def _side_holds(self, phase: Phase, degrees: PhaseStrategy) -> _Holds:
        """A test whether a number of replicas of one phase hold their share of the requests."""
        both = self.layout(_shared(degrees, degrees, 1))
        if both is None:
            return lambda _: False
        served = both.replicas[0]
        side = ReplicaLayout(0, served.prefill, None) if phase == "prefill" else ReplicaLayout(0, None, served.decode)
        return self._share_fits(replace(both, replicas=(side,), caches={}))

    def _share_fits(self, layout: LoadedLayout | None) -> _Holds:
        """A test whether a number of replicas like that of `layout` fit into every device's memory (rule ME001)."""
        if layout is None:
            return lambda _: False
        self.looked_at += max(1, len(layout.devices) // _NODE)
        concurrency = self.request.workload.concurrency
        return lambda replicas: shortfall_bytes(layout, -(-concurrency // replicas)) <= 0

    def layout(self, strategy: Strategy) -> LoadedLayout | None:
        """The layout of `strategy` on devices of the inventory; `None` if these are too few."""
        if gpu_count(strategy) > self.request.facts.gpus:
            return None
        try:
            return make_layout(self.setting, strategy)
        except InputError:
            return None


def _shared(prefill: PhaseStrategy, decode: PhaseStrategy, dp: int) -> Strategy:
    """`dp` replicas that serve both phases."""
    width = max(phase_width(prefill), phase_width(decode))
    return Strategy(dp=dp, gpu_count=dp * width, prefill=prefill, decode=decode)


def _fewest(most: int, holds: _Holds) -> int | None:
    """The least number up to `most` for which `holds`, which is monotone; `None` if not even `most` holds."""
    return 1 + bisect_left(range(1, most), True, key=holds) if most >= 1 and holds(most) else None
