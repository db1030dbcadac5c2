"""The inputs of a run as lists for the core: drawn lengths and pauses, first arrivals; refuses impossible runs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...errors import InputError
from ...input.bounds import BURSTINESS, DEGREE, REQUESTS_PER_S, THINK_S, TOKENS, Bounds
from .draws import PAUSE_STREAM, arrivals_at, request_lengths, thinking, uniforms
from .load import Arrivals, Burst, ClosedLoop, Lengths, OpenLoop, StaticBatch
from .policy import Policy
from .records import MIXED, PREFILL_FIRST, WHOLE, Requests, Rules

MOST_REQUESTS = 100_000
# A request may be a little longer than those that a plan states.
MOST_TOKENS = 2 * int(TOKENS.most)
# From what one of the most replicas gets of the lowest rate that a plan may state, to the highest.
_RATES_PER_S = Bounds(REQUESTS_PER_S.least / DEGREE.most, REQUESTS_PER_S.most)
# A few seconds of work.
MOST_EVENTS = 1_000_000
_MODES = {"mixed": MIXED, "prefill_first": PREFILL_FIRST, "whole": WHOLE}


def run_of(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> tuple[Rules, Requests]:
    """The rules and requests of a run. Raises InputError, which names the field, if it cannot be served."""
    count = request_count(arrivals)
    if isinstance(arrivals, StaticBatch):
        # All prompts first, then all decode: the batch is complete before its first decode step.
        policy = replace(policy, mode="prefill_first", max_sequences=count, reserve="full")
    requests = requests_of(policy, arrivals, lengths)
    check_budget(policy, requests)
    rules = Rules(
        mode=_MODES[policy.mode],
        token_budget=policy.token_budget,
        max_sequences=policy.max_sequences,
        kv_tokens=policy.kv_tokens,
        reserves_output=policy.reserve == "full",
        most_events=MOST_EVENTS,
        groups=policy.groups,
        batches=policy.batches,
        group_wait=policy.group_wait_steps if policy.groups > 1 else 0,
    )
    return rules, requests


def request_count(arrivals: Arrivals) -> int:
    """The number of requests that a run serves. Raises InputError, which names the field, for none or too many."""
    fields = {"sequences" if isinstance(arrivals, StaticBatch) else "requests": requests_in(arrivals)}
    if isinstance(arrivals, ClosedLoop):
        fields["users"] = arrivals.users
        if not 0.0 <= arrivals.think_s <= THINK_S.most:
            raise InputError(f"ClosedLoop.think_s is {arrivals.think_s}; it must be from 0 to {THINK_S.most:g}")
    if isinstance(arrivals, OpenLoop):
        fields["one_of"] = arrivals.one_of
        if not _RATES_PER_S.hold(arrivals.rate_per_s):
            least, most = _RATES_PER_S
            raise InputError(f"OpenLoop.rate_per_s is {arrivals.rate_per_s}; it must be from {least:g} to {most:g}")
        if not BURSTINESS.hold(arrivals.burstiness):
            least, most = BURSTINESS
            raise InputError(f"OpenLoop.burstiness is {arrivals.burstiness}; it must be from {least:g} to {most:g}")
    for name, value in fields.items():
        if not 1 <= value <= MOST_REQUESTS:
            raise InputError(f"{type(arrivals).__name__}.{name} is {value}; it must be from 1 to {MOST_REQUESTS}")
    return requests_in(arrivals)


def requests_in(arrivals: Arrivals) -> int:
    """The number of requests in `arrivals`."""
    return arrivals.sequences if isinstance(arrivals, StaticBatch) else arrivals.requests


def requests_of(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> Requests:
    """The requests of the run; the last token of a prompt is never cached, since it yields the first new token.

    Raises InputError, which names the field, for lengths out of range.
    """
    for name, value in (("input_tokens", lengths.input_tokens), ("output_tokens", lengths.output_tokens)):
        if not 1 <= value <= MOST_TOKENS:
            raise InputError(f"Lengths.{name} is {value}; it must be from 1 to {MOST_TOKENS}")
    inputs, outputs = request_lengths(lengths, requests_in(arrivals))
    cached = [min(tokens - 1, int(policy.prefix_hit_rate * tokens)) for tokens in inputs]
    users = min(arrivals.users, len(inputs)) if isinstance(arrivals, ClosedLoop) else 0
    think_times = _think_times(arrivals, users + len(inputs))
    pauses = _pauses(policy, inputs)
    if think_times:
        pauses = [pause + more for pause, more in zip(pauses, think_times[users:], strict=True)]
    return Requests(inputs, outputs, cached, pauses, sorted(think_times[:users]) or _first_arrivals(arrivals))


def client_seconds(policy: Policy, inputs: Sequence[int]) -> list[float]:
    """Seconds that each request spends in client, HTTP and tokeniser before the engine sees it."""
    return [policy.client_s + policy.client_s_per_token * tokens for tokens in inputs]


def _pauses(policy: Policy, inputs: Sequence[int]) -> list[float]:
    """Seconds from each request's end until its user's next one reaches the engine, assuming an equally long prompt."""
    pauses = client_seconds(policy, inputs)
    if policy.jitter_s > 0.0:
        draws = uniforms(PAUSE_STREAM, len(inputs))
        pauses = [pause + policy.jitter_s * u for pause, u in zip(pauses, draws, strict=True)]
    return pauses


def _think_times(arrivals: Arrivals, count: int) -> list[float]:
    """Seconds that users think: before the first requests, then after each request; empty if they do not."""
    if isinstance(arrivals, ClosedLoop) and arrivals.think_s > 0.0:
        return thinking(arrivals.think_s, count)
    return []


def _first_arrivals(arrivals: Arrivals) -> list[float]:
    match arrivals:
        case ClosedLoop(users, requests):
            return [0.0] * min(users, requests)
        case OpenLoop(rate_per_s, requests, one_of):
            return arrivals_at(rate_per_s, requests, one_of, arrivals.burstiness)
        case Burst(requests) | StaticBatch(requests):
            return [0.0] * requests


def check_budget(policy: Policy, requests: Requests) -> None:
    """Raise InputError, which names the field, if prompts only fit in too many steps."""
    if sum(requests.inputs) > policy.token_budget * MOST_EVENTS:
        raise InputError(f"Policy.token_budget {policy.token_budget} cuts the prompts into over {MOST_EVENTS} steps")
