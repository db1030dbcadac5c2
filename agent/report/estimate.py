"""The estimate as text: where time and memory go, throughput and cost, and how sure all that is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .devices import devices_text
from .text import (
    NONE,
    Block,
    Bullets,
    Column,
    Section,
    Table,
    bar,
    bytes_text,
    count_text,
    figure,
    ms_text,
    render,
    section,
)

if TYPE_CHECKING:
    from ...tools.plan.performance import DeviceMemory, PathStep, PerformanceEstimate, TimeParts

STEPS_SHOWN = 5
GROUPS_SHOWN = 8
_MARKS = "█▓▒░"
# Below this share of the whole a part is what floating point leaves of a difference.
_NOISE_SHARE = 1e-9
# The stage and the layer in a step's name: `decode.s1.l4.moe.expert` is `decode.moe.expert`.
_POSITION = re.compile(r"\.[sl]\d{1,9}(?=\.)")


def render_estimate(estimate: PerformanceEstimate, *, title: str, width: int, bold: bool = False) -> str:
    """The whole report of `estimate FILE`; `title` says of what."""
    sections = [section("", title), *estimate_sections(estimate, width), confidence(estimate)]
    return render(sections, width=width, bold=bold)


def estimate_sections(estimate: PerformanceEstimate, width: int) -> list[Section]:
    """Time, memory and throughput, in this order."""
    return [time_section(estimate, width), memory_section(estimate, width), throughput_section(estimate)]


def time_section(estimate: PerformanceEstimate, width: int) -> Section:
    """TTFT and TPOT split into their parts, and the largest steps of each critical path."""
    latency = estimate.latency
    bar_width = max(12, min(30, width - 68))
    rows = [
        _time_row("prefill pass", latency.prefill_ms, latency.prefill, bar_width),
        _time_row("decode step", latency.tpot_ms, latency.decode_step, bar_width),
    ]
    columns = (
        Column("phase"),
        Column("time", figures=True),
        Column("compute", figures=True),
        Column("memory", figures=True),
        Column("comm.", figures=True),
        Column("bubble", figures=True),
        Column("", picture=True),
    )
    line = (
        f"TTFT {ms_text(latency.ttft_ms)}, TPOT {ms_text(latency.tpot_ms)}, "
        f"all decode steps {ms_text(latency.decode_ms)}, end to end {ms_text(latency.end_to_end_ms)}"
    )
    return section(
        "Where the time goes",
        line,
        Table(columns, tuple(rows)),
        _legend(("compute", "memory", "communication", "bubble"), _MARKS),
        _largest_steps("prefill", estimate.critical_path.prefill),
        _largest_steps("decode", estimate.critical_path.decode),
    )


def _legend(names: Iterable[str], marks: str) -> str:
    return "  ".join(f"{mark} {name}" for mark, name in zip(marks, names, strict=True))


def _time_row(name: str, total_ms: float, parts: TimeParts, bar_width: int) -> tuple[str, ...]:
    terms = (parts.compute_ms, parts.memory_ms, parts.communication_ms, parts.bubble_ms)
    whole = sum(terms) or 1.0
    picture = bar(list(zip(_MARKS, [term / whole for term in terms], strict=True)), bar_width)
    shown = (ms_text(term) if term > whole * _NOISE_SHARE else NONE for term in terms)
    return (name, ms_text(total_ms), *shown, picture)


def _largest_steps(phase: str, steps: tuple[PathStep, ...]) -> Block | None:
    """The operators that weigh most on a critical path; the same one in several stages or layer runs is one line."""
    if not steps:
        return None
    alike: dict[tuple[str, str], list[float]] = {}
    for step in steps:
        alike.setdefault((_POSITION.sub("", step.node).removeprefix(f"{phase}."), step.kind), []).append(step.ms)
    total_ms = sum(step.ms for step in steps) or 1.0
    largest = sorted(alike.items(), key=lambda item: -sum(item[1]))[:STEPS_SHOWN]
    rows = tuple((name, ms_text(sum(times)), f"{sum(times) / total_ms:.0%}", kind) for (name, kind), times in largest)
    columns = (
        Column(f"largest steps of {phase}", wraps=True),
        Column("time", figures=True),
        Column("share", figures=True),
        Column("bound by"),
    )
    return Table(columns, rows)


def memory_section(estimate: PerformanceEstimate, width: int) -> Section:
    """Where the memory of each distinct group of GPUs goes, and what the KV cache takes."""
    memory = estimate.memory
    groups: dict[tuple[int, ...], list[DeviceMemory]] = {}
    for device in memory.per_device:
        groups.setdefault(_terms(device), []).append(device)
    bar_width = max(12, min(30, width - 70))
    ordered = sorted(groups.values(), key=lambda group: -group[0].total_bytes)
    rows = [_memory_row(group, bar_width) for group in ordered[:GROUPS_SHOWN]]
    columns = (
        Column("GPUs", wraps=True),
        Column("weights", figures=True),
        Column("KV cache", figures=True),
        Column("activations", figures=True),
        Column("comm.", figures=True),
        Column("free", figures=True),
        Column("", picture=True),
    )
    rest = len(ordered) - len(rows)
    lines = [
        f"Usable per GPU: {_usable(memory.per_device)}" + (f" ({memory.usable_from})" if memory.usable_from else ""),
        f"KV cache: {figure(memory.kv_cache_bytes_per_token)} bytes per token, "
        f"{bytes_text(memory.kv_cache_bytes_total)} in all; "
        f"{count_text(memory.max_concurrency, 'request')} would fit at once",
    ]
    if memory.kv_cache_bytes_per_device_replicated is not None:
        replicated = bytes_text(memory.kv_cache_bytes_per_device_replicated)
        lines.append(f"Were the KV cache not split by TP: {replicated} per GPU (conservative bound)")
    more = f"and {count_text(rest, 'more group')} with less in use" if rest > 0 else ""
    legend = _legend(("weights", "KV cache", "activations", "communication buffers"), _MARKS)
    return section("Where each GPU's memory goes", Table(columns, tuple(rows)), more, legend, *lines)


def _terms(device: DeviceMemory) -> tuple[int, ...]:
    return (
        device.weights_bytes,
        device.kv_cache_bytes,
        device.activation_bytes,
        device.communication_bytes,
        device.usable_bytes,
    )


def _usable(devices: tuple[DeviceMemory, ...]) -> str:
    return " or ".join(dict.fromkeys(bytes_text(device.usable_bytes) for device in devices)) or NONE


def _memory_row(group: list[DeviceMemory], bar_width: int) -> tuple[str, ...]:
    first = group[0]
    *terms, usable_bytes = _terms(first)
    free_bytes = usable_bytes - first.total_bytes
    shares = [term / (usable_bytes or 1) for term in terms]
    picture = bar(list(zip(_MARKS, shares, strict=True)), bar_width)
    names = f"{devices_text(device.device for device in group)} ({len(group)})"
    return (
        names,
        *(bytes_text(term) for term in terms),
        bytes_text(free_bytes) if free_bytes >= 0 else f"short by {bytes_text(-free_bytes)}",
        picture,
    )


def throughput_section(estimate: PerformanceEstimate) -> Section:
    """Tokens per second, and the cost of a million of them."""
    throughput = estimate.throughput
    lines = [
        f"One request alone: {figure(throughput.single_request_tokens_per_s)} tokens/s",
        f"One replica at this load: {figure(throughput.batched_tokens_per_s)} tokens/s",
        f"Whole deployment: {figure(throughput.dp_scaled_tokens_per_s)} tokens/s, "
        f"{figure(throughput.output_tokens_per_s_per_gpu)} per GPU",
    ]
    cost = estimate.cost
    if cost is not None:
        amount = figure(cost.per_million_output_tokens)
        source = f"; price: {cost.price_source}" if cost.price_source else ""
        priced = f"${amount}" if cost.unit == "usd" else f"{amount} GPU-seconds"
        lines.append(f"Cost of a million output tokens: {priced}{source}")
    return section("Throughput and cost", Bullets(tuple(lines)))


def confidence(estimate: PerformanceEstimate) -> Section:
    """Where the constants come from, how far off the estimate may be, and what it notes."""
    calibration = estimate.calibration
    band = calibration.error_band_pct
    error = f"error band ±{figure(band)}%" if band is not None else "error band not measured"
    lines = [f"Profile {calibration.profile}: {error}", *([calibration.note] if calibration.note else [])]
    return section("How sure this is", Bullets((*lines, *estimate.notes)))
