"""A comparison in plain sentences: which is faster, by how much, what it costs, and which of the two to take.

Order and sign are said in words ("1.8× faster", "half"), never left to a bare ratio. Every number is one of the
comparison's figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..engines.names import ENGINES, engine_name
from ..performance.planned_run import RATE_RESERVE
from ..plan.describe import billed_text, number
from .better import better_of, is_fit, one_is_priced, serve_other_requests
from .changes import ENGINE_DEFAULTS, OF_ENGINES
from .result import ComparedFigure, Comparison, Lead, LimitCheck, Side

# From this ratio on a difference is given as a multiple, below it in percent.
_MULTIPLE = 1.1
# Questions in which a difference makes the figures those of two deployments; the number of GPUs is part of the answer.
_ASKED = ("model", "accelerator", "workload", "precision")


def concluded(comparison: Comparison) -> Comparison:
    """`comparison` with which of the two is better, and the verdict in sentences."""
    better, lead = better_of(comparison)
    comparison = comparison.model_copy(update={"better": better, "lead": lead})
    return comparison.model_copy(update={"verdict": tuple(verdict_of(comparison))})


def verdict_of(comparison: Comparison) -> Iterator[str]:
    """The comparison in sentences, what matters most first."""
    for name, side in _sides(comparison):
        yield from _flaws(name, side)
    yield from _engines(comparison)
    if not comparison.changes and not comparison.question:
        yield from _same(comparison)
        yield from _limits(comparison)
    else:
        yield from _choice(comparison)
        yield from _speed(comparison)
        yield from _rate(comparison)
        yield from _room(comparison)
        yield from _limits(comparison)
    yield from _cautions(comparison)


def _engines(comparison: Comparison) -> Iterator[str]:
    """Which engine judges a side that names none, and whether the engine alone differs."""
    pair = _sides(comparison)
    for (name, side), (other, _) in (pair, pair[::-1]):
        if side.takes_engine:
            yield (
                f"{name} names no engine: it is judged as run on {_engine(side)}, like {other}. Without an engine "
                "(shardwright estimate) its figures are others."
            )
    engines = [_engine(side) for _, side in pair]
    if engines[0] == engines[1] or not {change.what for change in comparison.question} <= OF_ENGINES:
        return
    if all(change.what in ENGINE_DEFAULTS for change in comparison.changes):
        settings = " and its settings" if comparison.changes else ""
        yield (
            f"A and B are one strategy on two engines ({', '.join(engines)}): what differs in the figures is the "
            f"engine{settings} alone."
        )


def _engine(side: Side) -> str:
    name = engine_name(side.engine)
    title = side.engine or "no engine" if name is None else ENGINES[name].title
    return " ".join(filter(None, (title, side.engine_version)))


def _same(comparison: Comparison) -> Iterator[str]:
    yield "A and B are the same deployment."
    named = (("tpot_ms", "TPOT {} ms"), ("ttft_ms", "TTFT {} ms"), ("output_tokens_per_s", "{} output tokens/s"))
    pairs = ((comparison.figure(name), form) for name, form in named)
    parts = [form.format(number(figure.a)) for figure, form in pairs if figure is not None and figure.a is not None]
    gpus = comparison.figure("gpus")
    if parts and gpus is not None:
        yield f"Both have {', '.join(parts)} on {_count(int(gpus.a or 0), 'GPU')}."
    cost = comparison.figure("cost_per_million_output_tokens")
    if cost is not None and cost.ratio and cost.better != "same":
        yield f"At their prices B has {multiple(cost)} the cost of a token ({_pair(cost)} {cost.unit} per million)."


def _flaws(name: str, side: Side) -> Iterator[str]:
    if not side.valid:
        rules = dict.fromkeys(violation.rule for violation in side.violations if violation.severity == "error")
        yield f"{name} is not valid: {_count(side.errors, 'error')} ({', '.join(rules)}); its figures are as if it ran."
    if side.refused:
        yield f"{name} is refused by its engine as it is written."
    if side.not_estimated is not None:
        yield f"{name} has no estimate: {side.not_estimated}."


def _speed(comparison: Comparison) -> Iterator[str]:
    parts: list[str] = []
    tpot, ttft, gpus = (comparison.figure(name) for name in ("tpot_ms", "ttft_ms", "gpus"))
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
    lead = "By the figures B" if comparison.better == "undecided" else "B"
    yield f"{lead} is {' and '.join(parts)}, {where}."


def _rate(comparison: Comparison) -> Iterator[str]:
    names = "output_tokens_per_s", "output_tokens_per_s_per_gpu", "cost_per_million_output_tokens"
    rate, per_gpu, cost = map(comparison.figure, names)
    if rate is None or not rate.ratio:
        return
    parts = [f"{multiple(rate)} the output tokens/s ({_pair(rate)})"]
    if per_gpu is not None and per_gpu.ratio:
        parts.append(f"{multiple(per_gpu)} for each GPU ({_pair(per_gpu)})")
    if cost is not None and cost.ratio:
        parts.append(f"at {multiple(cost)} the cost of a token ({_pair(cost)} {cost.unit} per million)")
    yield f"B serves {', '.join(parts)}."


def _room(comparison: Comparison) -> Iterator[str]:
    weights, most = (
        comparison.figure("weights_bytes"),
        comparison.figure("held_requests") or comparison.figure("max_concurrency"),
    )
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


def _limits(comparison: Comparison) -> Iterator[str]:
    for name, side in _sides(comparison):
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


def _choice(comparison: Comparison) -> Iterator[str]:
    if comparison.objective is None:
        yield "They were made for different objectives, so neither is said to be better."
    elif comparison.better is not None:
        yield f"For {comparison.objective}, which both were made for, {_winner(comparison)}."


def _winner(comparison: Comparison) -> str:
    """Who is better and why, or why that cannot be said."""
    if comparison.better == "same":
        return "they are the same"
    if comparison.lead is not None:
        return _led(comparison.lead, comparison)
    better, other = ("A", comparison.b) if comparison.better == "a" else ("B", comparison.a)
    why = ""
    if other.valid and other.refused:
        why = ": of the two it alone is not refused by its engine"
    elif not is_fit(other):
        conditions = "is valid and holds its limits"
        why = f": of the two it alone {conditions}" if other.limits else ": of the two it alone is valid"
    return f"{better} is better{why}"


_OF = {
    "ratio": "of such a ratio of two layouts",
    "hardware": "of such a ratio of two accelerators",
    "estimate": "of such estimates",
}


def _led(lead: Lead, comparison: Comparison) -> str:
    """How far one side is ahead, and whether that exceeds the error of such figures."""
    figure = comparison.figure(lead.figure)
    title = "" if figure is None else f" ({figure.title})"
    ahead, gap = lead.ahead.upper(), _pct(lead.gap_pct)
    if lead.error_pct is None:
        return f"{ahead} is better by the figures, {gap} ahead{title}; how far they may be off was not measured"
    measured = lead.source or "what was measured"
    error = f"the error {_OF[lead.of or 'estimate']} is ±{_pct(lead.error_pct)} (90% of {measured})"
    if not lead.is_told:
        return f"no difference can be told: {ahead} is {gap} ahead by the figures{title}, and {error}"
    sentence = f"{ahead} is better, {gap} ahead{title}"
    return sentence if lead.of is None else f"{sentence}: {error}"


def _billed(comparison: Comparison) -> Iterator[str]:
    """How many GPUs a cost bills beyond those in use."""
    billed = comparison.figure("billed_gpus")
    if billed is None:
        return
    pairs = {"A": (comparison.a.gpus, billed.a), "B": (comparison.b.gpus, billed.b)}
    if pairs["A"] == pairs["B"]:
        pairs = {"Each": pairs["A"]}
    for name, (used, paid) in pairs.items():
        if paid is not None and paid > used:
            yield f"{name} uses {_count(used, 'GPU')}; {billed_text(int(paid))}."


def _prices(comparison: Comparison) -> Iterator[str]:
    """The assumed price of a GPU-hour."""
    prices = dict.fromkeys(text for text in (comparison.a.price_source, comparison.b.price_source) if text is not None)
    if len(prices) == 1 and comparison.a.price_source == comparison.b.price_source:
        yield f"Costs: both at the {comparison.a.price_source}."
    elif prices:
        named = (f"{name} at the {side.price_source}" for name, side in _sides(comparison) if side.price_source)
        yield f"Costs: {', '.join(named)}."


def _sides(comparison: Comparison) -> tuple[tuple[str, Side], ...]:
    return ("A", comparison.a), ("B", comparison.b)


def _cautions(comparison: Comparison) -> Iterator[str]:
    yield from _billed(comparison)
    if comparison.changes or comparison.question or comparison.a.price_source != comparison.b.price_source:
        yield from _prices(comparison)
    if one_is_priced(comparison):
        priced = "A" if comparison.a.cost_unit == "usd" else "B"
        yield f"Only {priced} has a known price: which of the two costs less is not known."
    asked = [name for name in _ASKED if any(change.what.split(" ")[0] == name for change in comparison.question)]
    if asked:
        differ = f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'}"
        yield f"The {differ} not the same: figures compare deployments, not layouts."
    if serve_other_requests(comparison):
        yield "Each serves requests of its own: state one load, or a trace, for both to see which is better."
    busy = [name for name, side in _sides(comparison) if side.saturated]
    if busy:
        yield f"Under its load {' and '.join(busy)} saturates: requests queue, and its times grow with the run."
    near = [name for name, side in _sides(comparison) if side.keeps_reserve is False and not side.saturated]
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
    """B over A, in front of what is counted: `1.8×`."""
    return ratio_text(figure.ratio or 0.0)


def ratio_text(ratio: float) -> str:
    """A ratio with up to two decimals, whole from 100 on: `1.83×`, `2×`, `140×`."""
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.2f}".rstrip("0").rstrip(".") + "×"


def _pair(figure: ComparedFigure) -> str:
    return f"{number(figure.a or 0.0)} → {number(figure.b or 0.0)}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
