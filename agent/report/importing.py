"""The report of `import`: the plan that runs, what was not understood first, its findings and its figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools.engines.names import ENGINES
from ...tools.plan.describe import describe
from .asked import assumption_section, constraint_lines, hardware_text, load_text, read_as_lines, workload_text
from .estimate import confidence, estimate_sections
from .layout import layout_section
from .plan import figures_text
from .text import Bullets, count_text, render, section
from .validation import violation_blocks

if TYPE_CHECKING:
    from ..import_api import Imported


def render_import(found: Imported, *, width: int, bold: bool = False, saved_as: Path | None = None) -> str:
    """The report of `import COMMAND`."""
    sections = [section("", *_head(found))]
    if found.findings:
        sections.append(section("Findings", *violation_blocks(found.findings)))
    sections.append(layout_section(found.plan))
    if found.estimate is not None:
        sections += [*estimate_sections(found.estimate, width), confidence(found.estimate)]
    sections.append(assumption_section(found, {}))
    sections.append(section("Flags and variables that a plan does not say", Bullets(tuple(_flags(found)))))
    following = (
        "shardwright fix FILE mends it" if not found.valid else "shardwright compare FILE PLAN sets another beside it"
    )
    sections.append(section("", None if saved_as is None else f"Saved as {saved_as}; {following}."))
    return render(sections, width=width, bold=bold)


def _flags(found: Imported) -> Iterator[str]:
    """What an export to the same engine writes again, and what it does not."""
    kept = None if found.plan.serving is None else found.plan.serving.flags
    if kept is not None:
        engine = ENGINES[found.engine]
        has = f" where {engine.version} has them" if engine.version else ""
        yield f"kept, and written again by an export to {engine.title}{has}: {kept}"
    if found.left_out:
        yield f"not kept: {', '.join(found.left_out)}"


def _state(found: Imported) -> str:
    """Whether it serves: open where a flag is not known here, for engines refuse those that they do not know."""
    waiting = found.waiting
    if not found.valid and waiting is None:
        return "NOT valid as it runs"
    if found.refused:
        return "Does NOT serve"
    state = "Not known to run" if found.not_understood else "Runs"
    return state if waiting is None else f"{state}, {waiting.at_once:,} of {waiting.requests:,} requests at a time"


def _head(found: Imported) -> Iterator[str]:
    plan = found.plan
    engine = " ".join(filter(None, (ENGINES[found.engine].title, found.engine_version)))
    yield (
        f"{_state(found)}: {describe(plan.strategy)} of {plan.model.name} on {hardware_text(plan.hardware)}, "
        f"{count_text(found.servers, 'server')} of {engine}"
    )
    yield from read_as_lines(found.assumptions)
    yield from found.caveats
    if any(one.field == "objective" for one in found.assumptions):
        yield f"Judged under {load_text(plan.workload, found.assumptions)}"
    else:
        yield workload_text(plan.workload, found.assumptions, is_planned=False)
    precision = plan.precision
    used, owned = plan.strategy.gpu_count, plan.hardware.nodes * plan.hardware.gpus_per_node
    of = f" of {owned}" if owned != used else ""
    yield (
        f"Uses {count_text(used, 'GPU')}{of}; weights {precision.weights}, KV cache {precision.kv_cache}, activations "
        f"{precision.activations}"
    )
    yield from constraint_lines(plan.policy)
    if found.estimate is not None:
        broken = (one.rule for one in found.findings if one.severity == "error" and found.waiting is None)
        yield figures_text(found.estimate, (*broken, *found.refused))
    elif found.why_not_estimated is not None:
        yield f"Not estimated: {found.why_not_estimated}"
