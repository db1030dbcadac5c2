"""The load and the limits of a brief: lengths, requests in flight, rates, TTFT and TPOT, put together from facts.

Of several statistics of one limit the smallest figure is kept: a plan holds one, and the smallest binds first. It
refuses figures that contradict each other; every choice between figures that do not is said in a reading.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from ...tools.bounds import IMBALANCE, LATENCY_MS, REQUESTS, REQUESTS_PER_S, TOKENS, TOKENS_PER_S, USD, Bounds
from .brief_card import share
from .brief_facts import Fact, Facts, only, same, show
from .errors import BriefError

Limit = Literal["ttft", "tpot"]
_FIGURES = {
    "request_rate": REQUESTS_PER_S,
    "min_tokens_per_second": TOKENS_PER_S,
    "usd_per_gpu_hour": USD,
    "expert_imbalance": IMBALANCE,
}

_PROPER: dict[Limit, re.Pattern[str]] = {
    "ttft": re.compile(r"ttft|first|首"),
    "tpot": re.compile(r"tpot|itl|tbt|token|词元|字"),
}
# What a number of requests in flight was called, the most telling first.
_KINDS = (
    ("stated", re.compile(
        r"concurren|in flight|at (?:a|the same|one) time|at once|simultaneous|parallel (?:req|user|ses|"
        r"str)|users?\b|sessions?\b|并发|同时|在线")),
    ("batch", re.compile(r"batch|\bbs\b|批")),
    ("engine", re.compile(r"max num seqs|max running|max (?:seqs|sequences)")),
)  # fmt: skip


def read_load(facts: Facts) -> dict[str, Any]:
    """Fields of `Said` about lengths, concurrency, rates and shares.

    Raises:
        BriefError: two figures for one thing, or an impossible one.
    """
    said: dict[str, Any] = {}
    _spread_lengths(facts)
    for name in ("input_tokens", "output_tokens"):
        said |= _lengths(facts, name)
    if (concurrency := _concurrency(facts)) is not None:
        said["concurrency"] = concurrency
    for name in _FIGURES:
        if (fact := _busiest(facts, name, facts.of(name))) is not None:
            said[name] = _within(_FIGURES[name], fact, _decimal(fact))
    for name in ("prefix_cache_hit_rate", "memory_utilization"):
        if (fact := facts.one(name)) is not None:
            said[name] = 0.0 if fact.value == 0 and name.startswith("prefix") else share(fact)
    if (fact := facts.one("memory_free")) is not None:
        used = round(1 - share(fact), 12)
        facts.reading(f"{fact.words}: memory left free, {used:g} of it may be used")
        if said.setdefault("memory_utilization", used) != used:
            raise BriefError(f"{fact.where}: memory left free and memory used do not add up; keep one")
    if (fact := facts.one("max_model_len")) is not None:
        facts.reading(
            f"{fact.words}: read as the longest sequence that must be possible, not as the length of a prompt"
        )
    return said


def read_limits(facts: Facts) -> dict[str, Any]:
    """Fields of `Said` about TTFT and TPOT, in ms with their statistics.

    Raises:
        BriefError: two figures for one statistic of one limit, or an impossible one.
    """
    said: dict[str, Any] = {}
    for fact in facts.of("user_rate"):
        rate = _within(TOKENS_PER_S, fact, _decimal(fact))
        facts.reading(f"{fact.words}: {rate:g} tokens/s of one user read as a TPOT of {1000 / rate:.4g} ms")
        facts.add(
            [Fact("tpot_ms_max", 1000 / rate, fact.words, fact.where, fact.context, fact.near, None, fact.statistic)]
        )
    limits: tuple[Limit, ...] = ("ttft", "tpot")
    for limit in limits:
        stated = [_limit_ms(facts, fact, limit) for fact in _named(facts, limit)]
        if stated:
            kept = _strictest(facts, limit, stated)
            said[f"{limit}_ms_max"] = _within(LATENCY_MS, kept, kept.value)
            if kept.statistic is not None:
                said[f"{limit}_statistic"] = kept.statistic
    return said


def _named(facts: Facts, limit: Limit) -> list[Fact]:
    """The facts about a limit; what only calls it the latency of a phase gives way to its proper name."""
    stated = facts.of(f"{limit}_ms_max")
    proper = [fact for fact in stated if _PROPER[limit].search(f"{fact.context} {fact.words}".lower())]
    for fact in stated:
        if proper and fact not in proper and not any(same(fact.value, other.value) for other in proper):
            facts.reading(f"{fact.words}: stands beside a {limit.upper()} limit, which is kept")
    return proper or stated


def _strictest(facts: Facts, limit: Limit, stated: list[Fact]) -> Fact:
    by_statistic: dict[str, list[Fact]] = {}
    for fact in stated:
        by_statistic.setdefault(fact.statistic or "", []).append(fact)
    kept = [fact for found in by_statistic.values() if (fact := only(f"{limit.upper()} limit", found)) is not None]
    best = min(kept, key=lambda fact: (fact.value, fact.statistic is None))
    for fact in kept:
        if fact is not best and fact.value != best.value:
            facts.reading(
                f"{limit.upper()} {fact.statistic or 'limit'} of {fact.value:g} ms ({fact.where}) stands beside "
                f"{best.statistic or 'a limit'} of {best.value:g} ms: a plan holds one limit, the smallest figure "
                "is kept"
            )
    return best


def _limit_ms(facts: Facts, fact: Fact, limit: Limit) -> Fact:
    value, quantity = fact.value, fact.quantity
    if quantity is not None:
        value = quantity.decimal_value if quantity.upper is None else quantity.upper
        if quantity.unit == "count":
            in_seconds = value < (20 if limit == "ttft" else 1)
            value *= 1000 if in_seconds else 1
            facts.reading(f"{fact.words}: a limit without a unit read as {value:g} ms")
        if quantity.upper is not None:
            facts.reading(f"{fact.words}: read as a limit of {value:g} ms, its upper end")
        if re.search(r"p ?99[._]?9|p999", fact.near + fact.context) and fact.statistic == "p99":
            facts.reading(f"{fact.words}: held as p99, the strictest statistic that a plan has")
    return Fact(fact.field, value, fact.words, fact.where, fact.context, fact.near, quantity, fact.statistic)


def _spread_lengths(facts: Facts) -> None:
    """Lengths of sequences that are said neither of the input nor of the output are those of the input."""
    for fact in facts.of("length_tokens"):
        has_range = any(f.quantity and f.quantity.upper for f in facts.of("input_tokens"))
        if fact.quantity is None or (fact.quantity.upper is None and facts.of("input_tokens")) or has_range:
            facts.leave_unread(f"{fact.words}: the lengths of input and output are stated apart")
            continue
        facts.reading(f"{fact.words}: read as the length of the input")
        facts.add(
            [
                Fact(
                    "input_tokens",
                    fact.value,
                    fact.words,
                    fact.where,
                    fact.context,
                    fact.near,
                    fact.quantity,
                    None,
                    fact.bound,
                )
            ]
        )


def _lengths(facts: Facts, name: str) -> dict[str, Any]:
    """The typical length and the range of one side."""
    singles: dict[str | None, list[Fact]] = {}
    ranges: list[Fact] = []
    for fact in facts.of(name):
        if fact.quantity is not None and fact.quantity.upper is not None:
            ranges.append(
                Fact(
                    fact.field, (_tokens(fact, fact.value), _tokens(fact, fact.quantity.upper)), fact.words, fact.where
                )
            )
        else:
            bound = fact.bound if fact.quantity is not None else None
            singles.setdefault(bound, []).append(Fact(fact.field, _tokens(fact, fact.value), fact.words, fact.where))
    ranges += facts.of(f"{name}_range")
    stated = {bound: only(name, found) for bound, found in singles.items()}
    typical = stated.get("typical") or stated.get(None)
    low, high = stated.get("low"), stated.get("high")
    span = only(f"{name} range", ranges)
    ends: tuple[int, int] | None = span.value if span else None
    if ends is None and low and high:
        ends = (low.value, high.value)
    if typical is None and ends is None and (lone := high or low) is not None:
        return {name: lone.value}
    if typical is None and ends is not None:
        facts.reading(f"{name} is stated as a range only ({ends[0]} to {ends[1]}): planned for its upper end")
        return {name: ends[1], f"{name}_range": ends}
    if typical is None:
        return {}
    if ends is None and high is not None and high.value >= typical.value:
        ends = (typical.value, high.value)
        facts.reading(f"{name}: {typical.value} typical and {high.value} at most read as a range between the two")
    if ends is not None and not ends[0] <= typical.value <= ends[1]:
        raise BriefError(
            f"{name} of {typical.value} at {typical.where} lies outside the range {ends[0]} to {ends[1]}; mend one"
        )
    return {name: typical.value} | ({f"{name}_range": ends} if ends else {})


def _tokens(fact: Fact, value: float) -> int:
    if not TOKENS.hold(value) or value != int(value):
        raise BriefError(f"{fact.where}: {show(value)} is no length in tokens; write a whole number from 1 on")
    return int(value)


def _concurrency(facts: Facts) -> int | None:
    by_kind: dict[str, list[Fact]] = {}
    for fact in facts.of("concurrency"):
        value = fact.value
        if fact.quantity is not None and fact.quantity.upper is not None:
            value = fact.quantity.upper
            facts.reading(f"{fact.words}: read as up to {value:g} requests in flight")
        text = f"{fact.near} {fact.context}"
        kind = next((name for name, pattern in _KINDS if pattern.search(text)), "stated")
        if _KINDS[2][1].search(fact.context):
            kind = "engine"
        by_kind.setdefault(kind, []).append(Fact(fact.field, value, fact.words, fact.where, bound=fact.bound))
    kept = [
        fact
        for name, _ in _KINDS
        if name in by_kind and (fact := _busiest(facts, "concurrency", by_kind[name])) is not None
    ]
    if not kept:
        return None
    for other in kept[1:]:
        if other.value != kept[0].value:
            facts.reading(f"{other.words} stands beside {kept[0].words}: the latter is read as the requests in flight")
    if "engine" in by_kind and len(kept) == 1:
        facts.reading(f"{kept[0].words}: the engine's bound on sequences read as the requests in flight")
    if not REQUESTS.hold(kept[0].value) or kept[0].value != int(kept[0].value):
        raise BriefError(f"{kept[0].where}: {show(kept[0].value)} is no number of requests in flight; write 1 or more")
    return int(kept[0].value)


def _busiest(facts: Facts, name: str, stated: list[Fact]) -> Fact | None:
    """The figure of a field; of an average and a peak the peak, which is what has to be held."""
    peaks = [fact for fact in stated if fact.bound == "high"]
    usual = [fact for fact in stated if fact.bound != "high"]
    peak, other = only(name, peaks), only(name, usual)
    if peak is not None and other is not None and peak.value > other.value:
        facts.reading(
            f"{name} of {show(other.value)} and of {show(peak.value)} at its peak ({peak.where}): the peak counts"
        )
        return peak
    return only(name, [fact for fact in (other, peak) if fact is not None])


def _decimal(fact: Fact) -> float:
    return float(fact.value if fact.quantity is None else fact.quantity.decimal_value)


def _within(bounds: Bounds, fact: Fact, value: float) -> float:
    if not bounds.hold(value):
        least, most = bounds
        raise BriefError(f"{fact.where}: {show(value)} is impossible here; write a figure from {least:g} to {most:g}")
    return float(value)
