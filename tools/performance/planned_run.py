"""The simulated run of a plan's load, the source of every figure of a plan that users see.

Without a stated rate there are as many users as the plan's concurrency, who start together and each send ten requests,
the next when the last is answered, as the engines' benchmarks do. With one, requests come at random. Lengths differ
by request where the workload says how they spread (`plan/load`). Where prompts share beginnings (`plan/prefixes`),
replicas are simulated together, and their number does not lengthen the run.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from ..caches import Cache
from ..errors import InputError
from ..plan.load import burstiness_of, think_seconds
from ..plan.performance import HostMemoryEstimate, PrefixCacheEstimate
from .capacity import host_gb_s
from .layout import LoadedLayout
from .pass_loads import prefill_loads
from .serving.inputs import MOST_REQUESTS
from .serving.load import ClosedLoop, Lengths, OpenLoop, ServingTimes, closed_loop
from .serving_estimate import serve

# Users beyond this on a replica only wait in line, which is added instead of simulated.
MOST_USERS = 4096
# The most passes that a replica's prompts are cut into, unless that leaves less than one request per user.
_MOST_PASSES = 20_000
# An open run lasts this many times as long as a request; this first share fills the server and does not count.
_LIVES, _WARMUP_SHARE = 10, 0.4
_FEWEST_OPEN, _MOST_OPEN = 500, 10_000
# At least so many requests per replica when they differ or come in bursts, so that the 99th percentile has enough data.
_FEWEST_UNLIKE = 1500
# How often a run is made longer: because its requests took longer than expected, or (by this factor) because it does
# not show whether they pile up.
_LONGER, _FACTOR = 2, 4
# The most requests when replicas are simulated together: at a rate, and of users who wait for their answers.
_MOST_OPEN_TOGETHER, _MOST_TOGETHER = 5_000, 20_000
# A plan that keeps up with a rate but not with this much more is close to a growing queue: waits go as 1 / (1 - load).
RATE_RESERVE = 0.05
# A plan that answers a smaller share of requests than this is too slow; no longer run is needed.
_FAR_BEHIND = 0.75


class PlannedRun(Struct, frozen=True):
    """What the users of a plan see under its load, a description of the load, and its number of requests."""

    times: ServingTimes
    load: str
    requests: int


def planned_run(layout: LoadedLayout) -> PlannedRun:
    """The run of the load that the workload of `layout` states, simulated once.

    Raises InputError: a fact that the arithmetic needs is not known, or the load cannot be served at all.
    """
    return _RUNS.get(layout.caches, "planned", lambda: _planned(layout))


def keeps_reserve(layout: LoadedLayout, run: PlannedRun) -> bool:
    """Whether `layout` keeps up with `RATE_RESERVE` more than its rate; `True` without a rate. `run` is its run.

    Raises InputError: as `planned_run`.
    """
    rate = layout.setting.workload.request_rate
    if rate is None:
        return True
    return not (run.times.saturated or _open(layout, rate * (1.0 + RATE_RESERVE)).times.saturated)


_RUNS = Cache[str, PlannedRun]("the run of the planned load")
_TIMES = Cache[str, ServingTimes]("what the user of a single request sees")


def _planned(layout: LoadedLayout) -> PlannedRun:
    # Refuses too many chunks before they are simulated.
    prefill_loads(layout.setting, 1)
    rate = layout.setting.workload.request_rate
    return _users(layout) if rate is None else _open(layout, rate)


def run_alone(layout: LoadedLayout) -> ServingTimes:
    """What the user of a single request of mean lengths sees with `layout` to themselves.

    Raises InputError: a fact that the arithmetic needs is not known, or the request cannot be served at all.
    """
    return _TIMES.get(layout.caches, "alone", lambda: serve(layout, ClosedLoop(1, 1), _mean_lengths(layout)))


def lengths_of(layout: LoadedLayout) -> Lengths:
    """The lengths of the plan's requests, at most what the model can attend to."""
    setting = layout.setting
    lengths = replace(_mean_lengths(layout), prefixes=layout.setting.workload.prefixes)
    if not setting.are_unlike:
        return lengths
    return replace(lengths, stated=setting.spread, most_tokens=setting.architecture.max_position_embeddings)


def _mean_lengths(layout: LoadedLayout) -> Lengths:
    setting = layout.setting
    return Lengths(setting.prompt_tokens, max(1, setting.request_tokens - setting.prompt_tokens))


def prefix_cache_of(layout: LoadedLayout, times: ServingTimes) -> PrefixCacheEstimate | None:
    """The prefix-cache figures of the run and their source; `None` if none were simulated."""
    prefixes, engine = layout.setting.workload.prefixes, layout.setting.engine.facts
    if prefixes is None or times.prefix_hit_share is None or times.cache_filled_share is None:
        return None
    whose = "as stated" if prefixes.routing is not None else "as a balancer by requests in flight does; none is stated"
    servers = len(layout.prefill_replicas if layout.is_disaggregated else layout.decode_replicas)
    dealt = "" if servers == 1 else f"; requests dealt {prefixes.router.replace('_', ' ')}, {whose}"
    blocks = "tokens" if engine.cache_block_tokens == 1 else f"blocks of {engine.cache_block_tokens} tokens"
    return PrefixCacheEstimate(
        hit_share=times.prefix_hit_share,
        filled_share=times.cache_filled_share,
        source=f"simulated: {blocks} of {engine.title}, the longest unused give way first{dealt}",
        host_memory=_host_memory_of(layout, times),
    )


def _host_memory_of(layout: LoadedLayout, times: ServingTimes) -> HostMemoryEstimate | None:
    """What host memory for the cache saves, by comparison with a run without it; `None` if not in use."""
    setting, gb_s = layout.setting, host_gb_s(layout.setting)
    offload = setting.serving.kv_offload
    if offload is None or gb_s is None:
        return None
    serving = setting.serving.model_copy(update={"kv_offload": None})
    without = planned_run(layout.with_setting(setting.with_workload(setting.workload, serving))).times
    return HostMemoryEstimate(
        bytes_per_gpu=offload.bytes_per_gpu,
        gb_s=gb_s,
        hit_share=times.host_hit_share,
        hit_share_without=without.prefix_hit_share or 0.0,
        ttft_ms_without=None if without.saturated else without.ttft.mean * 1e3,
    )


def _users(layout: LoadedLayout) -> PlannedRun:
    users, think_s = layout.setting.workload.concurrency, think_seconds(layout.setting.workload)
    replicas = max(1, len(layout.decode_replicas))
    simulated = min(users, MOST_USERS * replicas, _MOST_TOGETHER // lengths_of(layout).turns)
    if simulated < users and think_s > 0.0:
        raise InputError(
            f"workload.concurrency: {users:,} users who think are more than are simulated on {replicas} replicas "
            f"({simulated:,}); state the request_rate that they make"
        )
    times = serve(layout, _closed(layout, simulated), lengths_of(layout))
    if simulated < users:
        times = _with_line(times, users - simulated, layout.setting.workload.output_tokens)
    thinking = f" who think {think_s:g} s" if think_s > 0.0 else ""
    return PlannedRun(
        times, f"closed loop, {users:,} user{'' if users == 1 else 's'}{thinking}", _closed(layout, simulated).requests
    )


def _closed(layout: LoadedLayout, users: int) -> ClosedLoop:
    # Of like replicas one is simulated, but all of a disaggregated plan.
    are_together = layout.is_disaggregated or layout.setting.workload.prefixes is not None
    replicas = 1 if are_together else max(1, len(layout.decode_replicas))
    whole = closed_loop(users, replicas)
    each = whole.requests // users
    if layout.setting.are_unlike:
        each = max(each, math.ceil(_FEWEST_UNLIKE * replicas / users))
    turns = lengths_of(layout).turns
    # Only whole conversations.
    each = turns * max(1, min(each, _most_requests(layout) // users) // turns)
    return replace(whole, requests=each * users, think_s=think_seconds(layout.setting.workload))


def _most_requests(layout: LoadedLayout) -> int:
    """The most requests whose prompts fit into the passes that are simulated."""
    passes = math.ceil(layout.setting.prompt_tokens / layout.setting.prefill_chunk_tokens)
    return _MOST_PASSES * max(1, len(layout.decode_replicas)) // passes


def _with_line(times: ServingTimes, others: int, output_tokens: int) -> ServingTimes:
    """`times` with the wait of `others` more requests in line: requests in flight over the rate (Little's law)."""
    wait = others * output_tokens / times.output_tokens_per_s
    return replace(times, ttft=times.ttft.shifted(wait), end_to_end=times.end_to_end.shifted(wait))


def _open(layout: LoadedLayout, rate_per_s: float) -> PlannedRun:
    """Simulate a rate for several times the duration of a request, and until it shows whether requests pile up."""
    lengths = lengths_of(layout)
    burstiness = burstiness_of(layout.setting.workload)
    are_unlike = layout.setting.are_unlike or burstiness != 1.0
    are_together = lengths.prefixes is not None
    replicas = 1 if are_together else max(1, len(layout.decode_replicas))
    unlike = _FEWEST_UNLIKE * replicas if are_unlike else 0
    fewest = max(_FEWEST_OPEN, min(unlike, MOST_REQUESTS))
    most = max(_MOST_OPEN_TOGETHER if are_together else _MOST_OPEN, fewest)
    most = max(_FEWEST_OPEN // 10, min(most, _most_requests(layout)))
    # From one turn of a conversation to the next.
    think_s = think_seconds(layout.setting.workload)

    def served(count: int, lives: int) -> ServingTimes:
        # Filling a server up takes no longer when a run is long only for its percentiles.
        filling = min(count, max(_FEWEST_OPEN, lives)) if are_unlike else count
        warmup = round(_WARMUP_SHARE * filling)
        return serve(layout, OpenLoop(rate_per_s, count, 1, warmup, burstiness, think_s), lengths)

    def lives_of(request_seconds: float) -> int:
        return min(most, math.ceil(_LIVES * rate_per_s * (request_seconds + think_s)))

    lives = lives_of(run_alone(layout).end_to_end.mean)
    count = min(most, max(fewest, lives))
    times = served(count, lives)
    asked = rate_per_s * lengths.output_tokens
    for _ in range(_LONGER):
        if times.saturated and times.output_tokens_per_s < _FAR_BEHIND * asked:
            break
        lives = lives_of(times.end_to_end.mean)
        wanted = min(most, max(fewest, lives))
        if not times.is_settled:
            wanted = max(wanted, min(most, _FACTOR * count))
        if wanted <= 1.5 * count:
            break
        count = wanted
        times = served(count, lives)
    bursts = f" of burstiness {burstiness:g}" if burstiness != 1.0 else ""
    thinking = f", {think_s:g} s between turns" if think_s > 0.0 else ""
    return PlannedRun(times, f"open loop, {rate_per_s:g} requests/s{bursts}{thinking}", count)
