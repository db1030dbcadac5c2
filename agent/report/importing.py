"""The report of `import`: the plan that runs, what was not understood first, its findings and its figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...tools.engines.names import ENGINES
from ...tools.plan.describe import describe
from .estimate import confidence, estimate_sections
from .layout import layout_section
from .plan import figures_text
from .request import assumption_section, constraint_lines, hardware_text, load_text, read_as_lines, workload_text
from .text import Bullets, count_text, render, section
from .validation import violation_blocks

if TYPE_CHECKING:
    from ..importing.api import Imported


def render_import(imported: Imported, *, width: int, bold: bool = False, saved_as: Path | None = None) -> str:
    """The report of `import COMMAND`."""
    sections = [section("", *_head(imported))]
    if imported.findings:
        sections.append(section("Findings", *violation_blocks(imported.findings)))
    sections.append(layout_section(imported.plan))
    if imported.estimate is not None:
        sections += [*estimate_sections(imported.estimate, width), confidence(imported.estimate)]
    sections.append(assumption_section(imported, {}))
    sections.append(section("Flags and variables that a plan does not say", Bullets(tuple(_flags(imported)))))
    following = (
        "shardwright fix FILE mends it"
        if not imported.valid
        else "shardwright compare FILE PLAN sets another beside it"
    )
    sections.append(section("", None if saved_as is None else f"Saved as {saved_as}; {following}."))
    return render(sections, width=width, bold=bold)


def _flags(imported: Imported) -> Iterator[str]:
    """The flags that an export to the same engine writes again, and those that it does not."""
    flags = None if imported.plan.serving is None else imported.plan.serving.flags
    if flags is not None:
        engine = ENGINES[imported.engine]
        has = f" where {engine.version} has them" if engine.version else ""
        yield f"kept, and written again by an export to {engine.title}{has}: {flags}"
    if imported.left_out:
        yield f"not kept: {', '.join(imported.left_out)}"


def _state(imported: Imported) -> str:
    """Whether it serves; not known if a flag is not known here, since engines refuse flags that they do not know."""
    waiting = imported.waiting
    if not imported.valid and waiting is None:
        return "NOT valid as it runs"
    if imported.refused:
        return "Does NOT serve"
    state = "Not known to run" if imported.not_understood else "Runs"
    return state if waiting is None else f"{state}, {waiting.at_once:,} of {waiting.requests:,} requests at a time"


def _head(imported: Imported) -> Iterator[str]:
    plan = imported.plan
    engine = " ".join(filter(None, (ENGINES[imported.engine].title, imported.engine_version)))
    yield (
        f"{_state(imported)}: {describe(plan.strategy)} of {plan.model.name} on {hardware_text(plan.hardware)}, "
        f"{count_text(imported.servers, 'server')} of {engine}"
    )
    yield from read_as_lines(imported.assumptions)
    yield from imported.caveats
    if any(assumption.field == "objective" for assumption in imported.assumptions):
        yield f"Judged under {load_text(plan.workload, imported.assumptions)}"
    else:
        yield workload_text(plan.workload, imported.assumptions, is_planned=False)
    precision = plan.precision
    used, owned = plan.strategy.gpu_count, plan.hardware.nodes * plan.hardware.gpus_per_node
    of = f" of {owned}" if owned != used else ""
    yield (
        f"Uses {count_text(used, 'GPU')}{of}; weights {precision.weights}, KV cache {precision.kv_cache}, activations "
        f"{precision.activations}"
    )
    yield from constraint_lines(plan.policy)
    if imported.estimate is not None:
        broken = (
            finding.rule for finding in imported.findings if finding.severity == "error" and imported.waiting is None
        )
        yield figures_text(imported.estimate, (*broken, *imported.refused))
    elif imported.why_not_estimated is not None:
        yield f"Not estimated: {imported.why_not_estimated}"
