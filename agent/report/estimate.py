"""The estimate as text: where time and memory go, throughput and cost, and how sure all that is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Literal

from ..languages.say import say
from .cost import cost_lines, energy_text
from .explanation import explanation_section, largest_costs
from .memory import memory_section, unheld_lines
from .request import trace_lines
from .text import (
    MARKS,
    NONE,
    Bullets,
    Column,
    Section,
    Table,
    bar,
    count_text,
    figure,
    legend,
    ms_text,
    render,
    section,
)

if TYPE_CHECKING:
    from ...tools.plan.document import WorkloadBlock
    from ...tools.plan.performance import (
        Interval,
        PerformanceEstimate,
        Ranges,
        TimeParts,
    )

Subject = Literal["bottleneck", "latency", "memory", "throughput"]
# Notes, the most telling first, in a report that is not whole.
NOTES_SHOWN = 2
# Below this share of the whole a part is what floating point leaves of a difference.
_NOISE_SHARE = 1e-9


def render_estimate(estimate: PerformanceEstimate, *, title: str, width: int, bold: bool = False) -> str:
    """The whole report of `estimate FILE`; `title` says of what."""
    time, *others = estimate_sections(estimate, width)
    sections = [
        _head(estimate, title),
        time,
        load_section(estimate),
        explanation_section(estimate),
        *others,
    ]
    sections.append(confidence(estimate))
    return render(sections, width=width, bold=bold)


def render_part(estimate: PerformanceEstimate, subjects: Collection[Subject], *, title: str, width: int) -> str:
    """The parts of the report that answer a question on `subjects`, in the report's order."""
    parts: dict[Subject, Callable[[], tuple[Section, ...]]] = {
        "bottleneck": lambda: (time_section(estimate, width), explanation_section(estimate)),
        "latency": lambda: (section("", _latency_line(estimate)), load_section(estimate)),
        "memory": lambda: (memory_section(estimate, width),),
        "throughput": lambda: (throughput_section(estimate),),
    }
    asked = [part for subject, sections in parts.items() if subject in subjects for part in sections()]
    return render([_head(estimate, title, with_ranges=set(subjects) != {"memory"}), *asked], width=width)


def _head(estimate: PerformanceEstimate, title: str, *, with_ranges: bool = True) -> Section:
    """Of what the report is, and how to read its ranges where it has some."""
    ranges = range_lines(estimate.ranges) if with_ranges else ()
    return section("", *trace_lines(estimate.trace), title, *unheld_lines(estimate), *ranges)


def estimate_sections(estimate: PerformanceEstimate, width: int, *, is_whole: bool = True) -> list[Section]:
    """Time, memory and throughput, in this order; not `is_whole`: what the first lines of a plan leave to be said."""
    return [
        time_section(estimate, width, is_whole=is_whole),
        memory_section(estimate, width, is_whole=is_whole),
        throughput_section(estimate, is_whole=is_whole),
    ]


def time_section(estimate: PerformanceEstimate, width: int, *, is_whole: bool = True) -> Section:
    """Each phase split into its parts; of the whole report TTFT, TPOT and the largest steps of each critical path."""
    latency = estimate.latency
    bar_width = max(12, min(30, width - 68))
    rows = [
        _time_row("prefill pass", latency.prefill_ms, latency.prefill, bar_width),
        _time_row("decode step", _whole(latency.decode_step), latency.decode_step, bar_width),
    ]
    columns = (
        Column("phase"),
        *Column.of_figures("time", "compute", "memory", "comm.", "bubble"),
        Column("", picture=True),
    )
    table = Table(columns, tuple(rows))
    marks = legend(("compute", "memory", "communication", "bubble"))
    of_stages = _over_stages(latency.prefill, latency.decode_step, with_costs=is_whole)
    costs = largest_costs(estimate) if is_whole else ()
    return section(
        "Where the time goes", _latency_line(estimate) if is_whole else None, table, marks, of_stages, *costs
    )


def _latency_line(estimate: PerformanceEstimate) -> str:
    latency, ranges = estimate.latency, estimate.ranges
    tpot = f"TPOT {with_range(latency.tpot_ms, ranges.tpot_ms, ms_text)}"
    steps = f"all decode steps {ms_text(latency.decode_ms)}"
    if estimate.load.saturated:
        return f"{GROWING}, {tpot}, {steps}"
    ttft = with_range(latency.ttft_ms, ranges.ttft_ms, ms_text)
    return (
        f"TTFT {ttft}, {tpot}, {steps}, end to end {with_range(latency.end_to_end_ms, ranges.end_to_end_ms, ms_text)}"
    )


def _over_stages(*parts: TimeParts, with_costs: bool) -> str | None:
    """A note that the parts are those of one stage, if a phase has pipeline stages: only these have bubbles."""
    if not any(part.bubble_ms for part in parts):
        return None
    costs = "; the largest costs are added up over all stages that a pass goes through" if with_costs else ""
    return (
        "Of pipeline stages the parts are those of one stage on average, and the bubble is its wait for the others"
        f"{costs}"
    )


def with_range(figure_: float | None, interval: Interval | None, text: Callable[[float], str]) -> str:
    """A figure with the range that held 90% of measurements like it, where enough were measured."""
    if figure_ is None:
        return NONE
    if interval is None:
        return text(figure_)
    (low, unit), (high, high_unit) = (text(end).split(" ", 1) for end in interval)
    return f"{text(figure_)} (90% range {low}{'' if unit == high_unit else f' {unit}'}–{high} {high_unit})"


def in_flight_of(workload: WorkloadBlock, estimate: PerformanceEstimate | None) -> float | None:
    """Requests that a rate has in flight on average; `None` without one, or where they only grow."""
    from ...tools.performance.limits import requests_in_flight

    if workload.request_rate is None or estimate is None or estimate.load.saturated:
        return None
    return requests_in_flight(workload, estimate.latency.end_to_end_ms / 1e3)


GROWS = "grows"
# Said where a queue grows, in place of the figures that do.
GROWING = "the queue grows, so TTFT and end to end only grow: no steady figure"


def growing_line(tpot: str, rate: str) -> str:
    """The figures of a run whose queue grows: those that do not depend on its length, and why there are no others."""
    return f"{GROWING} · TPOT {tpot} · {rate}"


def range_lines(ranges: Ranges | None) -> Iterator[str]:
    """A line that explains the ranges beside figures, or says that there are none."""
    if ranges is not None and any(value is not None for _, value in ranges):
        yield say("90% range: 90% of the measured runs of such deployments lay as near to their predictions")
    elif ranges is not None:
        yield say("No range is known of these figures: too little was measured of such deployments")


def rate_text(tokens_per_s: float) -> str:
    """`1,234 tokens/s`."""
    return f"{figure(tokens_per_s)} tokens/s"


def load_section(estimate: PerformanceEstimate) -> Section:
    """The simulated run: percentiles of what users see, and the load."""
    load, percentiles = estimate.load, estimate.latency.percentiles
    columns = (Column(""), *Column.of_figures("mean", "p50", "p90", "p95", "p99", "alone"))
    latency, alone = estimate.latency, estimate.latency.alone
    rows = tuple(
        (
            name,
            *(
                GROWS if load.saturated and field != "tpot_ms" else ms_text(value)
                for value in (
                    getattr(latency, field),
                    *(getattr(getattr(percentiles, field), share) for share in ("p50", "p90", "p95", "p99")),
                )
            ),
            ms_text(getattr(alone, field)),
        )
        for name, field in (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("end to end", "end_to_end_ms"))
    )
    line = (
        f"simulated: {load.load}, {count_text(load.requests, 'request')}, {figure(load.running)} in decode on average; "
        "alone: one request by itself"
    )
    overload = "Requests come faster than they are served: the queue grows" if load.saturated else None
    prefixes = _prefix_cache(estimate), *host_memory_lines(estimate)
    return section("Under load", Table(columns, rows), line, *prefixes, overload, load.headroom, *_benchmark(estimate))


def _prefix_cache(estimate: PerformanceEstimate) -> str | None:
    """The share of prompts that prefix caches held, and how it was computed."""
    cache = estimate.load.prefix_cache
    if cache is None:
        return None
    filled = f"{cache.filled_share:.0%} of the KV cache is filled when a request comes"
    return f"prefix caches have {cache.hit_share:.0%} of the prompts' tokens, {filled} ({cache.source})"


def host_memory_lines(estimate: PerformanceEstimate) -> Iterator[str]:
    """The share of prompts that host memory held, if it keeps KV cache, and what that is worth."""
    cache = estimate.load.prefix_cache
    host = None if cache is None else cache.host_memory
    if cache is None or host is None:
        return
    ttft = "the queue would grow"
    if host.ttft_ms_without is not None:
        ttft = f"mean TTFT would be {ms_text(host.ttft_ms_without)}"
    yield (
        f"Of the prompts' tokens GPU memory has {cache.hit_share - host.hit_share:.0%} and host memory "
        f"({host.bytes_per_gpu / 1e9:,.4g} GB per GPU, at {host.gb_s:g} GB/s) {host.hit_share:.0%}; without host "
        f"memory caches would have {host.hit_share_without:.0%}, and {ttft}"
    )


def _benchmark(estimate: PerformanceEstimate) -> tuple[str, ...]:
    """The command that would check the figures, and what it should print."""
    check = estimate.benchmark
    if check is None:
        return ()
    return (
        f"To check it: {check.command}",
        f"it should print TTFT {ms_text(check.ttft_ms)}, TPOT {ms_text(check.tpot_ms)}, "
        f"{figure(round(check.output_tokens_per_s))} output tokens/s" + (f": {check.note}" if check.note else ""),
    )


def _whole(parts: TimeParts) -> float:
    return parts.compute_ms + parts.memory_ms + parts.communication_ms + parts.bubble_ms


def _time_row(name: str, total_ms: float, parts: TimeParts, bar_width: int) -> tuple[str, ...]:
    terms = (parts.compute_ms, parts.memory_ms, parts.communication_ms, parts.bubble_ms)
    whole = sum(terms) or 1.0
    picture = bar(list(zip(MARKS, [term / whole for term in terms], strict=True)), bar_width)
    shown = (ms_text(term) if term > whole * _NOISE_SHARE else NONE for term in terms)
    return (name, ms_text(total_ms), *shown, picture)


def throughput_section(estimate: PerformanceEstimate, *, is_whole: bool = True) -> Section:
    """Tokens per second, and the cost of a million of them: of a report that is not whole the cost alone."""
    cost = estimate.cost
    costs = [] if cost is None else cost_lines(cost, len(estimate.memory.per_device))
    if not is_whole:
        return section("Cost", *costs)
    throughput, ranges = estimate.throughput, estimate.ranges
    alone = with_range(throughput.single_request_tokens_per_s, ranges.single_request_tokens_per_s, rate_text)
    whole = with_range(throughput.dp_scaled_tokens_per_s, ranges.dp_scaled_tokens_per_s, rate_text)
    lines = [
        f"One request alone: {alone}",
        f"One replica at this load: {figure(throughput.batched_tokens_per_s)} tokens/s",
        f"Whole deployment, over the simulated run: {whole}, {figure(throughput.output_tokens_per_s_per_gpu)} per GPU",
    ]
    lines += costs
    if estimate.energy is not None:
        lines.append(energy_text(estimate.energy, len(estimate.memory.per_device)))
    return section("Throughput and cost", Bullets(tuple(lines)))


def confidence(estimate: PerformanceEstimate, *, is_whole: bool = True) -> Section:
    """Where the constants come from, what the ranges were measured on, and what the estimate notes.

    Of a report that is not whole: the profile, why there are no ranges, whose constants, and the most telling notes.
    """
    calibration = estimate.calibration
    if not is_whole:
        has_ranges = any(value is not None for _, value in estimate.ranges)
        note = [] if has_ranges or not calibration.note else [calibration.note]
        shown = f"Profile {calibration.profile}", *note, *_constants_lines(estimate), *estimate.notes[:NOTES_SHOWN]
        return section("How sure this is", Bullets(shown))
    lines = [f"Profile {calibration.profile}", *([calibration.note] if calibration.note else [])]
    if estimate.energy is not None:
        lines.append(f"Energy: {estimate.energy.source}; boards alone, without hosts, network and cooling")
    return section("How sure this is", Bullets((*lines, *_constants_lines(estimate), *estimate.notes)))


_ORIGINS = {"measured": "measured on this card", "carried": "carried over from", "datasheet": "taken from datasheets"}


def _constants_lines(estimate: PerformanceEstimate) -> Iterator[str]:
    """For each phase, how much of its time was calculated with constants that were measured for it."""
    why = estimate.explanation
    for name, phase in () if why is None else (("prefill", why.prefill), ("decode", why.decode)):
        shares = (
            f"{part.share_pct:.0f}% {_ORIGINS[part.constants]}" + (f" {part.of}" if part.of else "")
            for part in phase.constants
            if part.share_pct >= 0.5
        )
        yield f"{name}: of the time, by its constants, {', '.join(shares)}"
