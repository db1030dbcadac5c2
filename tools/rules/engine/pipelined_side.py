"""EN012: early versions of SGLang do not run the replicas of one phase as pipelines.

It needs a plan that names SGLang and a version; without a version the newest is assumed, which runs both phases so.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engines.release import release_of
from ...plan.degrees import phase_degrees
from ...plan.document import PHASES, Phase
from ...plan.view import NodeView, PlanView, as_str
from ..base import Example, Finding, Rule, served_by
from ..legality import Conditions, Fault, Pipeline
from ..reading import named_engine


def check(view: PlanView) -> Iterator[Finding]:
    """Yield phases whose stages the version of the engine cannot run, once for like replicas."""
    engine, version = named_engine(view), as_str(view.serving.get("engine_version"))
    if engine is None:
        return
    branches: dict[Phase, list[NodeView]] = {}
    stages: dict[Phase, int] = {}
    for phase in view.phases:
        name = phase.phase
        if name not in PHASES or phase.replica is None or engine.pipelines_side(release_of(version), name):
            continue
        count = phase_degrees(view, phase).pp
        if count is not None and count > 1 and len(view.served[phase.replica.position]) == 1:
            branches.setdefault(name, []).append(phase.node)
            stages[name] = count
    for name, nodes in branches.items():
        first = ".".join(map(str, engine.first_pipelined[name]))
        yield Finding(
            "several-stages",
            f"{name} replicas of {stages[name]} stages; {engine.title} {version} runs a server of one phase in one "
            f"stage, {name} servers in several only from {first} on",
            where=nodes,
            value=stages[name],
            expected=1,
            remedy=f"state a version from {first} on, or give {name} pp 1",
        )


def _stages(conditions: Conditions, pipeline: Pipeline) -> Iterator[Fault]:
    engine, phase = conditions.engine, pipeline.phase
    if engine is None or not pipeline.is_alone or pipeline.stages == 1:
        return
    if not engine.pipelines_side(conditions.release, phase):
        message = f"{engine.title} of that version runs {phase} replicas in one stage"
        yield Fault("several-stages", message, pipeline.stages, 1)


RULE = Rule(
    id="EN012",
    name="pipelined side",
    requirement=(
        "In a plan that names SGLang before 0.5.1, replicas of one phase have pp 1; before 0.5.7, those that decode."
    ),
    rationale=(
        "A server of one phase waits for caches between its steps, which each stage has to do in step with the others. "
        "SGLang has an event loop for that in prefill servers since 0.5.1 and in decode servers since 0.5.7; before, "
        "such a server does not start."
    ),
    source="sgl-project/sglang pull requests 8846 and 14945; managers/scheduler.py of 0.4.8, 0.5.1, 0.5.6 and 0.5.7",
    fix="re-plan",
    remedy="state a newer version, or give these replicas pp 1",
    check=check,
    pipeline_faults=_stages,
    good=Example(edits=(served_by("sglang", engine_version="0.5.7"),)),
    bad=Example("disaggregated-pp2", (served_by("sglang", engine_version="0.4.8"),)),
)
