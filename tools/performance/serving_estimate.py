"""Latency and throughput of a layout under a load: the serving simulation with the layout's step times.

Replicas that serve both phases are alike and share the requests evenly, so one of them is simulated with all its
attention groups, whose steps are common. Where prompts share beginnings all are, since their caches differ. Requests
wait where the engine's scheduler or the KV cache makes them wait.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from ..caches import Cache
from ..calibration.engine_profile import EngineConstants
from ..plan.document import Phase
from .capacity import cache_tokens, host_memory, prefill_cache_tokens
from .layout import LoadedLayout
from .pass_loads import microbatches
from .schedule import PhaseTimer
from .serving.disaggregated import MOST_SERVERS, Disaggregated, simulate_disaggregated
from .serving.inputs import requests_in
from .serving.load import Arrivals, ClosedLoop, Lengths, ServingTimes, StaticBatch
from .serving.policy import Policy
from .serving.replicas import simulate_replicas
from .serving.step_table import StepTable
from .step_times import Range, step_table
from .transfer import kv_transfer_seconds

# The most batches of attention groups that are simulated (in some 20 ms); beyond it some groups stand for others.
_MOST_BATCHES = 8
# The most microbatches that are simulated, unless there are more stages.
_MOST_MICROBATCHES = 32


class Server(Struct, frozen=True):
    """One replica, ready to be simulated; `copies` like it serve the load together."""

    table: StepTable
    policy: Policy
    copies: int
    first_token_steps: float


def server_of(
    layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
) -> Server:
    """The simulator's view of one replica of `layout` under this load."""
    setting = layout.setting
    prefill = PhaseTimer(setting, layout.phase("prefill"))
    decode = PhaseTimer(setting, layout.phase("decode"))
    copies, groups = max(1, len(layout.decode_replicas)), decode.phase.attention_groups
    policy, reach = _policy(layout, arrivals, lengths, copies * groups)
    steps = late_steps(setting.engine.entry.constants, streams_at_intervals)
    table = step_table(setting, prefill, decode, reach, groups=groups)
    # Each simulated group stands for `alike` that do the same at the same time.
    batches = _batches(decode)
    most = max(1, _MOST_BATCHES // batches)
    alike = max(1, groups // most) if groups % most == 0 else 1
    table = replace(table, met_tokens=[count / alike for count in table.met_tokens])
    return Server(table, replace(policy, groups=groups // alike, batches=batches), copies * alike, steps)


def _policy(layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, copies: int) -> tuple[Policy, Range]:
    """How one of `copies` equal schedulers fills its steps, and how far its step times must reach."""
    setting = layout.setting
    scheduler, constants = setting.engine.entry.scheduler, setting.engine.entry.constants
    most = setting.max_sequences
    if isinstance(arrivals, StaticBatch):
        most = max(most, arrivals.sequences)
    at_once = arrivals.users if isinstance(arrivals, ClosedLoop) else requests_in(arrivals)
    users = max(1, math.ceil(at_once / copies))
    running = max(1, min(users, most))
    budget = _budget(layout, "decode", lengths, running)
    request = lengths.longest_request
    reach = Range(
        tokens=min(budget, users * lengths.longest_input) + running,
        sequences=running,
        chunk=min(budget, lengths.longest_input),
        prompt=lengths.input_tokens,
        request=lengths.input_tokens + lengths.output_tokens,
    )
    cache = max(request, cache_tokens(layout))
    if isinstance(arrivals, StaticBatch):
        # A stated batch runs whole; none of it waits for cache.
        cache = max(cache, request * running)
    policy = Policy(
        token_budget=max(budget, running + 1),
        max_sequences=most,
        kv_tokens=cache,
        mode=scheduler.mode,
        reserve=scheduler.reserve,
        prefix_hit_rate=setting.workload.prefix_cache_hit_rate or 0.0,
        client_s=constants.client_ms * 1e-3,
        client_s_per_token=constants.client_token_us * 1e-6,
        jitter_s=scheduler.jitter_ms * 1e-3,
        group_wait_steps=scheduler.group_wait_steps,
        prefix_block_tokens=setting.engine.facts.cache_block_tokens,
        host_memory=host_memory(layout, "decode"),
    )
    return policy, reach


def _budget(layout: LoadedLayout, phase: Phase, lengths: Lengths, running: int) -> int:
    """Token budget of a step of one scheduler of the replicas that serve `phase`, with `running` requests."""
    setting = layout.setting
    budget = setting.token_budget(layout.phase(phase).attention_groups)
    is_whole = setting.engine.entry.scheduler.mode == "whole"
    return max(budget, lengths.longest_input + running) if is_whole else budget


def _batches(timer: PhaseTimer) -> int:
    """Batches that go round the stages, capped where more make no difference."""
    stages = len(timer.stages)
    return min(microbatches(timer.setting, stages), max(_MOST_MICROBATCHES, stages))


def serve(
    layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, *, streams_at_intervals: bool = False
) -> ServingTimes:
    """What users of `layout` see under `arrivals` of requests of `lengths`.

    `streams_at_intervals`: the server delivers tokens some steps at a time, as in benchmarks of throughput.
    Raises InputError: a fact that the arithmetic needs is not known.
    """

    def served() -> ServingTimes:
        return _simulated(layout, arrivals, lengths, streams_at_intervals)

    setting = layout.setting
    if setting.profile is not None or len(layout.devices) > _MOST_KEPT_DEVICES:
        return served()
    of_setting = setting.serving, setting.memory_utilization, setting.workload.prefix_cache_hit_rate
    return _SERVED.get(setting.caches, (layout.replicas, arrivals, lengths, streams_at_intervals, of_setting), served)


# Layouts of more devices are not cached: slow to compare and large.
_MOST_KEPT_DEVICES = 256
_SERVED = Cache[tuple[object, ...], ServingTimes]("what users see by layout, arrivals and lengths")


def _simulated(layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, streams_at_intervals: bool) -> ServingTimes:
    if layout.is_disaggregated:
        late = late_steps(layout.setting.engine.entry.constants, streams_at_intervals)
        return _serve_apart(layout, arrivals, lengths, late)
    server = server_of(layout, arrivals, lengths, streams_at_intervals=streams_at_intervals)
    return run(server, arrivals, lengths)


def late_steps(constants: EngineConstants, streams_at_intervals: bool) -> float:
    """Steps from the first token's step to its delivery."""
    return constants.interval_token_steps if streams_at_intervals else constants.first_token_steps


def run(server: Server, arrivals: Arrivals, lengths: Lengths) -> ServingTimes:
    """What users of all copies of `server` see together."""
    times = simulate_replicas(server.table, server.policy, arrivals, lengths, server.copies)
    return shown_late(times, server.first_token_steps, lengths)


def _serve_apart(layout: LoadedLayout, arrivals: Arrivals, lengths: Lengths, late: float) -> ServingTimes:
    """Simulate prefill and decode on separate replicas: prompts wait for a prefill server, then for a decode server."""
    setting = layout.setting
    prefill = PhaseTimer(setting, layout.phase("prefill"))
    decode = PhaseTimer(setting, layout.phase("decode"))
    # Each batch of a pipeline is a server whose pass goes through all stages, with its part of the cache.
    senders = max(1, len(layout.prefill_replicas)) * prefill.phase.attention_groups * len(prefill.stages)
    batches = _batches(decode)
    receivers = max(1, len(layout.decode_replicas)) * decode.phase.attention_groups * batches
    policy, reach = _policy(layout, arrivals, lengths, receivers // batches)
    # Only its token budget bounds a prefill batch.
    budget = max(_budget(layout, "prefill", lengths, reach.sequences), lengths.longest_input)
    # Where there are too many servers, every `copies` of them are simulated as one; the remainder stays idle.
    copies = math.ceil(max(senders, receivers) / MOST_SERVERS)
    first = replace(
        policy,
        mode="whole",
        token_budget=budget,
        kv_tokens=max(prefill_cache_tokens(layout), budget),
        host_memory=host_memory(layout, "prefill"),
    )
    second = replace(
        policy,
        mode="mixed",
        reserve="full",
        kv_tokens=max(lengths.longest_request, policy.kv_tokens // batches),
        max_sequences=max(1, policy.max_sequences // batches),
    )
    decode_table = step_table(setting, decode, decode, reach)
    if batches > len(decode.stages):
        # With more batches than stages, each waits for its turn.
        decode_table = decode_table.slowed(max(1.0, batches * decode_table.slowest_share))
    if batches > 1:
        # One host serves all batches.
        fixed_s, per_sequence_s = decode_table.hidden_fixed_s, decode_table.hidden_per_sequence_s
        decode_table = replace(
            decode_table, hidden_fixed_s=batches * fixed_s, hidden_per_sequence_s=batches * per_sequence_s
        )
    times = simulate_disaggregated(
        Disaggregated(
            prefill_table=step_table(setting, prefill, prefill, replace(reach, tokens=budget)),
            prefill_policy=first,
            decode_table=decode_table,
            decode_policy=second,
            prefill_servers=max(1, senders // copies),
            decode_servers=max(1, receivers // copies),
            **_transfer_columns(layout, lengths),
            copies=copies,
            prefill_passes=len(prefill.stages),
        ),
        arrivals,
        lengths,
    )
    return shown_late(times, late, lengths)


def _transfer_columns(layout: LoadedLayout, lengths: Lengths) -> dict[str, float]:
    """Seconds to move the cache of a prompt: constant if all are alike, else per token."""
    moved_s, handoff_s = kv_transfer_seconds(layout), layout.setting.engine.facts.handoff_s or 0.0
    if lengths.stated is None:
        return {"transfer_s": moved_s + handoff_s}
    return {"transfer_s": handoff_s, "transfer_s_per_token": moved_s / lengths.input_tokens}


def shown_late(times: ServingTimes, first_token_steps: float, lengths: Lengths) -> ServingTimes:
    """`times` with the first token shown `first_token_steps` steps late."""
    late = first_token_steps * times.tpot.mean
    # A later first token leaves less time until the last.
    hurry = min(late / max(1, lengths.output_tokens - 1), 0.9 * times.tpot.mean)
    return replace(times, ttft=times.ttft.shifted(late), tpot=times.tpot.shifted(-hurry))
