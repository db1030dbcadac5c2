"""Draws one strategy out of a search space, without listing the space: prefill and decode apart give millions."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st

from shardwright.tools.plan.document import Strategy
from shardwright.tools.search.inventory import end_of_replicas
from shardwright.tools.search.space import PhaseOption, SpaceRequest, pair_options, phase_options, split_strategy


def draw_strategy(draw: st.DrawFn, request: SpaceRequest) -> Strategy:
    """Any legal strategy of `request`; a space without one draws again."""
    if request.disaggregated:
        return _draw_apart(draw, request)
    pairs = list(pair_options(request))
    assume(pairs)
    pair = draw(st.sampled_from(pairs))
    return pair.strategy(draw(st.integers(1, pair.room)))


def _draw_apart(draw: st.DrawFn, request: SpaceRequest) -> Strategy:
    prefills = [option for option in phase_options(request, prefill=True) if option.width < request.gpus]
    assume(prefills)
    prefill = draw(st.sampled_from(prefills))
    decodes = [option for option in phase_options(request, prefill=False) if _fits(request, prefill, 1, option, 1)]
    assume(decodes)
    decode = draw(st.sampled_from(decodes))
    counts = [
        (x, y)
        for x in range(1, request.gpus // prefill.width + 1)
        for y in range(1, request.gpus // decode.width + 1)
        if _fits(request, prefill, x, decode, y)
    ]
    return split_strategy(prefill.degrees, decode.degrees, *draw(st.sampled_from(counts)))


def _fits(request: SpaceRequest, prefill: PhaseOption, x: int, decode: PhaseOption, y: int) -> bool:
    taken = end_of_replicas(request.gpus_per_node, 0, x, prefill.footprint)
    return end_of_replicas(request.gpus_per_node, taken, y, decode.footprint) <= request.gpus
