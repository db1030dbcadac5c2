"""One plan of a comparison: its content, its verdict and its estimate.

A plan that cannot be estimated still becomes a side, with the reason; a document that is no plan is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ..calibration.custom import CustomCalibration
from ..errors import InputError
from ..performance.estimate import estimate_view
from ..performance.layout import layout_from_view
from ..performance.limits import figures_of_estimate, stated_limits
from ..plan.describe import describe
from ..plan.document import PHASES, TWO_BATCH, Plan, ServingBlock, WorkloadBlock
from ..plan.performance import PerformanceEstimate, PhaseExplanation
from ..plan.reader import ReadDocument, read_document
from ..plan.view import PhaseView, PlanView
from ..validate import validate_read
from .result import Bottleneck, BranchShape, EngineSettings, LimitCheck, Side

# Violations of a plan that a comparison carries; `validate` lists them all.
MOST_VIOLATIONS = 20

Document = Plan | Mapping[str, object] | str | Path


class Judged(Struct, frozen=True):
    """One plan with its estimate, where it has one."""

    side: Side
    estimate: PerformanceEstimate | None


def judged(
    source: Document, title: str, calibration: CustomCalibration | None, usd_per_gpu_hour: float | None
) -> Judged:
    """Read, validate and estimate one plan, called `title`. Raises InputError: it cannot be read as a plan document."""
    read = read_document(source)
    try:
        return judged_read(read, title, calibration, usd_per_gpu_hour)
    finally:
        read.view.release()


def judged_read(
    read: ReadDocument, title: str, calibration: CustomCalibration | None, usd_per_gpu_hour: float | None, *,
    takes_engine: bool = False,
) -> Judged:  # fmt: skip
    """As `judged`, for a document already read; `takes_engine`: the plan names no engine and is judged on the other's.

    Raises InputError: it is no plan document.
    """
    if read.plan is None:
        first = read.faults[0]
        raise InputError(f"{title}: not a plan document: {first.path or '/'}: {first.message}")
    plan = read.plan
    report = validate_read(read)
    figures, why = None, None
    try:
        figures = estimate_view(read.view, usd_per_gpu_hour, calibration)
    except InputError as error:
        why = str(error)
    cost = None if figures is None else figures.cost
    hardware, accelerator, serving = plan.hardware, plan.hardware.accelerator, plan.serving or ServingBlock()
    side = Side(
        title=title,
        summary=describe(plan.strategy),
        strategy=plan.strategy,
        model=plan.model.name,
        accelerator=accelerator if isinstance(accelerator, str) else accelerator.id,
        nodes=hardware.nodes,
        gpus_per_node=hardware.gpus_per_node,
        gpus=len(read.view.devices),
        workload=plan.workload,
        precision=plan.precision,
        relaxations=tuple(sorted(read.view.relaxations)),
        constraints=tuple(constraint.words for constraint in plan.policy.constraints or ()),
        engine=serving.engine,
        engine_version=serving.engine_version,
        takes_engine=takes_engine or None,
        settings=_settings(read, plan, serving),
        valid=report.valid,
        errors=report.errors,
        warnings=report.warnings,
        violations=report.violations[:MOST_VIOLATIONS],
        layout=tuple(_shapes(read.view)),
        limits=tuple(_limits(plan.workload, figures)),
        binds=tuple(_binds(figures)),
        calibration=None if figures is None else figures.calibration,
        saturated=None if figures is None else figures.load.saturated,
        keeps_reserve=None if figures is None else figures.load.keeps_reserve,
        cost_unit=None if cost is None else cost.unit,
        price_source=None if cost is None else cost.price_source,
        not_estimated=why,
    )
    return Judged(side, figures)


def _settings(read: ReadDocument, plan: Plan, serving: ServingBlock) -> EngineSettings:
    """The engine's settings as the estimate takes them; without an estimate only the stated ones."""
    stated = EngineSettings(
        max_batch=serving.max_batch,
        step_tokens=serving.prefill_chunk_tokens,
        overlap="two_batch" if serving.overlap in TWO_BATCH else "none",
        microbatches=serving.microbatches,
        memory_utilization=plan.policy.memory_utilization,
        kv_offload=None if serving.kv_offload is None else str(serving.kv_offload),
        flags=None if serving.flags is None else str(serving.flags),
    )
    try:
        layout = layout_from_view(read.view)
    except InputError:
        return stated
    setting, groups = layout.setting, layout.phase("prefill").attention_groups
    return stated.model_copy(update={"max_batch": setting.max_sequences, "step_tokens": setting.token_budget(groups)})


def _shapes(view: PlanView) -> Iterator[BranchShape]:
    for phase in PHASES:
        served = [branch for branch in view.phases if branch.phase == phase]
        if served:
            yield BranchShape(
                phase=phase,
                replicas=len(served),
                gpus_per_stage=tuple(len(stage.devices) for stage in served[0].stages),
                layers_per_stage=tuple(
                    0 if stage.layers is None else max(0, stage.layers[1] - stage.layers[0] + 1)
                    for stage in served[0].stages
                ),
                experts_per_gpu=_experts_per_gpu(served[0]),
            )


def _experts_per_gpu(branch: PhaseView) -> int:
    """The most experts in one group; groups of several GPUs (TP in experts) count for each of them."""
    groups = (node for stage in branch.stages for node in stage.nodes if node.type == "ExpertNode")
    return max((sum(last - first + 1 for first, last in group.expert_ranges or ()) for group in groups), default=0)


def _limits(workload: WorkloadBlock, figures: PerformanceEstimate | None) -> Iterator[LimitCheck]:
    """Every limit that the workload states, with the estimated figure beside it."""
    limit_figures = None if figures is None else figures_of_estimate(figures)
    for limit in stated_limits(workload):
        yield LimitCheck(
            name=limit.name,
            statistic=limit.statistic,
            unit=limit.unit,
            limit=limit.bound,
            figure=None if limit_figures is None else limit_figures.of(limit),
            holds=None if limit_figures is None else limit_figures.excess(limit) == 0.0,
        )


def _binds(figures: PerformanceEstimate | None) -> Iterator[Bottleneck]:
    if figures is None or figures.explanation is None:
        return
    for phase in PHASES:
        explained: PhaseExplanation = getattr(figures.explanation, phase)
        if explained.resources:
            first = explained.resources[0]
            largest = explained.largest[0].what if explained.largest else None
            yield Bottleneck(phase=phase, resource=first.resource, share_pct=first.share_pct, largest=largest)
