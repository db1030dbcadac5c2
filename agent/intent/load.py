"""The load of a request: lengths, users or rate, the day and the trace, and what of it is assumed."""

from __future__ import annotations

import re
from math import isclose
from typing import Any, Literal

from pydantic_core import PydanticCustomError

from ...tools.catalog.architecture import Architecture
from ...tools.catalog.entry import ModelEntry
from ...tools.language.merge import refusal
from ...tools.language.said import Said
from ...tools.plan.document import Objective, WorkloadBlock
from ...tools.plan.lengths import Side
from ...tools.plan.load import longest_stated
from ...tools.plan.prefixes import SharedPrefixes
from ...tools.plan.rate_curve import DayAsked, RateCurve, RateStep
from .notes import Notes

DEFAULT_INPUT_TOKENS = 1024
DEFAULT_OUTPUT_TOKENS = 256
_CONTEXT = re.compile(r"context|ctx|max.model.len|seq|上下文|序列", re.IGNORECASE)
_DEFAULTS = {"input_tokens": DEFAULT_INPUT_TOKENS, "output_tokens": DEFAULT_OUTPUT_TOKENS}
# Replicas that may be lost, and the share of a rate that may come besides, where nobody says otherwise: Kubernetes'
# autoscaler lets a load be a tenth above what is wanted (`--horizontal-pod-autoscaler-tolerance`).
DEFAULT_RESERVE_REPLICAS = 1
DEFAULT_HEADROOM = 0.1


def complete_workload(said: Said, notes: Notes) -> tuple[WorkloadBlock, bool]:
    """The workload block, and whether the number of users is open (then it holds one).

    Raises:
        RequestError: lengths, prefixes or arrivals contradict the means or the rate.
    """
    input_tokens, output_tokens = _length(said, "input", notes), _length(said, "output", notes)
    _check_stated(said, input_tokens, output_tokens)
    objective = said.objective if said.objective is not None else _objective(said, notes)
    wants_rate = said.request_rate is not None or said.min_tokens_per_second is not None
    concurrency_open = said.concurrency is None and (objective != "latency" or wants_rate)
    if said.concurrency is None:
        reason = (
            "no concurrency was named: as many requests in flight as the stated rate takes"
            if concurrency_open and objective == "latency"
            else f"no concurrency was named and the objective is {objective}: the most that fits"
            if concurrency_open
            else "no concurrency was named and the objective is latency: one request in flight"
        )
        notes.assume("concurrency", None if concurrency_open else 1, reason)
    elif said.request_rate is not None and said.concurrency > 1:
        reason = (
            f"{said.concurrency:,} requests at once were stated beside a rate: they come at that rate whatever is in "
            "flight, so the number is only room in memory"
        )
        notes.assume("request_rate", said.request_rate, reason)
    workload = WorkloadBlock(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=said.concurrency or 1,
        ttft_ms_max=said.ttft_ms_max,
        tpot_ms_max=said.tpot_ms_max,
        end_to_end_ms_max=said.end_to_end_ms_max,
        ttft_statistic=said.ttft_statistic or "mean",
        tpot_statistic=said.tpot_statistic or "mean",
        end_to_end_statistic=said.end_to_end_statistic or "mean",
        request_rate=said.request_rate,
        min_tokens_per_second=said.min_tokens_per_second,
        prefix_cache_hit_rate=said.prefix_cache_hit_rate,
        expert_imbalance=said.expert_imbalance,
        input_tokens_range=said.input_tokens_range,
        output_tokens_range=said.output_tokens_range,
        lengths=said.lengths,
        prefixes=said.prefixes,
        arrivals=said.arrivals,
        objective=objective,
    )
    return workload, concurrency_open


def with_trace(said: Said, architecture: Architecture, notes: Notes) -> Said:
    """`said` with the rate of its trace, unless a rate or a number of users is stated, and with its bursts.

    Requests that are longer than the model's positions are left out: no server of it takes them.
    """
    if said.trace is None:
        return said
    fields: dict[str, Any] = {}
    if said.request_rate is None and said.concurrency is None and said.trace.request_rate is not None:
        fields["request_rate"] = said.trace.request_rate
    if (fields or said.request_rate is not None) and said.arrivals is None:
        fields["arrivals"] = said.trace.arrivals
    lengths, limit = said.lengths, architecture.max_position_embeddings
    longest = 0 if lengths is None else lengths.spread(1, 1).longest_request
    if lengths is not None and longest > limit and (fitting := lengths.within(limit)) is not None:
        reason = f"the trace has requests of up to {longest:,} tokens; those beyond the model's {limit:,} are left out"
        notes.assume("lengths", f"at most {limit:,} tokens", reason)
        fields["lengths"] = fitting
        if said.prefixes is not None and lengths.pairs is not None:
            fields["prefixes"] = said.prefixes.of_kept([sum(pair) <= limit for pair in lengths.pairs])
    if said.prefix_cache_hit_rate is not None and said.prefixes is not None and said.prefixes.replay is not None:
        # What somebody states of their caches wins over what a trace tells.
        fields["prefixes"] = None
    return said.model_copy(update=fields)


def _length(said: Said, side: Side, notes: Notes) -> int:
    """A length: as stated, else the mean of those stated, or the upper end of their range, else the default."""
    name: Literal["input_tokens", "output_tokens"] = "input_tokens" if side == "input" else "output_tokens"
    stated: int | None = getattr(said, name)
    if stated is not None:
        return _with_system_prompt(said, stated, notes) if side == "input" else stated
    if said.lengths is not None and said.lengths.covers(side):
        mean = said.lengths.spread(1, 1).means[side == "output"]
        whose = "stated" if said.trace is None else "trace's"
        return notes.assume(name, max(1, round(mean)), f"the mean of the {whose} lengths")
    span: tuple[int, int] | None = getattr(said, f"{name}_range")
    if span is not None:
        return notes.assume(name, span[1], f"a range of {span[0]} to {span[1]} was stated: planned for its upper end")
    if side == "input" and said.prefixes is not None:
        return _shared_input(said, said.prefixes, notes)
    return notes.assume(name, _DEFAULTS[name], "no length was named: a chat-like request")


def _with_system_prompt(said: Said, stated: int, notes: Notes) -> int:
    """The whole prompt: a length that cannot hold the system prompt is what each request adds to it."""
    system = None if said.prefixes is None or said.prefixes.turns is not None else said.prefixes.system_tokens
    if system is None or stated > system:
        return stated
    reason = f"{stated:,} tokens cannot hold the system prompt of {system:,}: read as what each request adds to it"
    return notes.assume("input_tokens", system + stated, reason)


def _shared_input(said: Said, prefixes: SharedPrefixes, notes: Notes) -> int:
    """The mean prompt if shared prefixes are named and no length: its new part is that of a chat-like request."""
    answer = said.output_tokens or DEFAULT_OUTPUT_TOKENS
    tokens = prefixes.mean_input(DEFAULT_INPUT_TOKENS, answer)
    turns = "" if prefixes.turns is None else " in each turn, and all turns before it"
    beside = "" if prefixes.system_tokens is None else " beside the system prompt"
    reason = f"no length was named: {DEFAULT_INPUT_TOKENS:,} new tokens{beside}{turns}, on average"
    return notes.assume("input_tokens", tokens, reason)


def _check_stated(said: Said, input_tokens: int, output_tokens: int) -> None:
    """Check that stated lengths, prefixes and arrivals agree with the means and with the rate.

    Raises:
        InputError: it does not.
    """
    stated = {**dict(said), "input_tokens": input_tokens, "output_tokens": output_tokens}
    try:
        for block in (said.lengths, said.prefixes, said.arrivals):
            if block is not None:
                block.check_beside(stated)
    except PydanticCustomError as error:
        raise refusal(said, error.message() + ", or leave out the trace" * (said.trace is not None)) from None


def asked_day(said: Said, notes: Notes) -> DayAsked | None:
    """The day that is asked for, with its reserve and headroom; the plan is for its peak.

    Raises:
        RequestError: a rate that is neither its mean nor its peak.
    """
    curve, rate = said.rate_curve, said.request_rate
    if curve is None:
        if rate is None or (said.reserve_replicas is None and said.headroom is None):
            return None
        step = RateStep(begins_h=0, requests_per_s=rate)
        curve = RateCurve(steps=(step,), source="the stated rate at all hours")
        return DayAsked(curve=curve, reserve_replicas=said.reserve_replicas or 0, headroom_share=said.headroom or 0.0)
    if rate is not None and not any(
        isclose(rate, known, rel_tol=0.01) for known in (curve.peak_per_s, curve.mean_per_s)
    ):
        raise refusal(
            said,
            f"{rate:g} requests/s are stated beside a rate curve of {curve.mean_per_s:g} on average and "
            f"{curve.peak_per_s:g} at the peak; keep one",
        )
    notes.assume("request_rate", curve.peak_per_s, "the peak of the rate curve")
    if curve.assumed is not None:
        notes.assume("rate_curve", None, curve.assumed)
    reserve, headroom = said.reserve_replicas, said.headroom
    if reserve is None:
        reason = "no reserve was named: one replica may be lost (N+1)"
        reserve = notes.assume("reserve_replicas", DEFAULT_RESERVE_REPLICAS, reason)
    if headroom is None:
        reason = "no headroom was named: what an autoscaler lets a load be above what is wanted"
        headroom = notes.assume("headroom", DEFAULT_HEADROOM, reason)
    return DayAsked(curve=curve, reserve_replicas=reserve, headroom_share=headroom)


def _objective(said: Said, notes: Notes) -> Objective:
    if said.rate_curve is not None:
        return notes.assume("objective", "cost", "a rate curve asks what a day takes and no objective was named")
    if said.min_tokens_per_second is not None:
        return notes.assume("objective", "throughput", "a rate of tokens to reach was named and no objective")
    if said.request_rate is not None:
        return notes.assume("objective", "latency", "no objective was named: the stated rate, served as fast as can be")
    return notes.assume("objective", "latency", "no objective was named")


def within_context(said: Said, workload: WorkloadBlock, architecture: Architecture, notes: Notes) -> WorkloadBlock:
    """A context that fills the model's positions leaves room for the assumed output: the input is the rest."""
    limit, context = architecture.max_position_embeddings, said.input_tokens
    if context is None or said.output_tokens is not None or said.output_tokens_range is not None:
        return workload
    is_context = _CONTEXT.search(said.words.get("input_tokens", "")) is not None
    if not is_context or not workload.output_tokens < context <= limit or context + workload.output_tokens <= limit:
        return workload
    reason = f"a context of {context} holds the {workload.output_tokens} output tokens too"
    tokens = notes.assume("input_tokens", context - workload.output_tokens, reason)
    return workload.model_copy(update={"input_tokens": tokens})


def check_lengths(said: Said, workload: WorkloadBlock, entry: ModelEntry, architecture: Architecture) -> None:
    """Check that the longest request fits the model's positions.

    Raises:
        RequestError: it does not.
    """
    longest_in, longest_out = longest_stated(workload)
    limit = architecture.max_position_embeddings
    if longest_in + longest_out > limit:
        raise refusal(
            said,
            f"{longest_in} input + {longest_out} output tokens are more than the {limit} positions of "
            f"{entry.name} (max_position_embeddings); shorten them, or give a config.json that has more (--model FILE)",
        )
