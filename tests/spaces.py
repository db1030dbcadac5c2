"""The strategies of a search space: all of them, or a random one without listing millions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product

from hypothesis import assume
from hypothesis import strategies as st

from shardwright.tools.plan.document import Phase, PhaseStrategy, Strategy
from shardwright.tools.plan.placement import even_cut
from shardwright.tools.search.devices import Footprint, end_of_replicas
from shardwright.tools.search.space import Replica, SpaceRequest, colocated_replicas, phase_kinds, split_strategy

# The degrees and the devices of a single-phase replica.
PhaseReplica = tuple[PhaseStrategy, Footprint]


def strategies(request: SpaceRequest) -> Iterator[Strategy]:
    """The whole space: replicas for both phases and single-phase replicas, unless `request` asks for only one."""
    if not request.disaggregated:
        yield from colocated(request)
    if request.disaggregated is not False:
        yield from disaggregated(request)


def colocated(request: SpaceRequest) -> Iterator[Strategy]:
    """Strategies in which each replica serves both phases, with every count of replicas that fits."""
    for replica in colocated_replicas(request):
        for dp in range(1, replica.room.most + 1):
            if request.allows(None, dp):
                yield replica.strategy(dp)


def disaggregated(request: SpaceRequest) -> Iterator[Strategy]:
    """Strategies with prefill-only and decode-only replicas, in every ratio that the devices allow."""
    decodes = list(_phase_replicas(request, "decode"))
    for prefill in _phase_replicas(request, "prefill"):
        for decode in decodes:
            for count in range(1, request.room(prefill[1]) + 1):
                for decode_count in range(1, request.room(decode[1]) + 1):
                    if not _fits(request, prefill, count, decode, decode_count):
                        break
                    if request.allows(count, decode_count):
                        yield split_strategy(prefill[0], decode[0], count, decode_count)


def each_replica(request: SpaceRequest) -> Iterator[Strategy]:
    """Every replica once: as many as fit for both phases, or as many single-phase ones beside one of the other."""
    for replica in colocated_replicas(request):
        yield replica.strategy(replica.room.most)
    prefills, decodes = list(_phase_replicas(request, "prefill")), list(_phase_replicas(request, "decode"))
    for prefill, decode in chain(product(prefills, decodes[:1]), product(prefills[:1], decodes)):
        counts = [(request.room(prefill[1]), 1), (1, request.room(decode[1])), (1, 1)]
        fitting_counts = (pair for pair in counts if _fits(request, prefill, pair[0], decode, pair[1]))
        if (numbers := next(fitting_counts, None)) is not None:
            yield split_strategy(prefill[0], decode[0], *numbers)


def draw_strategy(draw: st.DrawFn, request: SpaceRequest) -> Strategy:
    """Any legal strategy of `request`; a space without one draws again."""
    if request.disaggregated:
        return _draw_apart(draw, request)
    replicas = list(colocated_replicas(request))
    assume(replicas)
    replica = draw(st.sampled_from(replicas))
    return replica.strategy(draw(st.integers(1, replica.room.most)))


def _phase_replicas(request: SpaceRequest, phase: Phase) -> Iterator[PhaseReplica]:
    for kind in phase_kinds(request, phase):
        for stages, room in kind.rooms.items():
            yield Replica(kind, even_cut(request.architecture.num_layers, stages)).degrees(phase), room.footprint


def _draw_apart(draw: st.DrawFn, request: SpaceRequest) -> Strategy:
    decodes = list(_phase_replicas(request, "decode"))
    prefills = [
        prefill
        for prefill in _phase_replicas(request, "prefill")
        if any(_fits(request, prefill, 1, decode, 1) for decode in decodes)
    ]
    assume(prefills)
    prefill = draw(st.sampled_from(prefills))
    decode = draw(st.sampled_from([replica for replica in decodes if _fits(request, prefill, 1, replica, 1)]))
    counts = [
        (x, y)
        for x in range(1, request.room(prefill[1]) + 1)
        for y in range(1, request.room(decode[1]) + 1)
        if _fits(request, prefill, x, decode, y)
    ]
    return split_strategy(prefill[0], decode[0], *draw(st.sampled_from(counts)))


def _fits(request: SpaceRequest, prefill: PhaseReplica, x: int, decode: PhaseReplica, y: int) -> bool:
    taken = end_of_replicas(request.gpus_per_node, 0, x, prefill[1])
    return end_of_replicas(request.gpus_per_node, taken, y, decode[1]) <= request.gpus
