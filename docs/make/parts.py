"""Parts of pages that restate the code and its data: what `<!-- generated: NAME -->` stands above, a function each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from statistics import median

import click

from ...agent.cli.app import cli
from ...agent.operations.all_operations import OPERATIONS
from ...knowledge.generated import edge_types, node_types, schema_summary
from ...knowledge.generated.markdown import table
from ...tools.calibration.engine_profile import all_entries
from ...tools.calibration.error_ranges import Cell, ErrorRange, shipped_ranges
from ...tools.calibration.profile_file import POOLED, KernelEntry, read_profile_file, shipped_profiles
from ...tools.engines.names import ENGINES
from ...tools.errors import InputError
from ...tools.importing.launch import DIALECTS

_PART = re.compile(r"(?<=<!-- generated: )(?P<name>[\w-]+)(?P<begin> -->\n).*?(?=<!-- end generated -->)", re.DOTALL)
_WIDTH = 100
_METRICS = {"tpot": "TPOT", "ttft": "TTFT", "end_to_end": "end to end", "throughput": "throughput"}
_LOADS = {"low": "at most 8 requests in flight", "loaded": "more"}
_KERNELS = {
    "gemm": "matmul", "grouped_gemm": "experts", "attention_prefill": "attention, prefill",
    "attention_decode": "attention, decode", "mla_prefill": "latent attention, prefill",
    "mla_decode": "latent attention, decode", "elementwise": "element-wise", "collective": "collectives",
    "exchange": "exchange of experts' tokens",
}  # fmt: skip


def with_parts(text: str) -> str:
    """A page with its generated parts as the code and the data give them today."""

    def made(match: re.Match[str]) -> str:
        if match["name"] not in PARTS:
            raise InputError(f"nothing generates {match['name']!r}; there are {', '.join(PARTS)}")
        return f"{match['name']}{match['begin']}\n{chr(10).join(PARTS[match['name']]())}\n\n"

    return _PART.sub(made, text)


def _commands() -> Iterator[str]:
    """Every command with its help, as the terminal shows it."""
    for name, command in cli.commands.items():
        context = click.Context(
            command, info_name=f"shardwright {name}", terminal_width=_WIDTH, max_content_width=_WIDTH
        )
        yield from (f"## {name}", "", "```text", command.get_help(context), "```", "")


def _ranges() -> Iterator[str]:
    """Between which ratios of measured over predicted 90% of the measurements lay: all, and by kind of model."""
    shown = [one for one in shipped_ranges().ranges if one.cell == Cell(one.metric, one.load, one.kind)]
    metrics, loads = [*_METRICS], [*_LOADS]
    shown.sort(key=lambda one: (metrics.index(one.metric), loads.index(one.load)))
    rows = [_range_row(one) for one in shown]
    heads = ("figure", "requests in flight", "models", "measured / predicted", "measurements", "models × accelerators")
    yield from table(heads, rows)


def _range_row(one: ErrorRange) -> tuple[str, ...]:
    models = {"dense": "dense", "moe": "with experts", None: "all"}[one.kind]
    between = f"{one.low:.2f} to {one.high:.2f}"
    return _METRICS[one.metric], _LOADS[one.load], models, between, f"{one.rows:,}", str(one.pairs)


def _kernels() -> Iterator[str]:
    """For each accelerator with kernel times of its own: what was measured, and how far off held-back shapes are."""
    rows: list[tuple[str, ...]] = []
    for name in shipped_profiles():
        profile = read_profile_file(name)
        if profile is None or name == POOLED:
            continue
        for kernel, title in _KERNELS.items():
            entries = [one for one in profile.entries if one.kernel == kernel]
            if entries:
                rows.append((name, title, f"{sum(one.rows for one in entries):,}", *_held_back(entries)))
    heads = ("accelerator", "kernel", "measurements", "held back", "median error", "p90")
    yield from table(heads, rows)


def _held_back(entries: list[KernelEntry]) -> tuple[str, str, str]:
    judged = [one for one in entries if one.held_back_rows and one.held_back_median_pct is not None]
    if not judged:
        return "–", "–", "–"
    p90 = [one.held_back_p90_pct for one in judged if one.held_back_p90_pct is not None]
    middle = median(one.held_back_median_pct or 0.0 for one in judged)
    held_back = sum(one.held_back_rows for one in judged)
    return f"{held_back:,}", f"{middle:.1f}%", f"{median(p90):.1f}%" if p90 else "–"


def _kernel_sources() -> Iterator[str]:
    """Who measured the kernels, as the data files say."""
    profiles = [read_profile_file(name) for name in shipped_profiles()]
    found = {(one.source, one.licence) for profile in profiles if profile is not None for one in profile.entries}
    yield from table(("source", "licence"), sorted(found))


def _engine_runs() -> Iterator[str]:
    """How many end-to-end results each engine's constants were fitted to."""
    rows = [
        (ENGINES[one.engine].title, one.generation, one.accelerator_class, f"{one.rows:,}", str(one.fitted))
        for one in all_entries()
        if one.accelerator_class != POOLED
    ]
    yield from table(("engine", "generation", "accelerators", "results", "fitted"), rows)


def _engines() -> Iterator[str]:
    """What each engine is known for: export, import, rules, a load generator, cache formats."""
    runs = {name: sum(one.rows for one in all_entries() if one.engine == name) for name in ENGINES}
    rows = [
        (
            one.title,
            one.version or "no",
            "yes" if name in DIALECTS else "no",
            "yes" if one.is_judged else "no",
            ", ".join(one.caches),
            "measured" if runs[name] else "no results",
        )
        for name, one in ENGINES.items()
    ]
    heads = ("engine", "exported, as of version", "imported", "rules (EN)", "KV cache formats", "times")
    yield from table(heads, rows)


def _operations() -> Iterator[str]:
    """What programs can ask, over HTTP and over MCP."""
    yield from table(("name", "what it does"), [(f"`{one.name}`", one.summary) for one in OPERATIONS])


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "commands": _commands,
    "engine-runs": _engine_runs,
    "engines": _engines,
    "kernel-sources": _kernel_sources,
    "kernels": _kernels,
    "operations": _operations,
    "plan-edges": lambda: iter((edge_types.generate(),)),
    "plan-fields": lambda: iter((schema_summary.generate(),)),
    "plan-nodes": lambda: iter((node_types.generate(),)),
    "ranges": _ranges,
}
