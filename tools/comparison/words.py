"""A comparison in plain sentences: which is faster, by how much, what it costs, and which of the two to take.

Order and sign are said in words ("1.8× faster", "half"), never left to a bare ratio. Every number is one of the
comparison's figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engines.names import ENGINES, engine_name
from ..performance.planned_run import RATE_RESERVE
from ..plan.describe import billed_text, number
from .changes import ENGINE_DEFAULTS, OF_ENGINES
from .lead import deciding, lead_of
from .result import ComparedFigure, Comparison, Lead, LimitCheck, Side, Winner

# From this ratio on a difference is said as a multiple, below it as a share.
_MULTIPLE = 1.1
# Differences that make figures those of two deployments; how many GPUs there are is part of the answer.
_ASKED = ("model", "accelerator", "workload", "precision")
# Other requests: what is quicker under one load need not be under the other. How many there are may be decided.
_OTHER_REQUESTS = frozenset(
    f"workload {name}" for name in ("input_tokens", "output_tokens", "lengths", "prefixes", "arrivals")
)


def concluded(found: Comparison) -> Comparison:
    """The comparison with which of the two is better, and what it says in sentences."""
    better, lead = better_of(found)
    found = found.model_copy(update={"better": better, "lead": lead})
    return found.model_copy(update={"verdict": tuple(verdict_of(found))})


def better_of(found: Comparison) -> tuple[Winner | None, Lead | None]:
    """Which of the two is better for what both were made for, with its lead where a figure decides that.

    One that is not valid or misses a limit never is.
    """
    if found.objective is None or _serve_other_requests(found):
        return None, None
    fit_a, fit_b = _is_fit(found.a), _is_fit(found.b)
    if fit_a != fit_b:
        return "a" if fit_a else "b", None
    if not fit_a:
        return None, None
    if found.a.keeps_reserve != found.b.keeps_reserve:
        return "a" if found.a.keeps_reserve else "b", None
    figure = None if found.objective == "cost" and _one_is_priced(found) else deciding(found)
    if figure is None:
        return None, None
    lead = lead_of(found, figure)
    if lead is None:
        return figure.better, None
    return lead.ahead if lead.is_told else "undecided", lead


def _serve_other_requests(found: Comparison) -> bool:
    """Whether the two were asked to serve requests of other lengths, or that share or come otherwise."""
    return any(change.what in _OTHER_REQUESTS for change in found.question)


def _one_is_priced(found: Comparison) -> bool:
    """Whether the cost of one is money and that of the other GPU-seconds, which nothing makes alike."""
    return {found.a.cost_unit, found.b.cost_unit} == {"usd", "gpu_seconds"}


def _is_fit(side: Side) -> bool:
    """Whether a plan is valid, is not refused, has figures, and holds every limit that was stated."""
    return side.valid and not side.refused and side.not_estimated is None and all(limit.holds for limit in side.limits)


def verdict_of(found: Comparison) -> Iterator[str]:
    """The comparison in sentences, what matters most first."""
    for name, side in _sides(found):
        yield from _flaws(name, side)
    yield from _engines(found)
    if not found.changes and not found.question:
        yield from _same(found)
        yield from _limits(found)
    else:
        yield from _choice(found)
        yield from _speed(found)
        yield from _rate(found)
        yield from _room(found)
        yield from _limits(found)
    yield from _cautions(found)


def _engines(found: Comparison) -> Iterator[str]:
    """Which engine a side is judged on that names none, and that nothing but the engine differs, where that is so."""
    pair = _sides(found)
    for (name, side), (other, _) in (pair, pair[::-1]):
        if side.takes_engine:
            yield (
                f"{name} names no engine: it is judged as run on {_engine(side)}, like {other}. Without an engine "
                "(shardwright estimate) its figures are others."
            )
    engines = [_engine(side) for _, side in pair]
    if engines[0] == engines[1] or not {one.what for one in found.question} <= OF_ENGINES:
        return
    if all(one.what in ENGINE_DEFAULTS for one in found.changes):
        settings = " and its settings" if found.changes else ""
        yield (
            f"A and B are one strategy on two engines ({', '.join(engines)}): what differs in the figures is the "
            f"engine{settings} alone."
        )


def _engine(side: Side) -> str:
    name = engine_name(side.engine)
    title = side.engine or "no engine" if name is None else ENGINES[name].title
    return " ".join(filter(None, (title, side.engine_version)))


def _same(found: Comparison) -> Iterator[str]:
    yield "A and B are the same deployment."
    named = (("tpot_ms", "TPOT {} ms"), ("ttft_ms", "TTFT {} ms"), ("output_tokens_per_s", "{} output tokens/s"))
    pairs = ((found.figure(name), form) for name, form in named)
    parts = [form.format(number(one.a)) for one, form in pairs if one is not None and one.a is not None]
    gpus = found.figure("gpus")
    if parts and gpus is not None:
        yield f"Both have {', '.join(parts)} on {_count(int(gpus.a or 0), 'GPU')}."
    cost = found.figure("cost_per_million_output_tokens")
    if cost is not None and cost.ratio and cost.better != "same":
        yield f"At their prices B has {multiple(cost)} the cost of a token ({_pair(cost)} {cost.unit} per million)."


def _flaws(name: str, side: Side) -> Iterator[str]:
    if not side.valid:
        rules = dict.fromkeys(found.rule for found in side.violations if found.severity == "error")
        yield f"{name} is not valid: {_count(side.errors, 'error')} ({', '.join(rules)}); its figures are as if it ran."
    if side.refused:
        yield f"{name} is refused by its engine as it is written."
    if side.not_estimated is not None:
        yield f"{name} has no estimate: {side.not_estimated}."


def _speed(found: Comparison) -> Iterator[str]:
    parts: list[str] = []
    tpot, ttft, gpus = (found.figure(name) for name in ("tpot_ms", "ttft_ms", "gpus"))
    if tpot is not None and tpot.ratio:
        parts.append(f"{faster(tpot)} per token (TPOT {_pair(tpot)} ms)")
    if ttft is not None and ttft.ratio:
        parts.append(f"{faster(ttft)} to the first token (TTFT {_pair(ttft)} ms)")
    if not parts or gpus is None or gpus.a is None or gpus.b is None:
        return
    if gpus.a == gpus.b:
        where = f"on as many GPUs ({gpus.a:.0f})"
    else:
        where = f"and needs {multiple(gpus)} the GPUs ({gpus.b:.0f} instead of {gpus.a:.0f})"
    lead = "By the figures B" if found.better == "undecided" else "B"
    yield f"{lead} is {' and '.join(parts)}, {where}."


def _rate(found: Comparison) -> Iterator[str]:
    names = "output_tokens_per_s", "output_tokens_per_s_per_gpu", "cost_per_million_output_tokens"
    rate, per_gpu, cost = map(found.figure, names)
    if rate is None or not rate.ratio:
        return
    parts = [f"{multiple(rate)} the output tokens/s ({_pair(rate)})"]
    if per_gpu is not None and per_gpu.ratio:
        parts.append(f"{multiple(per_gpu)} for each GPU ({_pair(per_gpu)})")
    if cost is not None and cost.ratio:
        parts.append(f"at {multiple(cost)} the cost of a token ({_pair(cost)} {cost.unit} per million)")
    yield f"B serves {', '.join(parts)}."


def _room(found: Comparison) -> Iterator[str]:
    weights, most = found.figure("weights_bytes"), found.figure("held_requests") or found.figure("max_concurrency")
    parts: list[str] = []
    if weights is not None and weights.ratio:
        pair = f"{number((weights.a or 0) / 1e9)} → {number((weights.b or 0) / 1e9)} GB"
        parts.append(f"holds {multiple(weights)} the weights on its fullest GPU ({pair})")
    if most is not None and most.ratio:
        parts.append(f"has room for {multiple(most)} the requests at once ({_pair(most)})")
    elif most is not None and most.a == 0 and most.b:
        parts.append(f"has room for {most.b:,.0f} requests at once, A for none")
    if parts:
        yield f"B {' and '.join(parts)}."


def _limits(found: Comparison) -> Iterator[str]:
    for name, side in _sides(found):
        missed = [_limit(limit) for limit in side.limits if limit.holds is False]
        unknown = [limit.name for limit in side.limits if limit.holds is None]
        if missed:
            yield f"{name} misses {'; '.join(missed)}."
        if unknown:
            yield f"Whether {name} holds its limit on {' and '.join(unknown)} is not known."
        if side.limits and not missed and not unknown:
            yield f"{name} holds every limit."


def _limit(limit: LimitCheck) -> str:
    figure = number(limit.figure or 0.0)
    statistic = "" if limit.statistic == "mean" else f" ({limit.statistic})"
    if limit.unit == "ms":
        return f"the limit on {limit.name}{statistic}: {figure} ms, at most {number(limit.limit)} ms is allowed"
    return f"the floor of {number(limit.limit)} {limit.name}: it serves {figure}"


def _choice(found: Comparison) -> Iterator[str]:
    if found.objective is None:
        yield "They were made for different objectives, so neither is said to be better."
    elif found.better is not None:
        yield f"For {found.objective}, which both were made for, {_winner(found)}."


def _winner(found: Comparison) -> str:
    """Who is better and why that can be said, or why it cannot."""
    if found.better == "same":
        return "they are the same"
    if found.lead is not None:
        return _led(found.lead, found)
    better, other = ("A", found.b) if found.better == "a" else ("B", found.a)
    why = ""
    if other.valid and other.refused:
        why = ": of the two it alone is not refused by its engine"
    elif not _is_fit(other):
        held = "is valid and holds its limits"
        why = f": of the two it alone {held}" if other.limits else ": of the two it alone is valid"
    return f"{better} is better{why}"


_OF = {
    "ratio": "of such a ratio of two layouts",
    "hardware": "of such a ratio of two accelerators",
    "estimate": "of such estimates",
}


def _led(lead: Lead, found: Comparison) -> str:
    """How far one is ahead, and whether that is more than such figures are off by."""
    figure = found.figure(lead.figure)
    title = "" if figure is None else f" ({figure.title})"
    ahead, gap = lead.ahead.upper(), _pct(lead.gap_pct)
    if lead.error_pct is None:
        return f"{ahead} is better by the figures, {gap} ahead{title}; how far they may be off was not measured"
    measured = lead.source or "what was measured"
    error = f"the error {_OF[lead.of or 'estimate']} is ±{_pct(lead.error_pct)} (90% of {measured})"
    if not lead.is_told:
        return f"no difference can be told: {ahead} is {gap} ahead by the figures{title}, and {error}"
    told = f"{ahead} is better, {gap} ahead{title}"
    return told if lead.of is None else f"{told}: {error}"


def _billed(found: Comparison) -> Iterator[str]:
    """GPUs that a cost counts and that are not used."""
    billed = found.figure("billed_gpus")
    if billed is None:
        return
    pairs = {"A": (found.a.gpus, billed.a), "B": (found.b.gpus, billed.b)}
    if pairs["A"] == pairs["B"]:
        pairs = {"Each": pairs["A"]}
    for name, (used, paid) in pairs.items():
        if paid is not None and paid > used:
            yield f"{name} uses {_count(used, 'GPU')}; {billed_text(int(paid))}."


def _prices(found: Comparison) -> Iterator[str]:
    """What an hour of a GPU is taken to cost."""
    prices = dict.fromkeys(price for price in (found.a.price_source, found.b.price_source) if price is not None)
    if len(prices) == 1 and found.a.price_source == found.b.price_source:
        yield f"Costs: both at the {found.a.price_source}."
    elif prices:
        named = (f"{name} at the {side.price_source}" for name, side in _sides(found) if side.price_source)
        yield f"Costs: {', '.join(named)}."


def _sides(found: Comparison) -> tuple[tuple[str, Side], ...]:
    return ("A", found.a), ("B", found.b)


def _cautions(found: Comparison) -> Iterator[str]:
    yield from _billed(found)
    if found.changes or found.question or found.a.price_source != found.b.price_source:
        yield from _prices(found)
    if _one_is_priced(found):
        priced = "A" if found.a.cost_unit == "usd" else "B"
        yield f"Only {priced} has a known price: which of the two costs less is not known."
    asked = [name for name in _ASKED if any(change.what.split(" ")[0] == name for change in found.question)]
    if asked:
        differ = f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'}"
        yield f"The {differ} not the same: figures compare deployments, not layouts."
    if _serve_other_requests(found):
        yield "Each serves requests of its own: state one load, or a trace, for both to see which is better."
    busy = [name for name, side in _sides(found) if side.saturated]
    if busy:
        yield f"Under its load {' and '.join(busy)} saturates: requests queue, and its times grow with the run."
    near = [name for name, side in _sides(found) if side.keeps_reserve is False and not side.saturated]
    if near:
        yield (
            f"With {RATE_RESERVE:.0%} more requests the queue of {' and '.join(near)} grows: a plan that keeps up with "
            "them is the better one, whatever the objective."
        )


def _pct(share_pct: float) -> str:
    """A share to three figures: `11.1%`, `1,250%`."""
    return f"{share_pct:,.0f}%" if share_pct >= 100 else f"{share_pct:.3g}%"


def faster(figure: ComparedFigure) -> str:
    """How much faster B is, for a time that both have: `1.8× faster`, `4% slower`, `as fast`."""
    if not figure.ratio or figure.better == "same":
        return "as fast"
    word = "faster" if figure.ratio < 1 else "slower"
    by = max(figure.ratio, 1 / figure.ratio)
    return f"{ratio_text(by)} {word}" if by >= _MULTIPLE else f"{(by - 1) * 100:.1f}% {word}"


def multiple(figure: ComparedFigure) -> str:
    """B over A as it stands before what is counted: `1.8×`."""
    return ratio_text(figure.ratio or 0.0)


def ratio_text(ratio: float) -> str:
    """A ratio to two figures behind the point, or whole where it is large: `1.83×`, `2×`, `140×`."""
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.2f}".rstrip("0").rstrip(".") + "×"


def _pair(figure: ComparedFigure) -> str:
    return f"{number(figure.a or 0.0)} → {number(figure.b or 0.0)}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
