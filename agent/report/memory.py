"""Where the memory of each GPU goes, and whether the engine's cache holds a request, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...tools.plan.devices import devices_text
from ..languages.say import say
from .text import MARKS, NONE, Column, Section, Table, bar, bytes_text, count_text, figure, legend, section

if TYPE_CHECKING:
    from ...tools.plan.performance import DeviceMemory, PerformanceEstimate

_GROUPS_SHOWN = 8


def unheld_lines(estimate: PerformanceEstimate) -> Iterator[str]:
    """A line that the engine serves no request of the load, which rule ME001 does not check."""
    if estimate.memory.unheld_request is not None:
        yield say("It would not serve: {why}", why=estimate.memory.unheld_request)


def memory_section(estimate: PerformanceEstimate, width: int, *, is_whole: bool = True) -> Section:
    """Where the memory of each distinct group of GPUs goes, and what the KV cache takes."""
    memory = estimate.memory
    groups: dict[tuple[int, ...], list[DeviceMemory]] = {}
    for device in memory.per_device:
        groups.setdefault(_terms(device), []).append(device)
    bar_width = max(12, min(30, width - 70))
    ordered = sorted(groups.values(), key=lambda group: -group[0].total_bytes)
    rows = [_memory_row(group, bar_width) for group in ordered[:_GROUPS_SHOWN]]
    columns = (
        Column("GPUs", wraps=True),
        *Column.of_figures("weights", "KV cache", "activations", "comm.", "free"),
        Column("", picture=True),
    )
    further = len(ordered) - len(rows)
    more = f"and {count_text(further, 'more group')} with less in use" if further > 0 else ""
    marks = legend(("weights", "KV cache", "activations", "communication buffers"))
    lines = _memory_lines(estimate) if is_whole else _memory_lines(estimate)[1:2]
    return section("Where each GPU's memory goes", Table(columns, tuple(rows)), more, marks, *lines)


def _memory_lines(estimate: PerformanceEstimate) -> list[str]:
    """Lines on usable memory, the KV cache, what the engine sets up for it, and the cache if TP did not split it."""
    memory = estimate.memory
    at_once = memory.requests_at_once
    lines = [
        f"Usable per GPU: {_usable(memory.per_device)}" + (f" ({memory.usable_from})" if memory.usable_from else ""),
        f"KV cache: {figure(memory.kv_cache_bytes_per_token)} bytes per token, "
        f"{bytes_text(memory.kv_cache_bytes_total)} in all"
        + ("" if at_once is None else f"; the engine runs at most {at_once:,} such requests at once"),
    ]
    if memory.kv_cache_capacity_bytes is not None and memory.kv_cache_capacity_tokens is not None:
        held = memory.kv_cache_capacity_requests
        lines.append(
            f"The engine keeps memory for its start-up run and libraries besides: it sets up "
            f"{bytes_text(memory.kv_cache_capacity_bytes)} of cache per GPU, logs "
            f"{count_text(memory.kv_cache_capacity_tokens, 'token')}"
            + ("" if held is None else f", and holds {count_text(held, 'request')}")
            + f"; beside the plan's four terms alone there is room for {memory.max_concurrency:,}"
        )
    if memory.kv_cache_bytes_per_device_replicated is not None:
        replicated = bytes_text(memory.kv_cache_bytes_per_device_replicated)
        lines.append(f"Were the KV cache not split by TP: {replicated} per GPU (conservative bound)")
    return lines


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
    picture = bar(list(zip(MARKS, shares, strict=True)), bar_width)
    names = f"{devices_text(device.device for device in group)} ({len(group)})"
    return (
        names,
        *(bytes_text(term) for term in terms),
        bytes_text(free_bytes) if free_bytes >= 0 else f"short by {bytes_text(-free_bytes)}",
        picture,
    )
